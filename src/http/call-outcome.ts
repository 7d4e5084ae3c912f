/** The outcomes of calls in process: the codes and members of HTTP answers, as values. */
import { type FieldError, type ShownFieldError, shownFieldErrors } from '../base/field-errors.ts'
import type { InvalidRequest, Limited } from '../rules/refused.ts'

/** `outcome` is `accepted`, `passed` or the error code that HTTP would answer, with the members of that answer. */
export type CallOutcome<Outcome> =
  | Exclude<Outcome, Limited | InvalidRequest>
  | Pick<Limited, 'outcome' | 'policy' | 'rule' | 'window' | 'retryAfterMs' | 'message'>
  | { outcome: 'invalid_request'; errors: readonly ShownFieldError[] }
  /** Redis or PostgreSQL is out of reach, or this Postern is closed. Uses are given back. */
  | { outcome: 'unavailable' }

/** A refusal in English, without the limiter's internal members. */
export function shown<Outcome extends { outcome: string }>(made: Outcome): CallOutcome<Outcome> {
  if (made.outcome === 'invalid_request') {
    const { errors } = made as unknown as { errors: readonly FieldError[] }
    return { outcome: made.outcome, errors: shownFieldErrors(errors) } as never
  }
  if (made.outcome !== 'limited' && made.outcome !== 'locked') return made as never
  const { outcome, policy, rule, window, retryAfterMs, message } = made as unknown as Limited
  return { outcome, policy, rule, window, retryAfterMs, ...(message ? { message } : {}) }
}
