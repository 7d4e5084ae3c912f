/**
 * `npm run conformance -- ./acme-provider.js`: runs the suite of Postern's provider kinds with the kind of a file, or with
 * a kind of Postern by its name: `npm run conformance -- http`. The exit code is 1 if a promise is broken, or if the file cannot be tried.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createProviderKinds, ownKinds } from '../../src/providers/kinds.ts'
import { type ConformanceCase, tryAll } from './conformance.ts'
import { farEndTools } from './far-ends/http.ts'

const usage = 'Usage: npm run conformance -- ./acme-provider.js, or the name of a kind of Postern'
/** A slow promise that is kept ends long before. */
const promiseMs = 60_000

const [file, ...more] = process.argv.slice(2)
if (file === undefined || more.length > 0) stop(usage)
for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error: unknown) =>
    stop(`${file}: an error that nothing catches would end the worker: ${error}`),
  )
}
try {
  const given = await readCase(file)
  const broken = await run(given)
  process.exit(broken === 0 ? 0 : 1)
} catch (error) {
  stop(`${file}: ${(error as Error).message}`)
}

function stop(message: string): never {
  console.error(message)
  process.exit(1)
}

async function readCase(name: string): Promise<ConformanceCase> {
  const module = await import((caseOfKind(name) ?? urlOfFile(name)).href)
  const isOwn = createProviderKinds().find(module.default?.kind) === module.default
  if (!isOwn) createProviderKinds().add(module.default)
  const { conformance } = module
  const needed = ['startFarEnd', 'settings', 'secrets', 'message', 'expected']
  const missing = needed.filter((name) => conformance?.[name] === undefined)
  if (missing.length > 0) throw new Error(`its export \`conformance\` lacks ${missing.join(', ')}`)
  return module
}

/** The case of a kind of Postern; undefined for another name. */
function caseOfKind(name: string): URL | undefined {
  if (!ownKinds.some(({ kind }) => kind === name)) return undefined
  const url = new URL(`cases/${name}.ts`, import.meta.url)
  if (!existsSync(url)) throw new Error('this kind has no far end')
  return url
}

/** npm runs a script in the folder of the package. The path is relative to the folder where npm was called. */
function urlOfFile(path: string): URL {
  const { npm_lifecycle_event: script, INIT_CWD: calledFrom } = process.env
  const folder = (script === 'conformance' && calledFrom) || process.cwd()
  return pathToFileURL(resolve(folder, path))
}

/** The number of broken promises. */
async function run(given: ConformanceCase): Promise<number> {
  console.log(`The kind ${given.default.kind}`)
  let count = 0
  const broken = await tryAll(given, farEndTools, promiseMs, (says, fault) => {
    count += 1
    console.log(fault ? `  BROKEN  ${says}\n          ${fault.message}` : `  kept    ${says}`)
  })
  console.log(
    broken === 0 ? `All ${count} promises are kept.` : `${broken} of ${count} promises are broken.`,
  )
  return broken
}
