/** Why a request came to nothing, as a value: the code of its error, and what the answer says besides. */
import type { FieldError } from '../base/problems.ts'
import type { Refusal } from '../limiter/index.ts'
import type { RefusedRecipient } from '../recipient/normalise-recipient.ts'

export type InvalidRequest = { outcome: 'invalid_request'; errors: readonly FieldError[] }

/** `policy` is the one that callers know: pages are asked variants of it. */
export type Limited = Refusal & { outcome: 'limited' | 'locked'; policy: string }

export interface ChallengeRequired {
  outcome: 'challenge_required'
  /** The rule that asks, and its policy; absent when an answer was not good. */
  policy?: string
  rule?: string
  /** To be solved, and sent with the next try. */
  challenge: object
}

export type Refused =
  | InvalidRequest
  | Limited
  | RefusedRecipient
  | ChallengeRequired
  | { outcome: 'idempotency_in_progress' | 'idempotency_key_reused' | 'code_gone' }
  /** `lockedForMs`: this guess used up what the limits allow, and none is compared for so long. */
  | { outcome: 'code_mismatch'; triesLeft: number; lockedForMs?: number }

export function invalidRequest(path: string, message: string): InvalidRequest {
  return { outcome: 'invalid_request', errors: [{ path, message }] }
}

export function limitedBy(policy: string, refusal: Refusal): Limited {
  return { outcome: refusal.kind === 'lockout' ? 'locked' : 'limited', policy, ...refusal }
}
