/** Returns a function that returns true at most `perSecond` times a second. */
export function createSample(perSecond: number): () => boolean {
  let second = 0
  let count = 0
  return () => {
    const now = Math.floor(performance.now() / 1_000)
    count = now === second ? count + 1 : 1
    second = now
    return count <= perSecond
  }
}
