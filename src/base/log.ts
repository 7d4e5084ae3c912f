/**
 * Logging through one typed function per event. With a free-form logger a phone number sooner or later reaches the
 * log, and redaction by path misses some places. Here an event carries only the fields of its signature. No field is a
 * recipient, a code, a key or a text.
 */
import { createRequire } from 'node:module'
import { pino } from 'pino'
import { errorFacts } from './error-facts.ts'
import { createLogOutput } from './log-output.ts'
import type { Meter } from './meter.ts'
import { createSample } from './sample.ts'
import { traceFields } from './traces.ts'
import { Unavailable } from './unavailable.ts'

/** Work that no request waits for. */
const backgroundTasks = [
  'requeue',
  'early_receipts',
  'conversions',
  'next_way',
  'events',
  'retention',
  'partitions',
  'old_rows',
  'erasure',
  'bootstrap_key',
  'decisions',
] as const
type BackgroundTask = (typeof backgroundTasks)[number]

export const logMetrics = ({ counter }: Meter) => ({
  backgroundFailures: counter(
    'postern_background_failures_total',
    'Failures of background tasks. Each task runs again.',
    { task: backgroundTasks },
  ),
  logDropped: counter(
    'postern_log_lines_dropped_total',
    'Log lines dropped because standard output was slow or closed.',
    {},
  ),
})

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'silent'

export type Log = ReturnType<typeof createLog>

export interface RequestFacts extends Record<string, string | number> {
  requestId: string
  method: string
  route: string
  status: number
  durationMs: number
}

/** 429, 503, requests without a valid key, and failures of an outage come in floods. The log shows a sample of each. */
const maxOfFloodPerSecond = 10

/** JSON lines. Readable lines if standard output is a terminal and `pino-pretty` is installed. */
export function createLog(options: {
  level: LogLevel
  process: string
  /** Called with the number of lines that standard output did not accept. */
  onDropped?: (lines: number) => void
  /** Called with each failure of a background task. */
  onBackgroundFailed?: (task: BackgroundTask) => void
}) {
  const { stdout } = process
  const prettify = stdout.isTTY ? findPrettifier() : undefined
  if (stdout.isTTY) neverBlock(stdout)
  const output = createLogOutput(stdout, {
    onDropped: options.onDropped ?? (() => {}),
    onResumed: (lines) =>
      logger.warn({ lines }, 'log lines dropped because standard output was blocked'),
  })
  const logger = pino(
    {
      level: options.level,
      base: { process: options.process, pid: process.pid },
      mixin: traceFields,
    },
    { write: (line: string) => output.write(prettify ? prettify(line) : line) },
  )

  const isRefusalInSample = createSample(maxOfFloodPerSecond)
  const isStrangerInSample = createSample(maxOfFloodPerSecond)
  const isFirstThisMinute = createOncePerMinute()
  const isUnansweredInSample = createSample(maxOfFloodPerSecond)
  const isOutageInSample = createSample(maxOfFloodPerSecond)

  return {
    ready(addresses: Record<string, string>) {
      logger.info(addresses, 'ready')
    },
    notReady(reasons: readonly string[]) {
      logger.warn({ reasons }, 'not ready')
    },
    readyWarning(warning: string) {
      logger.warn({ warning }, 'ready, with a warning')
    },
    stopping(reason: string) {
      logger.info({ reason }, 'stopping')
    },
    stopped() {
      logger.info('stopped')
    },
    /** `plugin`: the plugin whose code is in the stack of the error. */
    fatal(error: unknown, plugin?: string) {
      logger.fatal({ plugin, ...errorFacts(error) }, 'fatal')
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
    /** The metrics count every request, so the log needs only a sample of requests that come in floods. */
    requestFinished(facts: RequestFacts) {
      const isRefusal = facts.status === 429 || facts.reason === 'load'
      const isReceipt = facts.provider !== undefined && facts.status < 300
      const isOfStranger = facts.app === undefined && !isReceipt && facts.status !== 500
      const isOfOutage = facts.status === 503 && !isRefusal && !isOfStranger
      const isLeftOut =
        (isRefusal && !isRefusalInSample()) ||
        (isOfStranger && !isStrangerInSample()) ||
        (isOfOutage && !isUnansweredInSample())
      if (isLeftOut) logger.debug(facts, 'request')
      else logger.info(facts, 'request')
    },
    requestFailed(requestId: string, error: unknown) {
      if (error instanceof Unavailable && !isOutageInSample()) return
      logger.error({ requestId, ...errorFacts(error) }, 'request failed')
    },
    enqueueFailed(count: number, error: unknown) {
      logger.warn(
        { count, ...errorFacts(error) },
        'notices not queued; the reconciler will queue them',
      )
    },
    tried(facts: {
      noticeId: string
      provider: string
      outcome: string
      durationMs: number
      detail?: string | undefined
    }) {
      logger.info(facts, 'tried')
    },
    testRecipients(facts: { count: number; recipients: string[]; until: string }) {
      logger.warn(facts, 'test recipients have fixed codes and get no messages')
    },
    circuitChanged(provider: string, isOpen: boolean) {
      logger.warn(
        { provider },
        isOpen ? 'provider is failing; not called for now' : 'provider answers again',
      )
    },
    finished(facts: Record<'noticeId' | 'state' | 'provider' | 'error', string | undefined>) {
      logger.info(facts, 'finished')
    },
    /** Once a minute for each provider and result. The metrics count all. */
    receiptUnused(provider: string, result: 'malformed' | 'unmatched' | 'other_recipient') {
      if (isFirstThisMinute(`${provider} ${result}`)) {
        logger.warn({ provider, result }, 'a receipt changed no notice')
      }
    },
    recordFailed(noticeId: string, error: unknown) {
      logger.warn({ noticeId, ...errorFacts(error) }, 'outcome not written yet; trying again')
    },
    /** Logged once per template. A newer worker is expected to render these messages. */
    notRendered(noticeId: string, template: string, error: unknown) {
      logger.error(
        { noticeId, template, ...errorFacts(error) },
        'this worker cannot render the message; it waits for a newer worker',
      )
    },
    jobFailed(noticeId: string, error: unknown) {
      logger.error({ noticeId, ...errorFacts(error) }, 'job failed')
    },
    longTemplate(facts: { template: string; locale: string; encoding: string; segments: number }) {
      logger.warn(facts, 'an SMS template is longer than one message; carriers bill each part')
    },
    carrierWarning(warning: string) {
      logger.warn({ warning }, 'carriers may change or block SMS')
    },
    reconciled(count: number) {
      logger.warn({ count }, 'notices put back on the queue')
    },
    eventFailed(facts: { eventId: string; type: string; tries: number; reason: string }) {
      logger.warn(facts, 'event not delivered; it will be sent again')
    },
    eventGivenUp(facts: { eventId: string; type: string; tries: number }) {
      logger.error(facts, 'event not delivered within a day; dropped')
    },
    /** `part`: the part of the task that failed. Its other parts went on. */
    backgroundFailed(task: BackgroundTask, error: unknown, part?: string) {
      options.onBackgroundFailed?.(task)
      logger.warn({ task, part, ...errorFacts(error) }, 'background task failed; it will run again')
    },
    /** Writes the gathered lines, for one second at most. Call it last. */
    close: () => output.close(),
  }
}

/** `pino-pretty` is a development dependency: a production install logs JSON in a terminal too. */
function findPrettifier(): ((line: string) => string) | undefined {
  try {
    return createRequire(import.meta.url)('pino-pretty').prettyFactory({ ignore: 'pid' })
  } catch {
    return undefined
  }
}

/**
 * Makes writes to a terminal asynchronous, as they are for pipes. Node's default waits for the terminal, so Ctrl-S or
 * a hanging session would stop every request. Node has no public function for this.
 */
function neverBlock(terminal: object): void {
  const { _handle: handle } = terminal as { _handle?: { setBlocking?(isBlocking: boolean): void } }
  handle?.setBlocking?.(false)
}

/** Returns true for the first call of each minute with the same subject. */
function createOncePerMinute(): (subject: string) => boolean {
  const minutes = new Map<string, number>()
  return (subject) => {
    const minute = Math.floor(performance.now() / 60_000)
    const isFirst = minutes.get(subject) !== minute
    minutes.set(subject, minute)
    return isFirst
  }
}
