/**
 * The pause before the next attempt. It doubles from `firstMs` with every attempt, up to `longestMs`. Half of the pause
 * is random, so that a server that is back does not get all attempts at once.
 */
export function backoffMs(tries: number, firstMs: number, longestMs: number): number {
  const doublings = Math.min(Math.max(0, tries - 1), 20)
  const fullMs = Math.min(firstMs * 2 ** doublings, longestMs)
  return (fullMs / 2) * (1 + Math.random())
}
