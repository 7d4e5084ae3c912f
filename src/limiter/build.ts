/** Builds what the package `postern-limiter` holds: a bundle for `import`, one for `require`, the scripts inside both. */
import { build, type Plugin } from 'rolldown'
import { scripts } from './scripts.ts'

/** The package's edition of scripts.ts has the texts, so that other people's bundlers find them too. */
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
