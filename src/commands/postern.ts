/**
 * The program `postern` of the installed package. Each command is the module that an npm script of a clone starts. Modules
 * are imported after the check of Node's version, because an older Node would end with an error of some module.
 */
import { readFileSync } from 'node:fs'

const commands: Readonly<Record<string, readonly [does: string, start: () => Promise<unknown>]>> = {
  api: ['answers requests; any number can run', () => import('../main/api.ts')],
  worker: ['sends accepted messages; any number can run', () => import('../main/worker.ts')],
  migrate: ['prepares the database, once per version', () => import('./migrate.ts')],
  keys: ['creates, lists, revokes and rotates API keys', () => import('./keys.ts')],
  policy: ['explains a policy file, and tries a changed one', () => import('./policy.ts')],
  doctor: ['reports what is missing or risky', () => import('./doctor.ts')],
  demo: ['runs all of it on this machine, without settings', () => import('../dev/demo.ts')],
}

const usage = `Usage: postern COMMAND [OPTIONS]

${Object.entries(commands)
  .map(([name, [does]]) => `  ${name.padEnd(9)}${does}\n`)
  .join('')}
Settings are variables of the environment, or lines of .env in the current folder. postern --version prints the version.
`

const { version, dependencies } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { version: string; dependencies: { node: string } }

const neededNode = Number.parseInt(dependencies.node.replace(/^\D+/, ''), 10)

const oldNode = `postern needs Node ${neededNode} or newer, and this is Node ${process.versions.node}.
npm installs that Node with postern, but only if install scripts are allowed. Allow the script of the package
"node" (npm rebuild node), or use a newer Node.
`

const [name = '', ...options] = process.argv.slice(2)
await run()

async function run(): Promise<void> {
  if (name === '--version') return print(0, `${version}\n`)
  if (name === '--help') return print(0, usage)
  const [, start] = (Object.hasOwn(commands, name) && commands[name]) || []
  if (!start) return print(2, `${name && `postern has no command "${name}".\n\n`}${usage}`)
  // The other commands print a usage with their options.
  const isPlain = ['api', 'worker', 'migrate', 'demo'].includes(name)
  if (isPlain && options.includes('--help')) return print(0, usage)
  if (Number.parseInt(process.versions.node, 10) < neededNode) return print(1, oldNode)
  // A script has its arguments from the third on, and each module reads them there.
  process.argv.splice(2, process.argv.length, ...options)
  // A command sets its own exit code.
  await start()
}

function print(exitCode: number, text: string): void {
  process[exitCode === 0 ? 'stdout' : 'stderr'].write(text)
  process.exitCode = exitCode
}
