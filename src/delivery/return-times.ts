/**
 * Times at which messages come back that a provider sent away. Each message gets a later time than the one before.
 * Otherwise all would come back together, and all but one would be sent away again. Codes have a separate line, so bulk
 * messages never move their return times.
 */
export function createReturnTimes(
  longestUrgentRetryMs = Number.POSITIVE_INFINITY,
  longestBulkRetryMs = longestUrgentRetryMs,
) {
  const [urgent, bulk] = [createLine(longestUrgentRetryMs), createLine(longestBulkRetryMs)]
  return (isUrgent: boolean, soonestRetryMs: number, spacingMs: number) =>
    (isUrgent ? urgent : bulk)(soonestRetryMs, spacingMs)
}

export const deferralReasons = ['paused', 'circuit', 'busy', 'pace', 'quota', 'limiter'] as const

/** A provider was not called. */
export interface Deferred {
  kind: 'deferred'
  reason: (typeof deferralReasons)[number]
  retryInMs: number
}

function createLine(longestRetryMs: number) {
  let lastAtMs = 0
  /**
   * Time until the message comes back: at least `soonestRetryMs`, and `spacingMs` after the previous message. It is at most
   * `soonestRetryMs + longestRetryMs`.
   */
  return function retryInMs(soonestRetryMs: number, spacingMs: number): number {
    const nowMs = performance.now()
    const soonestAtMs = nowMs + soonestRetryMs
    lastAtMs = Math.min(Math.max(soonestAtMs, lastAtMs + spacingMs), soonestAtMs + longestRetryMs)
    return lastAtMs - nowMs
  }
}

/** The longest wait for a limit, except for messages that are too many for it. */
export const longestLimitRetryMs = 60_000
const soonestCheckRetryMs = 20_000
/** Each return costs two SQL statements and a question to the limiter, so they have this distance. */
const checkSpacingMs = 5

/**
 * Shortens long waits for a limit. Meanwhile an operator may raise the limit, a provider may end its pause, or a new worker may
 * have another provider in the route. So a message comes back within a minute, even if its limit then sends it away
 * again. Only more than 8,000 waiting messages need longer; upkeep/bring-forward.ts brings those forward.
 */
export function createCheckTimes() {
  const line = createLine(Number.POSITIVE_INFINITY)
  return function checkRetryMs(retryInMs: number): number {
    if (retryInMs <= longestLimitRetryMs) return retryInMs
    return Math.min(retryInMs, line(soonestCheckRetryMs, checkSpacingMs))
  }
}

/** Places in a line for the next minute, as `createReturnTimes` gives them. Without a place, a message comes back to check. */
export function createPlaces() {
  const checkRetryMs = createCheckTimes()
  let lastAtMs = 0
  return function retryInMs(soonestRetryMs: number, spacingMs: number): number {
    const nowMs = performance.now()
    const placeAtMs = Math.max(nowMs + soonestRetryMs, lastAtMs + spacingMs)
    // A message that returns only to check takes no place. Otherwise the line would grow with each check.
    if (placeAtMs - nowMs <= longestLimitRetryMs) lastAtMs = placeAtMs
    return checkRetryMs(placeAtMs - nowMs)
  }
}
