/** Returns a function that returns true at most `most` times in each window, by default a second. */
export function createSample(most: number, windowMs = 1_000): (nowMs?: number) => boolean {
  let window = 0
  let count = 0
  return (nowMs = performance.now()) => {
    const now = Math.floor(nowMs / windowMs)
    count = now === window ? count + 1 : 1
    window = now
    return count <= most
  }
}
