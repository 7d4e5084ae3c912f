/**
 * The life of a production process: read the settings, start, and end in order. A second signal ends
 * it at once; so does an end that takes longer than a send.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Roles, type Running, start } from './compose.ts'
import { type Config, loadConfig } from './load-config.ts'

/** Longer than a provider call with its write-back, shorter than the stop grace period of deploy files. */
export const stopWithinMs = 20_000

export async function run(roles: Roles): Promise<void> {
  const config = readConfigOrExit()
  const running = await startOrExit(config, roles)
  process.on('SIGHUP', () => reload(running))
  endInOrder(running.log, () => running.close())
}

/** Starts, or says in one line why not: a port in use, a file that can't be read. */
export async function startOrExit(config: Config, roles: Roles): Promise<Running> {
  try {
    return await start(config, roles)
  } catch (error) {
    const { code, port } = error as { code?: string; port?: number }
    console.error(
      code === 'EADDRINUSE'
        ? `Postern can not start: port ${port} is in use; set PORT or ADMIN_PORT to another.`
        : `Postern can not start: ${(error as Error).message}`,
    )
    process.exit(1)
  }
}

export function readConfigOrExit(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Config {
  const loaded = loadConfig(env)
  if (loaded.ok) return loaded.config
  console.error(
    `Postern can not start:\n${loaded.problems.map((problem) => `  ${problem}`).join('\n')}`,
  )
  process.exit(1)
}

/** A Ctrl-C under npm arrives twice, from the terminal and passed on by npm: still one press. */
const onePressMs = 500

/** Closes on SIGTERM, SIGINT and on an error nobody caught, then exits. */
export function endInOrder(log: Running['log'], close: () => Promise<void>): void {
  let endingSinceMs: number | undefined
  async function end(reason: string, exitCode: number) {
    if (endingSinceMs !== undefined) {
      if (performance.now() - endingSinceMs < onePressMs && exitCode === 0) return
      process.exit(1)
    }
    endingSinceMs = performance.now()
    log.stopping(reason)
    const isClosed = await Promise.race([
      close().then(
        () => true,
        (error) => {
          // The log may be among what is closed already.
          console.error(error)
          return false
        },
      ),
      sleep(stopWithinMs, false),
    ])
    process.exit(isClosed ? exitCode : 1)
  }
  process.on('SIGTERM', () => end('SIGTERM', 0))
  process.on('SIGINT', () => end('SIGINT', 0))
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      log.fatal(error)
      void end(event, 1)
    })
  }
}

function reload(running: Running): void {
  const loaded = loadConfig(process.env)
  if (loaded.ok) {
    running.reload(loaded.config.file)
    running.log.rulesReloaded()
  } else running.log.rulesNotReloaded(loaded.problems)
}
