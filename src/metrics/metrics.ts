/**
 * Every metric of Postern, its labels and its help, in one list. Labels take values from closed sets
 * only (routes, rules, providers, states): no recipient, address, IP or path ever makes a new series.
 * docs/metrics.md and the Grafana dashboard are held to this list by a test.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export type Metrics = ReturnType<typeof createMetrics>

const requestBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]
const sendBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const waitBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]

export function createMetrics(options: { process: 'api' | 'worker' | 'demo' }) {
  const registry = new Registry()
  registry.setDefaultLabels({ process: options.process })
  collectDefaultMetrics({ register: registry, prefix: 'postern_' })
  const registers = [registry]

  return {
    registry,
    ready: new Gauge({
      name: 'postern_ready',
      help: '1 while this process can do its work, 0 when /readyz says why it can not.',
      registers,
    }),
    requests: new Counter({
      name: 'postern_http_requests_total',
      help: 'Requests answered, by route, method and status.',
      labelNames: ['route', 'method', 'status'],
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'postern_http_request_duration_seconds',
      help: 'Time from the first byte of a request to its answer, by route.',
      labelNames: ['route'],
      buckets: requestBuckets,
      registers,
    }),
    accepted: new Counter({
      name: 'postern_accepted_total',
      help: 'Sends answered with 202.',
      labelNames: ['kind', 'channel'],
      registers,
    }),
    rejected: new Counter({
      name: 'postern_rejected_total',
      help: 'Requests refused by a limit, by policy and rule.',
      labelNames: ['policy', 'rule'],
      registers,
    }),
    observed: new Counter({
      name: 'postern_observed_total',
      help: 'Requests that a rule in mode observe would have refused.',
      labelNames: ['policy', 'rule'],
      registers,
    }),
    checks: new Counter({
      name: 'postern_checks_total',
      help: 'Checked codes, by result: passed, mismatch, gone, refused.',
      labelNames: ['result'],
      registers,
    }),
    sends: new Counter({
      name: 'postern_sends_total',
      help: 'Calls of a provider, by its answer.',
      labelNames: ['provider', 'outcome'],
      registers,
    }),
    held: new Counter({
      name: 'postern_sends_held_total',
      help: 'Times a provider was not called: paused, circuit, pace, quota, limiter.',
      labelNames: ['provider', 'reason'],
      registers,
    }),
    circuitOpen: new Gauge({
      name: 'postern_provider_circuit_open',
      help: '1 while this worker keeps away from a provider that failed, else 0.',
      labelNames: ['provider'],
      registers,
    }),
    receipts: new Counter({
      name: 'postern_receipts_total',
      help: 'Receipts of providers: applied, repeated, early (kept until the notice is sent), unmatched, malformed, forged.',
      labelNames: ['provider', 'result'],
      registers,
    }),
    sendSeconds: new Histogram({
      name: 'postern_send_duration_seconds',
      help: 'Time a provider took to answer.',
      labelNames: ['provider'],
      buckets: sendBuckets,
      registers,
    }),
    finished: new Counter({
      name: 'postern_notices_finished_total',
      help: 'Notices that left the queue for good, by state: sent, failed, expired.',
      labelNames: ['kind', 'channel', 'state'],
      registers,
    }),
    acceptedToSentSeconds: new Histogram({
      name: 'postern_accepted_to_sent_seconds',
      help: 'Time from the 202 to the acceptance by a provider.',
      labelNames: ['kind', 'channel'],
      buckets: waitBuckets,
      registers,
    }),
    reconciled: new Counter({
      name: 'postern_reconciled_total',
      help: 'Notices that nobody carried and that went back on the queue.',
      registers,
    }),
    logDropped: new Counter({
      name: 'postern_log_lines_dropped_total',
      help: 'Log lines that standard output did not take in time or at all.',
      registers,
    }),
    events: new Counter({
      name: 'postern_events_total',
      help: 'Tries to tell an event to its receiver, by outcome: taken, failed, given_up.',
      labelNames: ['type', 'outcome'],
      registers,
    }),
    oldestEventSeconds: new Gauge({
      name: 'postern_oldest_event_seconds',
      help: 'Age of the oldest event that no receiver has taken yet.',
      registers,
    }),
    queueDepth: new Gauge({
      name: 'postern_queue_depth',
      help: 'Jobs on the queue, by channel and job state.',
      labelNames: ['channel', 'state'],
      registers,
    }),
    oldestPendingSeconds: new Gauge({
      name: 'postern_oldest_pending_seconds',
      help: 'Age of the oldest notice that has not reached a final state.',
      registers,
    }),
  }
}
