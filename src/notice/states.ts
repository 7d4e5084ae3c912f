/**
 * The life of a notice.
 *
 *   pending ──claim──▶ sending ──accepted──▶ sent ──receipt──▶ delivered
 *      ▲                  │                    └───receipt──▶ failed
 *      └───try again──────┤
 *                         ├──rejected, or attempts used up──▶ failed
 *   pending, sending ─────┴──time to live ends──▶ expired
 *
 * - The row is the truth; a job on the queue is only a hint to read the row.
 * - `sending`: a provider may be in the middle of a call. A notice is claimed right before the call, when everything
 *   else is ready. While it waits for a limit or a turn, it is `pending`. Before a fast provider, some claimed notices
 *   wait for some milliseconds.
 * - `due_at`: the next time at which an open row should be sent. A claim moves it to the end of the claim, so a dead
 *   worker is noticed by time alone.
 * - `claims`: the number of claims, which is the fence. An outcome is written only if nothing has claimed the row
 *   since. So a worker that was wrongly thought dead changes nothing when it returns.
 * - A row still in `sending` after its claim ended belonged to a dead process, or PostgreSQL was away. Only the reconciler
 *   frees it. The provider may have been called, so an attempt with an unknown outcome is recorded. If the process is
 *   alive and reports before the next claim, its report replaces that attempt. Only this moves a notice from `pending` to
 *   `sent`.
 * - `delivered`, `failed` and `expired` are final. A trigger in the database allows only these moves.
 */
import { suppressionReasons } from '../base/suppression.ts'

export const noticeStates = [
  'pending',
  'sending',
  'sent',
  'delivered',
  'failed',
  'expired',
] as const

export const noticeKinds = ['captcha', 'notice'] as const

export type NoticeKind = (typeof noticeKinds)[number]

export type NoticeState = (typeof noticeStates)[number]

/** The errors of a notice that ended unsent: `error` of the notice. docs/http.md describes each. */
export const unsentReasons = [
  'invalid_recipient',
  ...suppressionReasons,
  'rejected',
  'tries_used_up',
  'outcome_unknown',
  'too_late',
  'provider_away',
  'postponed',
  'no_route',
  'not_rendered',
  'code_gone',
  'code_lost',
] as const
export type UnsentReason = (typeof unsentReasons)[number]

/** The results of a call of a provider. `src/delivery/retry.ts` defines the consequences of each. */
export const callOutcomes = [
  'accepted',
  'rejected',
  'invalid_recipient',
  'postponed',
  'throttled',
  'unavailable',
  'unknown',
] as const

/** `not_taken`, and sometimes `accepted`, are later reports on a call with outcome `unknown`. */
export const attemptOutcomes = [...callOutcomes, 'not_taken'] as const

export type AttemptOutcome = (typeof attemptOutcomes)[number]

/**
 * One call of a provider, or all calls that failed for the same temporary reason. An outage may last for thousands of
 * calls, and a row has one entry for them. Duration and detail are of the latest call.
 */
export interface Attempt {
  /** Null if a process of an earlier version died, which did not store the provider of its claim. */
  provider: string | null
  /** The kind of the provider, for an unknown outcome. Another kind under the same name knows nothing about the call. */
  kind?: string | null | undefined
  /** Time of the first call, ISO 8601. */
  at: string
  outcome: AttemptOutcome
  durationMs: number
  detail?: string | undefined
  /** Number of calls, if more than one. */
  count?: number
  /** Time of the latest call, ISO 8601. */
  latestAt?: string
  /** For `postponed`: the provider is not called with the message before this time of PostgreSQL's clock, ISO 8601. */
  againAt?: string | undefined
}
