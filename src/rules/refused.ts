/** The reason why a request failed, as a value: the error code, and the members of its answer. */
import type { FieldError } from '../base/field-errors.ts'
import type { FieldWord, Values } from '../base/words.ts'
import type { Refusal } from '../limiter/index.ts'
import type { RefusedRecipient } from '../recipient/normalise-recipient.ts'

export type InvalidRequest = { outcome: 'invalid_request'; errors: readonly FieldError[] }

/** `policy` is the name that callers know, also for the variants for pages. */
export type Limited = Refusal & { outcome: 'limited' | 'locked'; policy: string }

export interface ChallengeRequired {
  outcome: 'challenge_required'
  /** The rule that requires the challenge, and its policy; absent if an answer was not accepted. */
  policy?: string
  rule?: string
  /** The challenge. The next request must contain its answer. */
  challenge: object
}

export type Refused =
  | InvalidRequest
  | Limited
  | RefusedRecipient
  | ChallengeRequired
  | { outcome: 'idempotency_in_progress' | 'idempotency_key_reused' }
  /** A verification that this app did not begin, or that has no way left. */
  | { outcome: 'not_found' | 'no_more_ways' }
  /** `reason` is for callers in process; over HTTP all of these are one answer. `unknown`: there is no such notice. */
  | { outcome: 'code_gone'; reason: 'expired' | 'tries' | 'used' | 'unknown' }
  /** `lockedForMs`: this guess reached the limit, and no guess is compared for this time. */
  | { outcome: 'code_mismatch'; triesLeft: number; lockedForMs?: number }

export function invalidRequest(path: string, word: FieldWord, values?: Values): InvalidRequest {
  return { outcome: 'invalid_request', errors: [{ path, word, ...(values ? { values } : {}) }] }
}

export function limitedBy(policy: string, refusal: Refusal): Limited {
  return { outcome: refusal.kind === 'lockout' ? 'locked' : 'limited', policy, ...refusal }
}
