/** `npm run docs`: makes docs/ the site in `site/dist`, which the demo serves at /docs/guide/, and prints its size. */
import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vitepress'

const root = fileURLToPath(new URL('.', import.meta.url))

await build(root)
const files = globSync('**/*', { cwd: join(root, 'dist') })
  .map((name) => ({ name, stats: statSync(join(root, 'dist', name)) }))
  .filter(({ stats }) => stats.isFile())
const kB = (chosen: typeof files) =>
  `${Math.round(chosen.reduce((sum, { stats }) => sum + stats.size, 0) / 1_000)} kB`
const pages = files.filter(({ name }) => name.endsWith('.html'))
console.log(`pages  ${pages.length}, ${kB(pages)}
all    ${files.length} files, ${kB(files)}
in     ${join(root, 'dist')}`)
