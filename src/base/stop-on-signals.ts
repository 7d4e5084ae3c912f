import { closeSync, openSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from './log.ts'

/**
 * Time limit for a stop. It is longer than a call of a provider with the write of its outcome, and shorter than the
 * grace period in the deploy files.
 */
export const stopWithinMs = 20_000

/** Under npm, one Ctrl-C arrives twice: from the terminal and from npm. Both count as one. */
const onePressMs = 500

/**
 * Closes on SIGTERM, SIGINT and uncaught errors, then exits. A process that is still starting is closed after its
 * start. Returns a function that does the same. A second call while it closes exits at once. `pluginIn` finds the
 * plugin that caused an error.
 */
export function stopOnSignals(
  starting: Promise<{ log: Pick<Log, 'stopping' | 'fatal'>; close(): Promise<void> }>,
  withinMs = stopWithinMs,
  pluginIn: (error: unknown) => string | undefined = () => undefined,
): (reason: string, exitCode: number) => Promise<void> {
  let endingSinceMs: number | undefined
  async function end(reason: string, exitCode: number): Promise<void> {
    if (endingSinceMs !== undefined) {
      if (performance.now() - endingSinceMs < onePressMs && exitCode === 0) return
      process.exit(1)
    }
    endingSinceMs = performance.now()
    const closed = starting.then(async ({ log, close }) => {
      log.stopping(reason)
      await close()
      return true
    })
    const isClosed = await Promise.race([
      closed.catch((error) => {
        // The log may be closed already.
        console.error(error)
        return false
      }),
      sleep(withinMs, false),
    ])
    process.exit(isClosed ? exitCode : 1)
  }
  process.on('SIGTERM', () => end('SIGTERM', 0))
  process.on('SIGINT', () => end('SIGINT', 0))
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      void starting.then(({ log }) => log.fatal(error, pluginIn(error)))
      void end(event, 1)
    })
  }
  return end
}

/** Calls `reload` on SIGHUP. A closed terminal sends it too; then the process ends, as it can get no Ctrl-C. */
export function onHangUp(end: ReturnType<typeof stopOnSignals>, reload: () => void): void {
  const hadTerminal = hasTerminal()
  process.on('SIGHUP', () => {
    if (hadTerminal && !hasTerminal()) void end('terminal closed', 0)
    else reload()
  })
}

/** Whether a terminal can send Ctrl-C to this process. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}
