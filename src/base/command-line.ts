import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Only the installed package runs JavaScript. A clone runs TypeScript. */
export const isInstalled = import.meta.url.endsWith('.js')

/** The path is the same from `dist/base`. */
export const ownPackage = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { version: string; devDependencies: Readonly<Record<string, string>> }

/**
 * The program that messages name. An operator who started with npm, or whose supervisor starts
 * `node_modules/.bin/postern`, may not have it on the PATH. `npx` finds it in the folder of the installation.
 */
export function programFor({ PATH = '', npm_command }: NodeJS.ProcessEnv): string {
  const isOnPath = PATH.split(delimiter).some((folder) => existsSync(join(folder, 'postern')))
  return npm_command === undefined && isOnPath ? 'postern' : 'npx postern'
}

const program = programFor(process.env)

const scripts: Readonly<Record<string, string>> = { api: 'start:api', worker: 'start:worker' }

/** The command line that a message names: the program of the package, or the npm script of a clone. */
export function commandLine(command: string, args = ''): string {
  if (isInstalled) return `${program} ${command} ${args}`.trimEnd()
  return `npm run ${scripts[command] ?? command}${args && ` -- ${args}`}`
}
