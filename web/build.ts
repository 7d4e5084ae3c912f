/**
 * `npm run browser` bundles the code field as `web/dist/postern-code.js`, and the script of the demo page as
 * `web/dist/demo-page.js`. It copies the files of Swagger UI that the API serves. It prints the compressed size of the
 * field, and the hash that pages name as `integrity`.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build, type Plugin } from 'rolldown'
import { english, languageNames } from './bundled-texts.ts'

const web = fileURLToPath(new URL('.', import.meta.url))

/**
 * Properties that the bundle may shorten: only modules of `web/` use them. A name of an event, of the service's JSON, of a
 * text or of the browser would break.
 */
export const ownProperties =
  'about listen take goOn askForWay lifeMs askedBy addressLabel toLine addressOf begin busyWith carry changeAddress channelsChanged codeTitle codeTyped complain countryBox countryNow countryPrefix drawCode follow forget formReset given givenLabel givenNow hasOther hold isAutosubmit isFault isGone isNational isPassed isRequired isUnfinished keepInSight keyboardMoved linkOpened textsChanged lockMs memory note onAnswer onPassed onSent pageTyped passEndsAtMs readMessage recall redraw rewatch setEntry settings shownAgain remember sinceMs switchChannel textOf textPasted waitMs'

/**
 * Files that a page with Swagger UI loads, and licences. They are copied, because its package brings one that reports
 * each install to a third party.
 */
const swaggerUiFiles = [
  'swagger-ui.css',
  'swagger-ui-bundle.js',
  'swagger-ui-bundle.js.LICENSE.txt',
  'LICENSE',
  'NOTICE',
]

/** Builds both scripts, copies Swagger UI, and returns the bytes of the code field. Pages and docs name the hash of these bytes. */
export async function buildBrowserScripts(): Promise<Buffer> {
  const [field] = await Promise.all([
    bundle('postern-code.ts', 'postern-code.js', [compactStyle, bundledTexts], ownProperties),
    bundle('demo/page.ts', 'demo-page.js', [onlySections('demo', 'units')]),
  ])
  copySwaggerUi()
  writeIntoPages(integrityOf(field))
  return field
}

const integrityOf = (bytes: Buffer) =>
  `sha384-${createHash('sha384').update(bytes).digest('base64')}`

function writeIntoPages(integrity: string): void {
  for (const name of [
    'examples/plain-form/index.html',
    'docs/code-field.md',
    'docs/zh/code-field.md',
  ]) {
    const page = join(web, '..', name)
    // The package and the image do not have this page.
    if (!existsSync(page)) continue
    const text = readFileSync(page, 'utf8')
    const named = text.replace(/(?<=integrity=")sha384-[^"]+/, integrity)
    if (named !== text) writeInOneStep(page, named)
  }
}

function copySwaggerUi(): void {
  const folder = join(web, 'dist/swagger-ui')
  mkdirSync(folder, { recursive: true })
  const { resolve } = createRequire(import.meta.url)
  for (const name of swaggerUiFiles) {
    writeInOneStep(join(folder, name), readFileSync(resolve(`swagger-ui-dist/${name}`)))
  }
}

/** Writes in one step, because another process may be reading the file. */
function writeInOneStep(file: string, content: string | Buffer): void {
  writeFileSync(`${file}.${process.pid}`, content)
  renameSync(`${file}.${process.pid}`, file)
}

async function bundle(input: string, name: string, plugins: Plugin[], own = ''): Promise<Buffer> {
  // No getter changes anything, so reads can move into the only expression that needs them.
  const compress = { treeshake: { propertyReadSideEffects: false } } as const
  const mangleProps = { include: new RegExp(`^(${own.replaceAll(' ', '|')})$`) }
  const { output } = await build({
    input: join(web, input),
    platform: 'browser',
    logLevel: 'warn',
    tsconfig: false,
    transform: { target: 'es2022' },
    plugins,
    write: false,
    output: { format: 'esm', minify: { mangleProps, compress }, comments: false },
  })
  const bytes = Buffer.from(output[0].code)
  mkdirSync(join(web, 'dist'), { recursive: true })
  writeInOneStep(join(web, 'dist', name), bytes)
  return bytes
}

const bundledTexts: Plugin = {
  name: 'bundled-texts',
  load: {
    filter: { id: /\/web\/bundled-texts\.ts$/ },
    handler: () =>
      `export const english = ${JSON.stringify(english)}, languageNames = ${JSON.stringify(languageNames)}`,
  },
}

const onlySections = (...sections: readonly string[]): Plugin => ({
  name: 'only-sections',
  transform: {
    filter: { id: /\/src\/i18n\/\w+\.json$/ },
    handler(code) {
      const texts = JSON.parse(code)
      return JSON.stringify(Object.fromEntries(sections.map((name) => [name, texts[name]])))
    },
  },
})

/** Removes spaces from the style sheet and shortens its own variables, because a minifier does not change texts. */
const compactStyle: Plugin = {
  name: 'compact-style',
  transform: {
    filter: { id: /\/web\/(code-step|style)\.ts$/ },
    handler: (code) =>
      code.replaceAll(/(--_\w\w)[\w-]+/g, '$1').replace(/css = `[^`]+`/, (css) =>
        css
          .replaceAll(/\s+/g, ' ')
          .replaceAll(/ ?([{};,>~/!"]) ?|(?<=:) /g, '$1')
          .replaceAll(';}', '}'),
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
