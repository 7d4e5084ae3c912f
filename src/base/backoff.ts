/**
 * The pause before the next try: doubles from `firstMs` with every try, up to `longestMs`. Half of it is random, so that a
 * server that is back does not get all at once.
 */
export function backoffMs(
  tries: number,
  firstMs: number,
  longestMs: number,
  random: () => number = Math.random,
): number {
  const doublings = Math.min(Math.max(0, tries - 1), 20)
  const fullMs = Math.min(firstMs * 2 ** doublings, longestMs)
  return (fullMs / 2) * (1 + random())
}
