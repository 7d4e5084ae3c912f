/**
 * Times at which messages come back that a provider sent away. Each message gets a later time than the one before.
 * Otherwise all would come back together, and all but one would be sent away again. Codes have a separate line, so bulk
 * messages never move their return times.
 */
export function createReturnTimes(
  longestUrgentMs = Number.POSITIVE_INFINITY,
  longestBulkMs = longestUrgentMs,
) {
  const [urgent, bulk] = [createLine(longestUrgentMs), createLine(longestBulkMs)]
  return (isUrgent: boolean, soonestMs: number, spacingMs: number) =>
    (isUrgent ? urgent : bulk)(soonestMs, spacingMs)
}

function createLine(longestMs: number) {
  let lastMs = 0
  /**
   * Time until the message comes back: at least `soonestMs`, and `spacingMs` after the previous message. It is at most
   * `soonestMs + longestMs`.
   */
  return function waitMs(soonestMs: number, spacingMs: number): number {
    const nowMs = performance.now()
    const soonestAtMs = nowMs + soonestMs
    lastMs = Math.min(Math.max(soonestAtMs, lastMs + spacingMs), soonestAtMs + longestMs)
    return lastMs - nowMs
  }
}
