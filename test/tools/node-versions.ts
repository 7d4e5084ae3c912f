/** Other versions of Node than the version that runs the tests. */
import { execFile } from 'node:child_process'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { inject } from 'vitest'

const run = promisify(execFile)

/** The PATH of the machine, without the folders that npm adds for scripts. */
const machinePath = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter)

/**
 * A PATH on which `node` has this major version: the machine's, or one from the registry. A process gets none of the
 * settings of the npm that started the tests.
 */
export function environmentWithNode(major: number): Promise<Record<string, string>> {
  const found = environments.get(major) ?? findEnvironment(major)
  environments.set(major, found)
  return found
}

/** Its npm uses the cache that `npm ci` has filled, and asks the registry only for more. */
export const fromCache = { npm_config_prefer_offline: 'true' }

const environments = new Map<number, Promise<Record<string, string>>>()

async function findEnvironment(major: number): Promise<Record<string, string>> {
  // Without SHLVL, Bash assumes a remote shell and reads the start-up file of terminals.
  const env = { PATH: machinePath, HOME: process.env.HOME ?? '', SHLVL: '1', ...fromCache }
  const [own] = await versionOn(env.PATH)
  if (own === major) return env
  const folder = await mkdtemp(join(inject('runFolder'), `node-${major}-`))
  await writeFile(join(folder, 'package.json'), '{"allowScripts":{"node":true}}')
  const quietly = ['--prefer-offline', '--no-audit', '--no-fund']
  await run('npm', ['install', ...quietly, `node@${major}`], { cwd: folder })
  const bin = join(folder, 'node_modules/node/bin')
  const [installed] = await versionOn(bin)
  if (installed !== major) throw new Error(`npm installed Node ${installed} for Node ${major}`)
  return { ...env, PATH: [bin, env.PATH].join(delimiter) }
}

async function versionOn(path: string): Promise<number[]> {
  try {
    const { stdout } = await run('node', ['--version'], { env: { PATH: path } })
    return stdout.slice(1).split('.').map(Number)
  } catch {
    return []
  }
}
