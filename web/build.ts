/**
 * `npm run browser`: makes the code field one file for pages, `web/dist/postern-code.js`, and prints its size as it
 * travels and the hash that a page names as `integrity`. The script of the demo page becomes `web/dist/demo-page.js`.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build, type Plugin } from 'rolldown'

const web = fileURLToPath(new URL('.', import.meta.url))

/** Both, and the bytes of the code field. Its hash goes into the page that names it, and into the docs that show the page. */
export async function buildBrowserScripts(): Promise<Buffer> {
  const [field] = await Promise.all([
    bundle('postern-code.ts', 'postern-code.js'),
    bundle('demo/page.ts', 'demo-page.js'),
  ])
  writeIntoPages(integrityOf(field))
  return field
}

const integrityOf = (bytes: Buffer) =>
  `sha384-${createHash('sha384').update(bytes).digest('base64')}`

function writeIntoPages(integrity: string): void {
  for (const name of ['examples/plain-form/index.html', 'docs/code-field.md']) {
    const page = join(web, '..', name)
    // A package and an image have neither.
    if (!existsSync(page)) continue
    const text = readFileSync(page, 'utf8')
    const named = text.replace(/(?<=integrity=")sha384-[^"]+/, integrity)
    if (named !== text) writeInOneStep(page, named)
  }
}

/** Another process may be reading it. */
function writeInOneStep(file: string, content: string | Buffer): void {
  writeFileSync(`${file}.${process.pid}`, content)
  renameSync(`${file}.${process.pid}`, file)
}

async function bundle(input: string, name: string): Promise<Buffer> {
  const { output } = await build({
    input: join(web, input),
    platform: 'browser',
    logLevel: 'warn',
    tsconfig: false,
    transform: { target: 'es2022' },
    plugins: [compactStyle],
    write: false,
    output: { format: 'esm', minify: true },
  })
  const bytes = Buffer.from(output[0].code)
  mkdirSync(join(web, 'dist'), { recursive: true })
  writeInOneStep(join(web, 'dist', name), bytes)
  return bytes
}

/** A style sheet is text to a minifier: here it loses the spaces that only people read. */
const compactStyle: Plugin = {
  name: 'compact-style',
  transform: {
    filter: { id: /\/web\/style\.ts$/ },
    handler: (code) =>
      code.replace(/css = `[^`]+`/, (css) =>
        css.replaceAll(/\s+/g, ' ').replaceAll(/ ?([{};,>]) ?/g, '$1'),
      ),
  },
}

if (import.meta.main) {
  const { version } = JSON.parse(readFileSync(join(web, '../package.json'), 'utf8'))
  const bytes = await buildBrowserScripts()
  console.log(`file       /browser/postern-code.${version}.js
gzipped    ${gzipSync(bytes, { level: 9 }).length} bytes
integrity  ${integrityOf(bytes)}`)
}
