/**
 * `npm run browser`: makes the code field one file for pages, `web/dist/postern-code.js`, and prints its size as it
 * travels and the hash that a page names as `integrity`. The script of the demo page becomes `web/dist/demo-page.js`.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'rolldown'

const web = fileURLToPath(new URL('.', import.meta.url))

/** Both, and the bytes of the code field. */
export async function buildBrowserScripts(): Promise<Buffer> {
  const [field] = await Promise.all([
    bundle('postern-code.ts', 'postern-code.js'),
    bundle('demo/page.ts', 'demo-page.js'),
  ])
  return field
}

async function bundle(input: string, name: string): Promise<Buffer> {
  const { output } = await build({
    input: join(web, input),
    platform: 'browser',
    logLevel: 'warn',
    tsconfig: false,
    transform: { target: 'es2022' },
    write: false,
    output: { format: 'esm', minify: true },
  })
  const bytes = Buffer.from(output[0].code)
  // In one step: another process may be reading it.
  const file = join(web, 'dist', name)
  mkdirSync(join(web, 'dist'), { recursive: true })
  writeFileSync(`${file}.${process.pid}`, bytes)
  renameSync(`${file}.${process.pid}`, file)
  return bytes
}

if (import.meta.main) {
  const { version } = JSON.parse(readFileSync(join(web, '../package.json'), 'utf8'))
  const bytes = await buildBrowserScripts()
  console.log(`file       /browser/postern-code.${version}.js
gzipped    ${gzipSync(bytes, { level: 9 }).length} bytes
integrity  sha384-${createHash('sha384').update(bytes).digest('base64')}`)
}
