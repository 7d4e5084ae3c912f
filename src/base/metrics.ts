/**
 * Every metric of Postern, with its labels and help. Label values come from closed sets only (routes, rules,
 * providers, states). No recipient, address, IP or path can make a new series. A test compares docs/metrics.md and the
 * Grafana dashboard with this list.
 *
 * Every counter exists from the first scrape at 0, for every value of its labels (I28). Prometheus sees an increase
 * only between two samples. If a series appeared with its first events, alerts would miss them. The values stand here
 * or come from the rooms, the policy file and the routes. Where they stand here, any other value is a type error.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { channels } from './channel.ts'
import { eventTypes } from './event-types.ts'
import { suppressionReasons } from './suppression.ts'

export type Metrics = ReturnType<typeof createMetrics>

/** The values of each label. */
type LabelSets = Readonly<Record<string, readonly string[]>>
type LabelsOf<Sets extends LabelSets> = { readonly [Name in keyof Sets]: Sets[Name][number] }

const kinds = ['captcha', 'notice'] as const

/** Work that no request waits for. */
export type BackgroundTask = (typeof backgroundTasks)[number]

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

const jobStates = ['waiting', 'prioritized', 'delayed', 'active'] as const

const requestBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]
const sendBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
/** The longest time of a timer of Node. */
const longestTimeoutMs = 2 ** 31 - 1

const waitBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]

const receiptResults = [
  'delivered',
  'failed',
  ...suppressionReasons,
  'opted_in',
  'repeated',
  'early',
  'unmatched',
  'other_recipient',
  'malformed',
  'forged',
] as const

export function createMetrics(options: {
  process: 'api' | 'worker' | 'demo' | 'embedded'
  /** The names under `providers:` in the policy file. */
  providers?: readonly string[]
  /** The reasons why an accepted notice ends unsent. */
  unsentReasons?: readonly string[]
}) {
  const registry = new Registry()
  registry.setDefaultLabels({ process: options.process })
  collectProcessMetrics(registry)
  const registers = [registry]
  const providers = options.providers ?? []

  function counter<const Sets extends LabelSets>(name: string, help: string, sets: Sets) {
    const made = new Counter({ name, help, labelNames: Object.keys(sets), registers })
    for (const labels of combinations(sets)) made.inc(labels, 0)
    return {
      inc: (labels: LabelsOf<Sets>, by = 1) => made.inc(labels, by),
      get: () => made.get(),
    }
  }

  function histogram<const Sets extends LabelSets>(
    name: string,
    help: string,
    buckets: readonly number[],
    sets: Sets,
  ) {
    const labelNames = Object.keys(sets)
    const made = new Histogram({ name, help, labelNames, buckets: [...buckets], registers })
    for (const labels of combinations(sets)) made.zero(labels)
    return {
      observe: (labels: LabelsOf<Sets>, value: number) => made.observe(labels, value),
      zero: (labels: LabelsOf<Sets>) => made.zero(labels),
    }
  }

  /**
   * A gauge of shared state (the queue, the tables). Every process measures it at each scrape, so all report the same
   * value. NaN while the measurement fails.
   */
  function measured<const Sets extends LabelSets>(name: string, help: string, sets: Sets) {
    const labelNames = Object.keys(sets)
    const made = new Gauge({ name, help, labelNames, registers })
    return {
      async measure(
        read: () => Promise<readonly (LabelsOf<Sets> & { value: number })[]>,
      ): Promise<void> {
        const samples = await read().catch(() => [])
        // Not before the read: another scrape may read the gauge meanwhile.
        for (const labels of combinations(sets)) made.set(labels, Number.NaN)
        for (const sample of samples) {
          made.set(
            Object.fromEntries(labelNames.map((label) => [label, sample[label]])),
            sample.value,
          )
        }
      },
    }
  }

  const requests = counter(
    'postern_http_requests_total',
    'Requests answered, by route, method and status.',
    { route: [] as string[], method: [] as string[], status: [] as string[] },
  )
  const shed = counter(
    'postern_shed_total',
    'Requests answered 503 because too many of their kind were under way. No server failed.',
    { route: [] as string[] },
  )
  const requestSeconds = histogram(
    'postern_http_request_duration_seconds',
    'Time from the first byte of a request to its answer, by route.',
    requestBuckets,
    { route: [] as string[] },
  )
  const rejected = counter(
    'postern_rejected_total',
    'Requests refused by a limit, by policy and rule.',
    { policy: [] as string[], rule: [] as string[] },
  )
  const observed = counter(
    'postern_observed_total',
    'Requests that a rule in mode observe would have refused.',
    { policy: [] as string[], rule: [] as string[] },
  )

  return {
    registry,

    /** Starts the counters of a route at 0, one per possible answer. */
    startRequestsAtZero(route: string, answers: readonly { method: string; status: number }[]) {
      requestSeconds.zero({ route })
      shed.inc({ route }, 0)
      for (const { method, status } of answers) {
        requests.inc({ route, method, status: String(status) }, 0)
      }
    },

    /** Starts the counters of the policy file's rules at 0, at start and after each reload. */
    startRulesAtZero(policies: Readonly<Record<string, readonly { name: string }[]>>) {
      for (const [policy, rules] of Object.entries(policies)) {
        for (const { name: rule } of rules) {
          rejected.inc({ policy, rule }, 0)
          observed.inc({ policy, rule }, 0)
        }
      }
    },

    ready: new Gauge({
      name: 'postern_ready',
      help: '1 while this process is ready, 0 while /readyz reports a reason.',
      registers,
    }),
    requests,
    shed,
    requestSeconds,
    waitSeconds: histogram(
      'postern_http_wait_seconds',
      'Time that a request with a key, or a call in process, waited at its socket and for its turn.',
      requestBuckets,
      {},
    ),
    refusalSeconds: histogram(
      'postern_refusal_duration_seconds',
      'Time from the first byte of a request to its refusal by a limit or a lock.',
      requestBuckets,
      {},
    ),
    accepted: counter('postern_accepted_total', 'Sends answered with 202.', {
      kind: kinds,
      channel: channels,
    }),
    testSends: counter(
      'postern_test_sends_total',
      'Sends to test recipients answered with 202. They send no message and count in no other metric of sends.',
      { channel: channels },
    ),
    rejected,
    observed,
    checks: counter(
      'postern_checks_total',
      'Checked codes, by result: passed, mismatch, gone, refused.',
      { result: ['passed', 'mismatch', 'gone', 'refused'] },
    ),
    challenges: counter(
      'postern_challenges_total',
      'Challenges offered, and their answers by result.',
      {
        result: [
          'offered',
          'solved',
          'given_back',
          'wrong',
          'expired',
          'used',
          'malformed',
          'unavailable',
        ],
      },
    ),
    signIns: counter('postern_console_sign_ins_total', 'Sign-ins to the console, by result.', {
      outcome: ['ok', 'wrong', 'not_operator', 'wait'],
    }),
    sends: counter('postern_sends_total', 'Calls of a provider, by its answer.', {
      provider: providers,
      outcome: [
        'accepted',
        'rejected',
        'invalid_recipient',
        'postponed',
        'throttled',
        'unavailable',
        'unknown',
      ],
    }),
    sendsWithoutId: counter(
      'postern_sends_without_id_total',
      'Calls that a provider accepted without the id of a message.',
      { provider: providers },
    ),
    deferred: counter(
      'postern_sends_deferred_total',
      'Times a provider was not called: paused, circuit, busy, pace, quota, limiter.',
      { provider: providers, reason: ['paused', 'circuit', 'busy', 'pace', 'quota', 'limiter'] },
    ),
    circuitOpen: new Gauge({
      name: 'postern_provider_circuit_open',
      help: '1 while this worker does not call a failing provider, else 0.',
      labelNames: ['provider'],
      registers,
    }),
    postponing: new Gauge({
      name: 'postern_provider_postponing',
      help: '1 while this provider postpones nearly all recipients of this worker, else 0.',
      labelNames: ['provider'],
      registers,
    }),
    receipts: counter(
      'postern_receipts_total',
      'Receipts of providers: delivered, failed, bounced, complained, opted_out and opted_in (they had an effect), repeated, early (kept until the notice is sent), unmatched, other_recipient (the id of a message to another number), malformed, forged.',
      {
        provider: providers,
        result: receiptResults,
      },
    ),
    conversions: counter(
      'postern_conversions_total',
      'Codes that a provider accepted: passed (typed in time), unanswered (their time has ended).',
      { provider: providers, channel: channels, outcome: ['passed', 'unanswered'] },
    ),
    suppressions: counter(
      'postern_suppressions_total',
      'Recipients that get no messages from now on, by the provider that reported it and the reason: bounced, complained, opted_out.',
      { provider: providers, reason: suppressionReasons },
    ),
    suppressed: counter(
      'postern_suppressed_total',
      'Sends refused because of a suppression of the recipient, by reason.',
      { kind: kinds, channel: channels, reason: suppressionReasons },
    ),
    refunds: counter(
      'postern_refunds_total',
      'Receipts by which a provider gave back the price of a message that it did not deliver.',
      { provider: providers },
    ),
    sendSeconds: histogram(
      'postern_send_duration_seconds',
      'Time a provider took to answer.',
      sendBuckets,
      { provider: providers },
    ),
    finished: counter(
      'postern_notices_finished_total',
      'Notices in a final state, by state: sent, failed, expired.',
      { kind: kinds, channel: channels, state: ['sent', 'failed', 'expired'] },
    ),
    unsent: counter(
      'postern_notices_unsent_total',
      'Accepted notices that ended unsent, by error.',
      {
        kind: kinds,
        channel: channels,
        reason: options.unsentReasons ?? [],
      },
    ),
    acceptedToSentSeconds: histogram(
      'postern_accepted_to_sent_seconds',
      'Time from the 202 to the acceptance by a provider.',
      waitBuckets,
      { kind: kinds, channel: channels },
    ),
    reconciled: new Counter({
      name: 'postern_reconciled_total',
      help: 'Notices without a job that were put back on the queue.',
      registers,
    }),
    backgroundFailures: counter(
      'postern_background_failures_total',
      'Failures of background tasks. Each task runs again.',
      { task: backgroundTasks },
    ),
    logDropped: new Counter({
      name: 'postern_log_lines_dropped_total',
      help: 'Log lines dropped because standard output was slow or closed.',
      registers,
    }),
    recordsDropped: counter(
      'postern_records_dropped_total',
      'Refusals and checks that were only counted because there were too many (history), and decisions that were not counted either because PostgreSQL did not answer (sums).',
      { record: ['history', 'sums'] },
    ),
    events: counter(
      'postern_events_total',
      'Attempts to send an event to its receiver, by outcome: taken, failed, given_up.',
      { type: eventTypes, outcome: ['taken', 'failed', 'given_up'] },
    ),
    oldestEventSeconds: measured(
      'postern_oldest_event_seconds',
      'Age of the oldest undelivered event.',
      {},
    ),
    queueDepth: measured('postern_queue_depth', 'Jobs on the queue, by channel and job state.', {
      channel: channels,
      state: jobStates,
    }),
    scheduled: measured(
      'postern_scheduled_notices',
      'Notices that wait for their sendAt, up to 100,000.',
      {},
    ),
    oldestPendingSeconds: measured(
      'postern_oldest_pending_seconds',
      'Age of the oldest notice that has not reached a final state, by kind.',
      { kind: kinds },
    ),
  }
}

/**
 * Metrics that the client collects of every Node process. The two metrics of the event loop's utilization are left out.
 * The event loop's lag shows the same, and these two cost 29 series and a timer of 100 ms that never ends.
 */
function collectProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({
    register: registry,
    prefix: 'postern_',
    eventLoopUtilizationTimeout: longestTimeoutMs,
  })
  registry.removeSingleMetric('postern_nodejs_eventloop_utilization_summary')
  registry.removeSingleMetric('postern_nodejs_eventloop_utilization_histogram')
}

/** Every combination of label values; one empty combination without labels. */
function combinations<Sets extends LabelSets>(sets: Sets): LabelsOf<Sets>[] {
  let all: Record<string, string>[] = [{}]
  for (const [name, values] of Object.entries(sets)) {
    all = all.flatMap((labels) => values.map((value) => ({ ...labels, [name]: value })))
  }
  return all as LabelsOf<Sets>[]
}
