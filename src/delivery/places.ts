/**
 * Places in line for messages that are sent away and come back. Were all told the same time, all would
 * come back together and all but one be turned away again; so each is told a later one. Codes have a line of their own:
 * they come back as soon as there is room, whatever bulk waits.
 */
export function createPlaces(
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
   * How long to stay away: at least `soonestMs`, and `spacingMs` longer than the one before. The line behind the
   * soonest place is no longer than `longestMs`.
   */
  return function waitMs(soonestMs: number, spacingMs: number): number {
    const nowMs = performance.now()
    const soonestAtMs = nowMs + soonestMs
    lastMs = Math.min(Math.max(soonestAtMs, lastMs + spacingMs), soonestAtMs + longestMs)
    return lastMs - nowMs
  }
}
