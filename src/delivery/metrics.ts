import { channels } from '../base/channel.ts'
import type { Meter } from '../base/meter.ts'
import type { NoticeMetrics } from '../notice/metrics.ts'
import { callOutcomes, noticeKinds, unsentReasons } from '../notice/states.ts'
import { deferralReasons } from './lines.ts'

export type DeliveryMetrics = ReturnType<typeof deliveryMetrics> &
  Pick<NoticeMetrics, 'suppressions'>

const sendBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const waitBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]

/** `providers`: the names under `providers:` in the policy file. */
export const deliveryMetrics = (
  { counter, histogram, gauge }: Meter,
  providers: readonly string[],
) => ({
  sends: counter('postern_sends_total', 'Calls of a provider, by its answer.', {
    provider: providers,
    outcome: callOutcomes,
  }),
  sendsWithoutId: counter(
    'postern_sends_without_id_total',
    'Calls that a provider accepted without the id of a message.',
    { provider: providers },
  ),
  deferred: counter(
    'postern_sends_deferred_total',
    'Times a provider was not called: paused, circuit, busy, pace, quota, limiter.',
    { provider: providers, reason: deferralReasons },
  ),
  circuitOpen: gauge(
    'postern_provider_circuit_open',
    '1 while this worker does not call a failing provider, else 0.',
    ['provider'],
  ),
  postponing: gauge(
    'postern_provider_postponing',
    '1 while this provider postpones nearly all recipients of this worker, else 0.',
    ['provider'],
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
    { kind: noticeKinds, channel: channels, state: ['sent', 'failed', 'expired'] },
  ),
  unsent: counter('postern_notices_unsent_total', 'Accepted notices that ended unsent, by error.', {
    kind: noticeKinds,
    channel: channels,
    reason: unsentReasons,
  }),
  acceptedToSentSeconds: histogram(
    'postern_accepted_to_sent_seconds',
    'Time from the 202 to the acceptance by a provider.',
    waitBuckets,
    { kind: noticeKinds, channel: channels },
  ),
})
