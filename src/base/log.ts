/**
 * Logging through one typed function per event. A free-form logger sooner or later prints a phone
 * number (redaction by path misses the places nobody thought of); here an event can only carry the
 * fields of its signature, and none of them is a recipient, a code, a key or a text.
 */
import { pino } from 'pino'

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'silent'

export type Log = ReturnType<typeof createLog>

interface RequestFacts extends Record<string, string | number> {
  requestId: string
  method: string
  route: string
  status: number
  durationMs: number
}

/** JSON lines in production, readable lines when standard output is a terminal. */
export function createLog(options: { level: LogLevel; process: string }) {
  const isTerminal = process.stdout.isTTY === true
  let giveUpAtMs = Number.POSITIVE_INFINITY
  const destination = isTerminal
    ? undefined
    : // Lines are gathered into one write; what is gathered is flushed once a second and at the end.
      pino.destination({
        sync: false,
        minLength: 4_096,
        periodicFlush: 1_000,
        // A pipe that nobody reads is full for ever; the process must end all the same.
        retryEAGAIN: () => performance.now() < giveUpAtMs,
      })
  const settings = {
    level: options.level,
    base: { process: options.process, pid: process.pid },
    ...(isTerminal ? { transport: { target: 'pino-pretty', options: { ignore: 'pid' } } } : {}),
  }
  const logger = destination ? pino(settings, destination) : pino(settings)

  return {
    ready(addresses: Record<string, string>) {
      logger.info(addresses, 'ready')
    },
    notReady(reason: string) {
      logger.warn({ reason }, 'not ready')
    },
    stopping(reason: string) {
      logger.info({ reason }, 'stopping')
    },
    stopped() {
      logger.info('stopped')
    },
    fatal(error: unknown) {
      logger.fatal(errorFacts(error), 'fatal')
    },
    rulesReloaded() {
      logger.info('policy file reloaded')
    },
    rulesNotReloaded(problems: readonly string[]) {
      logger.error({ problems }, 'policy file has problems; the old rules stay')
    },
    connectionFailed(part: string, error: unknown) {
      logger.warn({ part, ...errorFacts(error) }, 'connection failed')
    },
    /** A repeat of a refusal that was logged is worth a line only to who asks for all of them. */
    requestFinished(isRepeat: boolean, facts: RequestFacts) {
      if (isRepeat) logger.debug(facts, 'request')
      else logger.info(facts, 'request')
    },
    requestFailed(requestId: string, error: unknown) {
      logger.error({ requestId, ...errorFacts(error) }, 'request failed')
    },
    enqueueFailed(count: number, error: unknown) {
      logger.warn({ count, ...errorFacts(error) }, 'not queued; the reconciler will carry them')
    },
    tried(facts: {
      noticeId: string
      provider: string
      outcome: string
      durationMs: number
      detail?: string
    }) {
      logger.info(facts, 'tried')
    },
    circuitChanged(provider: string, isOpen: boolean) {
      logger.warn({ provider }, isOpen ? 'provider is failing; kept away from' : 'provider is back')
    },
    finished(facts: { noticeId: string; state: string; provider?: string; error?: string }) {
      logger.info(facts, 'finished')
    },
    recordFailed(noticeId: string, error: unknown) {
      logger.warn({ noticeId, ...errorFacts(error) }, 'outcome not written yet; trying again')
    },
    jobFailed(noticeId: string, error: unknown) {
      logger.error({ noticeId, ...errorFacts(error) }, 'job failed')
    },
    longTemplate(facts: { template: string; locale: string; encoding: string; segments: number }) {
      logger.warn(facts, 'an SMS template is longer than one message; carriers bill each part')
    },
    reconciled(count: number) {
      logger.warn({ count }, 'notices put back on the queue')
    },
    eventFailed(facts: { eventId: string; type: string; tries: number; reason: string }) {
      logger.warn(facts, 'event not taken; it will be told again')
    },
    eventGivenUp(facts: { eventId: string; type: string; tries: number }) {
      logger.error(facts, 'event not taken within a day; given up')
    },
    backgroundFailed(task: string, error: unknown) {
      logger.warn({ task, ...errorFacts(error) }, 'background task failed; it will run again')
    },
    /** Writes out what is gathered, if that goes within a second; call it last. */
    close() {
      giveUpAtMs = performance.now() + 1_000
      try {
        destination?.flushSync()
      } catch {
        // There is nobody left to tell.
      }
      destination?.destroy()
    },
  }
}

/** Only name, code, message and stack: drivers put rows and parameters into other members. */
function errorFacts(error: unknown) {
  if (!(error instanceof Error)) return { error: String(error) }
  const cause = error.cause instanceof Error ? error.cause : undefined
  return {
    error: error.name,
    code: (error as { code?: unknown }).code ?? (cause as { code?: unknown } | undefined)?.code,
    message: error.message,
    cause: cause?.message,
    stack: error.stack,
  }
}
