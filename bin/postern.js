/**
 * The program `postern` of the installed package. Each command is the module that an npm script of a clone starts. Modules
 * are imported after the check of Node's version, because an older Node would end with an error of some module.
 */
import { readFileSync } from 'node:fs'

const start = (file) => () => import(`../dist/${file}.js`)

/** What each command does, and its start. */
const commands = {
  api: ['answers requests; any number can run', start('main/api')],
  worker: ['sends accepted messages; any number can run', start('main/worker')],
  migrate: ['prepares the database, once per version', start('main/commands/migrate')],
  keys: ['creates, lists, revokes and rotates API keys', start('main/commands/keys')],
  policy: ['explains a policy file, and tries a changed one', start('main/commands/policy')],
  doctor: ['reports what is missing or risky', start('main/commands/doctor')],
  demo: ['runs all of it on this machine, without settings', start('dev/demo')],
}

const usage = `Usage: postern COMMAND [OPTIONS]

${Object.entries(commands)
  .map(([name, [does]]) => `  ${name.padEnd(9)}${does}\n`)
  .join('')}
Settings are variables of the environment, or lines of .env in the current folder. postern --version prints the version.
`

const { version, dependencies } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
)

const neededNode = Number.parseInt(dependencies.node.replace(/^\D+/, ''), 10)

const oldNode = `postern needs Node ${neededNode} or newer, and this is Node ${process.versions.node}.
npm installs that Node with postern, but only if install scripts are allowed. Allow the script of the package
"node" (npm rebuild node), or use a newer Node.
`

const [name = '', ...options] = process.argv.slice(2)
await run()

async function run() {
  if (name === '--version') return print(0, `${version}\n`)
  if (name === '--help') return print(0, usage)
  const [, startCommand] = (Object.hasOwn(commands, name) && commands[name]) || []
  if (!startCommand) return print(2, `${name && `postern has no command "${name}".\n\n`}${usage}`)
  // The other commands print a usage with their options.
  const isPlain = ['api', 'worker', 'migrate', 'demo'].includes(name)
  if (isPlain && options.includes('--help')) return print(0, usage)
  if (Number.parseInt(process.versions.node, 10) < neededNode) return print(1, oldNode)
  // A script has its arguments from the third on, and each module reads them there.
  process.argv.splice(2, process.argv.length, ...options)
  // A command sets its own exit code.
  await startCommand()
}

function print(exitCode, text) {
  process[exitCode === 0 ? 'stdout' : 'stderr'].write(text)
  process.exitCode = exitCode
}
