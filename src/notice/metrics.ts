import { channels } from '../base/channel.ts'
import type { Meter } from '../base/meter.ts'
import { receiptOutcomes } from '../base/receipt.ts'
import { suppressionReasons } from '../base/suppression.ts'
import { jobStates } from './job.ts'
import { noticeKinds } from './states.ts'

export type NoticeMetrics = ReturnType<typeof noticeMetrics>

/** `providers`: the names under `providers:` in the policy file. */
export const noticeMetrics = ({ counter, measured }: Meter, providers: readonly string[]) => ({
  accepted: counter('postern_accepted_total', 'Sends answered with 202.', {
    kind: noticeKinds,
    channel: channels,
  }),
  testSends: counter(
    'postern_test_sends_total',
    'Sends to test recipients answered with 202. They send no message and count in no other metric of sends.',
    { channel: channels },
  ),
  suppressed: counter(
    'postern_suppressed_total',
    'Sends refused because of a suppression of the recipient, by reason.',
    { kind: noticeKinds, channel: channels, reason: suppressionReasons },
  ),
  receipts: counter(
    'postern_receipts_total',
    'Receipts of providers: delivered, failed, bounced, complained, opted_out and opted_in (they had an effect), repeated, early (kept until the notice is sent), unmatched, other_recipient (the id of a message to another number), malformed, forged.',
    {
      provider: providers,
      result: [
        ...receiptOutcomes,
        'opted_in',
        'repeated',
        'early',
        'unmatched',
        'other_recipient',
        'malformed',
        'forged',
      ],
    },
  ),
  suppressions: counter(
    'postern_suppressions_total',
    'Recipients that get no messages from now on, by the provider that reported it and the reason: bounced, complained, opted_out.',
    { provider: providers, reason: suppressionReasons },
  ),
  refunds: counter(
    'postern_refunds_total',
    'Receipts by which a provider gave back the price of a message that it did not deliver.',
    { provider: providers },
  ),
  conversions: counter(
    'postern_conversions_total',
    'Codes that a provider accepted: passed (typed in time), unanswered (their time has ended).',
    { provider: providers, channel: channels, outcome: ['passed', 'unanswered'] },
  ),
  oldestEventSeconds: measured(
    'postern_oldest_event_seconds',
    'Age of the oldest undelivered event.',
    {},
  ),
  queueDepth: measured('postern_queue_depth', 'Jobs on the queues, by state.', {
    channel: channels,
    kind: noticeKinds,
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
    { kind: noticeKinds },
  ),
})
