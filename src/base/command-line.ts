/** Only the installed package runs JavaScript. A clone runs TypeScript. */
export const isInstalled = import.meta.url.endsWith('.js')

/** An operator who started with `npx` may not have the program on the PATH, so messages name `npx` too. */
const program = process.env.npm_command === 'exec' ? 'npx postern' : 'postern'

const scripts: Readonly<Record<string, string>> = { api: 'start:api', worker: 'start:worker' }

/** The command line that a message names: the program of the package, or the npm script of a clone. */
export function commandLine(command: string, args = ''): string {
  if (isInstalled) return `${program} ${command} ${args}`.trimEnd()
  return `npm run ${scripts[command] ?? command}${args && ` -- ${args}`}`
}
