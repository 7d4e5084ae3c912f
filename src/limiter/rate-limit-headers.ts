import type { Decision, WindowLimit } from './limiter.ts'

/**
 * The fields of draft-ietf-httpapi-ratelimit-headers-10, and `Retry-After` on a refusal.
 *
 * `RateLimit-Policy` names every window, `RateLimit` the one that matters now: the refusing one, with
 * the seconds to wait, or the one with the least left. Seconds are rounded up, so that 1 ms left is
 * never "try again now".
 */
export function rateLimitHeaders(
  windows: readonly WindowLimit[],
  decision: Decision,
): Record<string, string> {
  const policy = windows.map(({ rule, window, limit, windowMs }) => {
    const seconds = windowMs === undefined ? '' : `;w=${Math.ceil(windowMs / 1_000)}`
    return `${quoted(`${rule} ${window}`)};q=${limit}${seconds}`
  })
  const headers: Record<string, string> =
    policy.length > 0 ? { 'RateLimit-Policy': policy.join(', ') } : {}
  if (!decision.admitted) {
    const seconds = Math.max(1, Math.ceil(decision.retryAfterMs / 1_000))
    headers.RateLimit = `${quoted(`${decision.rule} ${decision.window}`)};r=0;t=${seconds}`
    headers['Retry-After'] = String(seconds)
    return headers
  }
  let tightest = decision.remaining[0]
  for (const one of decision.remaining) if (tightest && one.left < tightest.left) tightest = one
  if (tightest) {
    headers.RateLimit = `${quoted(`${tightest.rule} ${tightest.window}`)};r=${tightest.left}`
  }
  return headers
}

/** A structured-field string (RFC 9651): names and windows are plain ASCII without quotes. */
function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]/g, '\\$&')}"`
}
