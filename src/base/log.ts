/**
 * Logging through one typed function per event. A free-form logger sooner or later prints a phone
 * number (redaction by path misses unforeseen places); here an event can only carry the fields of its
 * signature, and none of them is a recipient, a code, a key or a text.
 */
import { createRequire } from 'node:module'
import { pino } from 'pino'
import { errorFacts } from './error-facts.ts'
import { createLogOutput } from './log-output.ts'

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'silent'

export type Log = ReturnType<typeof createLog>

export interface RequestFacts extends Record<string, string | number> {
  requestId: string
  method: string
  route: string
  status: number
  durationMs: number
}

/** Of a flood of refusals the log shows a sample. */
const maxRefusalsPerSecond = 10

/** JSON lines; readable ones where standard output is a terminal and `pino-pretty` is installed. */
export function createLog(options: {
  level: LogLevel
  process: string
  /** Told how many lines standard output did not take. */
  onDropped?: (lines: number) => void
}) {
  const { stdout } = process
  const prettify = stdout.isTTY ? findPrettifier() : undefined
  if (stdout.isTTY) neverBlock(stdout)
  const output = createLogOutput(stdout, {
    onDropped: options.onDropped ?? (() => {}),
    onResumed: (lines) => logger.warn({ lines }, 'log lines dropped; standard output took none'),
  })
  const logger = pino(
    { level: options.level, base: { process: options.process, pid: process.pid } },
    { write: (line: string) => output.write(prettify ? prettify(line) : line) },
  )

  const isInSample = createSample(maxRefusalsPerSecond)

  return {
    ready(addresses: Record<string, string>) {
      logger.info(addresses, 'ready')
    },
    notReady(reasons: readonly string[]) {
      logger.warn({ reasons }, 'not ready')
    },
    readyWarning(warning: string) {
      logger.warn({ warning }, 'works, but not as it should')
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
    /** Names of sections of the policy file. */
    rulesReloaded({ reloaded, needRestart }: { reloaded: string[]; needRestart: string[] }) {
      if (needRestart.length === 0) logger.info({ reloaded }, 'policy file reloaded')
      else {
        logger.warn(
          { reloaded, needRestart },
          'policy file reloaded, but not the sections that need a restart',
        )
      }
    },
    rulesNotReloaded(problems: readonly string[]) {
      logger.error({ problems }, 'policy file has problems; the old rules stay')
    },
    connectionFailed(part: string, error: unknown) {
      logger.warn({ part, ...errorFacts(error) }, 'connection failed')
    },
    /** Refusals come in floods and the metrics count all: only so many a second are worth a line. */
    requestFinished(facts: RequestFacts) {
      const isRefusal = facts.status === 429 || facts.reason === 'load'
      if (isRefusal && !isInSample()) logger.debug(facts, 'request')
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
    /** At start, so that nobody forgets them. */
    testRecipients(facts: { count: number; recipients: string[]; until: string }) {
      logger.warn(facts, 'these recipients have fixed codes and are sent nothing')
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
    /** Once per template: a newer worker is expected to carry them. */
    notRendered(noticeId: string, template: string, error: unknown) {
      logger.error(
        { noticeId, template, ...errorFacts(error) },
        'a message can not be rendered here; it waits for a newer worker',
      )
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
    close: () => output.close(),
  }
}

/** It is a development dependency: a production install logs JSON in a terminal too. */
function findPrettifier(): ((line: string) => string) | undefined {
  try {
    return createRequire(import.meta.url)('pino-pretty').prettyFactory({ ignore: 'pid' })
  } catch {
    return undefined
  }
}

/**
 * Node lets a write to a terminal wait, so that Ctrl-S, or a session that hangs, would stop every request.
 * There is no public way to ask for the other, which it uses for pipes.
 */
function neverBlock(terminal: object): void {
  const { _handle: handle } = terminal as { _handle?: { setBlocking?(isBlocking: boolean): void } }
  handle?.setBlocking?.(false)
}

/** True for the first so many of every second. */
function createSample(perSecond: number): () => boolean {
  let second = 0
  let count = 0
  return () => {
    const now = Math.floor(performance.now() / 1_000)
    count = now === second ? count + 1 : 1
    second = now
    return count <= perSecond
  }
}
