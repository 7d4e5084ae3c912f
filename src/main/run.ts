/**
 * The life of a production process: it reads the settings, starts, and ends in order. A second signal ends it at once.
 * A shutdown that takes longer than a send is ended too.
 */
import { parseArgs } from 'node:util'
import { commandLine } from '../base/command-line.ts'
import { onHangUp, stopOnSignals, stopWithinMs } from '../base/stop-on-signals.ts'
import { loadEnvFile } from '../config/env-file.ts'
import { pluginIn } from '../http/plugin-module.ts'
import { orUsage, stop } from './commands/stop.ts'
import { type DemoParts, type Roles, type Running, start } from './compose.ts'
import { type Config, loadConfig } from './load-config.ts'

export async function run(role: 'api' | 'worker'): Promise<void> {
  orUsage(`Usage: ${commandLine(role)}`, () => parseArgs())
  loadEnvFile()
  const config = await readConfigOrExit()
  const starting = startOrExit(config, { api: role === 'api', worker: role === 'worker' })
  const { DRAIN_SECONDS } = config.environment
  const end = stopOnSignals(starting, stopWithinMs + DRAIN_SECONDS * 1_000, pluginIn)
  // Reloads run one after the other, because reading the file is asynchronous.
  let reloaded: Promise<unknown> = starting
  onHangUp(end, () => {
    reloaded = reloaded.then(() => starting).then(reload)
  })
  await starting
}

/** Starts. If that fails (a port in use, a file that can't be read), prints the reason in one line and exits. */
export async function startOrExit(
  config: Config,
  roles: Roles,
  demo?: DemoParts,
): Promise<Running> {
  try {
    return await start(config, roles, { demo })
  } catch (error) {
    return stop(`Postern cannot start: ${whyNotStarted(error as Error)}`)
  }
}

function whyNotStarted({ code, message, port }: Error & { code?: string; port?: number }) {
  if (code === 'EADDRINUSE') return `port ${port} is in use; set PORT or ADMIN_PORT to another.`
  const isWrongHost = ['EADDRNOTAVAIL', 'EAI_AGAIN', 'ENOTFOUND'].includes(code ?? '')
  return isWrongHost ? `HOST is not an address of this machine (${message}).` : message
}

export async function readConfigOrExit(
  env: Readonly<Record<string, string | undefined>> = process.env,
  load: (given: typeof env) => ReturnType<typeof loadConfig> = loadConfig,
): Promise<Config> {
  const loaded = await load(env)
  if (loaded.ok) return loaded.config
  return stop(['Postern cannot start:', ...loaded.problems].join('\n  '))
}

/** After any error, the current rules stay in force. */
async function reload({ reload, log }: Running): Promise<void> {
  try {
    const loaded = await loadConfig(process.env)
    if (loaded.ok) log.rulesReloaded(reload(loaded.config))
    else log.rulesNotReloaded(loaded.problems)
  } catch (error) {
    log.rulesNotReloaded([(error as Error).message])
  }
}
