import { preferredLanguage } from '../base/preferred-language.ts'
import { Problem, problems } from '../base/problems.ts'
import { type Refusal, rateLimitHeaders } from '../limiter/index.ts'

export interface Answer {
  status: number
  headers?: Readonly<Record<string, string>>
  /** Sent as JSON; nothing when absent. */
  body?: unknown
  /** Sent as it is; JSON unless there is a content-type among `headers`. */
  text?: string | Buffer
}

export const problemMediaType = 'application/problem+json'

/** The answer that says what went wrong (RFC 9457), its `detail` in the caller's language. */
export function problemAnswer(problem: Problem, acceptLanguage: string | undefined): Answer {
  const { code, members } = problem
  const { status, title } = problems[code]
  // A message given with the problem (a rule's own words) is the detail.
  const { message = problems[code], ...shown } = members
  const { retryAfterMs } = members
  const headers: Record<string, string> = { 'content-type': problemMediaType }
  let detail =
    typeof message === 'string'
      ? message
      : (message as Readonly<Record<'en' | 'zh', string>>)[preferredLanguage(acceptLanguage)]
  if (typeof retryAfterMs === 'number') {
    const seconds = String(Math.ceil(retryAfterMs / 1_000))
    detail = detail.replace('{seconds}', seconds)
    // Spelled as the limiter spells it: two spellings would be two headers.
    headers['Retry-After'] = seconds
  }
  return {
    status,
    headers: Object.assign(headers, problem.headers),
    body: { type: `urn:postern:problem:${code}`, title, status, detail, code, ...shown },
  }
}

export function invalid(path: string, message: string): Problem {
  return new Problem('invalid_request', { errors: [{ path, message }] })
}

/** What the limiter refused. */
export function refusalProblem(policy: string, refusal: Refusal): Problem {
  const { rule, window, retryAfterMs, kind, message } = refusal
  const shared = { policy, rule, retryAfterMs, ...(message ? { message } : {}) }
  return kind === 'lockout'
    ? new Problem('locked', shared)
    : new Problem('limited', { ...shared, window }, rateLimitHeaders(policy, refusal))
}
