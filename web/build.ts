/**
 * `npm run browser`: makes the code field one file for pages, `web/dist/postern-code.js`, and prints its size as it
 * travels and the hash that a page names as `integrity`.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'rolldown'

const web = fileURLToPath(new URL('.', import.meta.url))

export async function buildBrowserScript(): Promise<Buffer> {
  const { output } = await build({
    input: join(web, 'postern-code.ts'),
    platform: 'browser',
    logLevel: 'warn',
    tsconfig: false,
    transform: { target: 'es2022' },
    write: false,
    output: { format: 'esm', minify: true },
  })
  const bytes = Buffer.from(output[0].code)
  // In one step: another process may be reading it.
  const file = join(web, 'dist', 'postern-code.js')
  mkdirSync(join(web, 'dist'), { recursive: true })
  writeFileSync(`${file}.${process.pid}`, bytes)
  renameSync(`${file}.${process.pid}`, file)
  return bytes
}

if (import.meta.main) {
  const { version } = JSON.parse(readFileSync(join(web, '../package.json'), 'utf8'))
  const bytes = await buildBrowserScript()
  console.log(`file       /browser/postern-code.${version}.js
gzipped    ${gzipSync(bytes, { level: 9 }).length} bytes
integrity  sha384-${createHash('sha384').update(bytes).digest('base64')}`)
}
