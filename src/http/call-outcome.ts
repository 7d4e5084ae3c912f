/** The outcomes of calls in process: the codes and members of HTTP answers, as values. */
import { type FieldError, type ShownFieldError, shownFieldErrors } from '../base/field-errors.ts'
import type { Problem } from '../base/problems.ts'
import type { InvalidRequest, Limited } from '../rules/refused.ts'
import { type Facts, refusalFacts } from './request-record.ts'

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

/** The outcome for a problem that a call threw. */
export const outcomeIn = ({ code, members, says }: Problem) =>
  shown<never>({ outcome: code, ...members, ...(says ? { because: says } : {}) } as never)

const successes = ['accepted', 'passed', 'canceled']

/** Facts for the log line of a plugin's request. Outcomes of reads are no facts of the request. */
export function factsOf({ outcome, ...members }: { outcome: string; id?: string }): Facts {
  if (['found', 'not_found'].includes(outcome)) return {}
  if (!successes.includes(outcome)) return refusalFacts(outcome, members)
  return members.id ? { noticeId: members.id } : {}
}
