import type { Decision, Refusal } from '../limiter.ts'
import type { WindowLimit } from '../policy/rule.ts'

/**
 * The headers of draft-ietf-httpapi-ratelimit-headers-10, and `Retry-After` on a refusal.
 *
 * `RateLimit-Policy` lists `windows`. Without `windows`, a refusal lists the window that refused, and an admission
 * none. `RateLimit` names one window. On a refusal it is the refusing window, with the wait in seconds. On an admission
 * it is the window with the fewest uses left; rules that only observe are skipped. Seconds are rounded up, so that a
 * wait of 1 ms is never 0.
 */
export function rateLimitHeaders(
  policy: string,
  decision: Decision,
  windows: readonly WindowLimit[] = decision.admitted ? [] : [decision],
): Record<string, string> {
  const headers: Record<string, string> = {}
  const policies = windows.map((one) => {
    const seconds = one.windowMs > 0 ? `;w=${Math.ceil(one.windowMs / 1_000)}` : ''
    return `${nameOf(policy, one)};q=${one.limit}${seconds}`
  })
  if (policies.length > 0) headers['RateLimit-Policy'] = policies.join(', ')
  if (!decision.admitted) {
    const seconds = Math.max(1, Math.ceil(decision.retryAfterMs / 1_000))
    headers.RateLimit = `${nameOf(policy, decision)};r=0;t=${seconds}`
    headers['Retry-After'] = String(seconds)
    return headers
  }
  const [tightest] = decision.remaining
    .filter(({ isObserved }) => !isObserved)
    .sort((a, b) => a.left - b.left)
  if (tightest) headers.RateLimit = `${nameOf(policy, tightest)};r=${tightest.left}`
  return headers
}

/**
 * The problem type that the same draft defines for a refusal, with the member that belongs to it. A lock is "abnormal
 * usage"; any other refusal is a used-up quota. The name in `violated-policies` is the one in `RateLimit-Policy`.
 */
export function rateLimitProblem(policy: string, { kind, rule, window }: Refusal) {
  const type = kind === 'lockout' ? 'abnormal-usage-detected' : 'quota-exceeded'
  return {
    type: `${problemTypes}#${type}`,
    'violated-policies': [plainName(policy, { rule, window })],
  }
}

const problemTypes = 'https://iana.org/assignments/http-problem-types'

/** A structured-field string (RFC 9651). */
const nameOf = (policy: string, window: NamedWindow) => `"${plainName(policy, window)}"`

/** Keeps printable ASCII only, as the headers demand. Windows contain no other characters. */
const plainName = (policy: string, { rule, window }: NamedWindow) =>
  `${policy}/${rule} ${window.replaceAll(/[^\x20-\x7e]|["\\]/g, '')}`

type NamedWindow = { rule: string; window: string }
