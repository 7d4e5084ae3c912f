import { type FieldError, shownFieldErrors } from '../base/field-errors.ts'
import { preferredLanguage } from '../base/preferred-language.ts'
import { detailOf } from '../base/problem-detail.ts'
import { Problem, problems, problemType } from '../base/problems.ts'
import { type FieldWord, type Values, words } from '../base/words.ts'
import { rateLimitHeaders, rateLimitProblem } from '../limiter/index.ts'
import type { Refused } from '../rules/refused.ts'

export interface Answer {
  status: number
  headers?: Readonly<Record<string, string>>
  /** Sent as JSON; nothing when absent. */
  body?: unknown
  /** Sent unchanged; JSON unless `headers` contains a content-type. */
  text?: string | Buffer
}

export const problemMediaType = 'application/problem+json'

/** The problem document (RFC 9457) in the caller's language. */
export function problemAnswer(problem: Problem, acceptLanguage: string | undefined): Answer {
  const { code, members } = problem
  const { status } = problems[code]
  const { message: _, errors, ...shown } = members
  const { retryAfterMs } = members
  const language = preferredLanguage(acceptLanguage)
  const { title } = words[language].problems[code]
  const detail = detailOf(problem, language)
  const wrong = errors as readonly FieldError[] | undefined
  const headers: Record<string, string> = { 'content-type': problemMediaType }
  if (typeof retryAfterMs === 'number') {
    // Spelled as the limiter spells it. Another spelling would make a second header.
    headers['Retry-After'] = String(Math.ceil(retryAfterMs / 1_000))
  }
  return {
    status,
    headers: Object.assign(headers, problem.headers),
    body: {
      type: problemType(code),
      title,
      status,
      detail,
      code,
      ...shown,
      ...(wrong ? { errors: shownFieldErrors(wrong, language) } : {}),
    },
  }
}

export function invalid(path: string, word: FieldWord, values?: Values): Problem {
  return new Problem('invalid_request', { errors: [{ path, word, values }] })
}

/** The only place that turns an outcome of another room into an error. */
export function problemOf(refused: Refused): Problem {
  const { outcome, ...members } = refused
  if (refused.outcome === 'limited' || refused.outcome === 'locked') {
    const { policy, rule, window, retryAfterMs, message } = refused
    const named = rateLimitProblem(policy, refused)
    const shown = { ...named, policy, rule, retryAfterMs, ...(message ? { message } : {}) }
    return outcome === 'locked'
      ? new Problem(outcome, shown)
      : new Problem(outcome, { ...shown, window }, rateLimitHeaders(policy, refused))
  }
  if (refused.outcome === 'invalid_recipient') {
    return new Problem(outcome, {}, {}, refused.because)
  }
  // A stranger must not learn from an answer whether a code exists for this recipient.
  return new Problem(outcome, refused.outcome === 'code_gone' ? {} : members)
}
