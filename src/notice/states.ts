/**
 * The life of a notice.
 *
 *   pending ──claim──▶ sending ──accepted──▶ sent ──receipt──▶ delivered
 *      ▲                  │                    └───receipt──▶ failed
 *      └───try again──────┤
 *                         ├──refused for good, or tries used up──▶ failed
 *   pending, sending ─────┴──its time is over──▶ expired
 *
 * - The row is the truth; a job on the queue only says "look at this row".
 * - `sending` means that a provider may be in the middle of a call: a notice is claimed when everything
 *   else is ready, right before the call, and what waits for anything of ours is `pending`.
 * - `due_at` says when an open row should next be carried. A claim moves it to the end of the claim, so
 *   a worker that dies is noticed by time alone.
 * - `claims` counts claims and is the fence: an outcome is written only while nothing has been claimed
 *   since, so a worker that was thought dead and comes back changes nothing.
 * - A row found in `sending` after its claim ended was in the hands of a process that died: whether
 *   the provider was called is unknown, and it is recorded as such a try. Should the process live after
 *   all and know better, before another has claimed the row, its word replaces the guess: that is the
 *   one way from `pending` to `sent`.
 * - Nothing leaves `delivered`, `failed` or `expired`. The database holds the same moves in a trigger.
 */
export const noticeStates = [
  'pending',
  'sending',
  'sent',
  'delivered',
  'failed',
  'expired',
] as const

export type NoticeState = (typeof noticeStates)[number]

/**
 * What a call came to: a provider's result, or afterwards its word on a call that was `unknown`:
 * `accepted` or `not_taken`. `src/delivery/meaning.ts` has what follows from each.
 */
export const outcomes = [
  'accepted',
  'rejected',
  'invalid_recipient',
  'postponed',
  'throttled',
  'unavailable',
  'unknown',
  'not_taken',
] as const

export type Outcome = (typeof outcomes)[number]

/**
 * One answered (or lost) call of a provider, or all calls in which it did not take the message for the same reason: an
 * outage may last for thousands of calls, and a row has one entry for them. Duration and detail are those of the latest.
 */
export interface Attempt {
  /** Null when the process that made the try died before it could say. */
  provider: string | null
  /** The first call, ISO 8601. */
  at: string
  outcome: Outcome
  durationMs: number
  detail?: string
  /** Calls, where there was more than one. */
  count?: number
  /** The latest of them, ISO 8601. */
  latestAt?: string
}
