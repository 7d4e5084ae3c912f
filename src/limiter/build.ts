/**
 * Builds the package `postern-limiter`: a bundle with the Lua scripts for `require`, and a file for `import` that names its
 * exports. With two bundles, an error of a limiter that was made by `require` would be no `LimiterUnavailable` for
 * `import`. The licence has the text of zod's, because the bundle contains zod.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
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

await build({
  input: 'index.ts',
  platform: 'node',
  external: ['croner'],
  plugins: [inlineScripts],
  logLevel: 'warn',
  output: { dir: 'cjs', format: 'cjs', entryFileNames: 'index.js', minify: true },
})

mkdirSync('esm', { recursive: true })
const names = Object.keys(await import('./index.ts')).sort()
writeFileSync(
  'esm/index.js',
  `import limiter from '../cjs/index.js'\nexport const { ${names.join(', ')} } = limiter\n`,
)

const licences = ['LICENSE', 'node_modules/zod/LICENSE'].map((path) =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8'),
)
writeFileSync('LICENSE', licences.join('\nContains zod:\n\n'))
