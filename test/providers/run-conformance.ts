/**
 * `npm run conformance -- ./acme-provider.js`: runs the suite that our own kinds must pass over the kind of a file. Exit
 * code 1 when a promise is broken, or when the file is not fit to be tried.
 */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createProviderKinds } from '../../src/providers/kinds.ts'
import { type ConformanceCase, tryAll } from './conformance.ts'
import { farEndTools } from './far-ends/http.ts'

const usage = 'Usage: npm run conformance -- ./acme-provider.js'
/** A promise that is kept slowly ends long before. */
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

/** npm runs a script in the folder of the package; the path is from where npm was called. */
async function readCase(path: string): Promise<ConformanceCase> {
  const { npm_lifecycle_event: script, INIT_CWD: calledFrom } = process.env
  const folder = (script === 'conformance' && calledFrom) || process.cwd()
  const module = await import(pathToFileURL(resolve(folder, path)).href)
  const isOwn = createProviderKinds().find(module.default?.kind) === module.default
  if (!isOwn) createProviderKinds().add(module.default)
  const { conformance } = module
  const needed = ['startFarEnd', 'settings', 'secrets', 'message', 'expected']
  const missing = needed.filter((name) => conformance?.[name] === undefined)
  if (missing.length > 0) throw new Error(`its export \`conformance\` lacks ${missing.join(', ')}`)
  return module
}

/** How many promises were broken. */
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
