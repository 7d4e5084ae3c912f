import type { Lane } from './demo-state.ts'

/** One bar for each use, from its beginning to its end. The newest is first. */
export function barsOf(lane: Lane, readAtMs: number): { fromMs: number; toMs: number }[] {
  const { takenAtMs, resetsInMs, windowMs, limit, kind } = lane
  const resetsAtMs = readAtMs + resetsInMs
  return takenAtMs.map((fromMs, newer) => {
    // The uses of a bucket end one after the other, the newest last.
    if (kind === 'bucket') return { fromMs, toMs: resetsAtMs - (newer * windowMs) / limit }
    return { fromMs, toMs: kind === 'sliding' && windowMs > 0 ? fromMs + windowMs : resetsAtMs }
  })
}
