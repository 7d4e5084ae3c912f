/**
 * Builds the package `postern-limiter`: a bundle for `import` and one for `require`, both with the Lua scripts. Its licence
 * has the text of zod's, because the bundles contain zod.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { build, type Plugin } from 'rolldown'
import { scripts } from './scripts.ts'

/** In the package, scripts.ts contains the text of the scripts. So they are also in the bundles of users. */
const inlineScripts: Plugin = {
  name: 'inline-scripts',
  load(id) {
    if (!id.endsWith('limiter/scripts.ts')) return null
    const entries = Object.entries(scripts).map(
      ([key, { name, source }]) => `${key}: createScript('${name}', ${JSON.stringify(source)})`,
    )
    return `
      import { createScript } from '../base/redis-script.ts'
      export const scripts = { ${entries} }`
  },
}

for (const format of ['esm', 'cjs'] as const) {
  await build({
    input: 'index.ts',
    platform: 'node',
    external: ['croner'],
    plugins: [inlineScripts],
    logLevel: 'warn',
    output: { dir: format, format, entryFileNames: 'index.js', minify: true },
  })
}

const licences = ['LICENSE', 'node_modules/zod/LICENSE'].map((path) =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8'),
)
writeFileSync('LICENSE', licences.join('\nContains zod:\n\n'))
