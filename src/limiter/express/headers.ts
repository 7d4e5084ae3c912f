import type { Decision, Refusal } from '../limiter.ts'
import type { WindowLimit } from '../policy/rule.ts'

/**
 * The fields of draft-ietf-httpapi-ratelimit-headers-10, and `Retry-After` on a refusal.
 *
 * `RateLimit-Policy` names the windows of the policy (of a refusal, unless `windows` are given, only
 * its own), `RateLimit` the one that matters now: the refusing one, with the seconds to wait, or the
 * one with the least left that refuses at all. Seconds are rounded up, so that 1 ms left is never "try again now".
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
 * The problem type of a refusal by the same draft, and its member. A lock follows a suspicious pattern; any other refusal
 * is a used quota. The name is the one in `RateLimit-Policy`.
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

/** Printable ASCII; a cron expression is too. */
const plainName = (policy: string, { rule, window }: NamedWindow) =>
  `${policy}/${rule} ${window.replaceAll(/[^\x20-\x7e]|["\\]/g, '')}`

type NamedWindow = { rule: string; window: string }
