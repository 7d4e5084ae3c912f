import type { Lane } from './demo-state.ts'

/** From when each permit in use was taken to when it is back, the newest first. */
export function barsOf(lane: Lane, readAtMs: number): { fromMs: number; toMs: number }[] {
  const { takenAtMs, resetsInMs, windowMs, limit, kind } = lane
  const resetsAtMs = readAtMs + resetsInMs
  return takenAtMs.map((fromMs, newer) => {
    // To a bucket permits come back one after the other, that of the newest use last.
    if (kind === 'bucket') return { fromMs, toMs: resetsAtMs - (newer * windowMs) / limit }
    return { fromMs, toMs: kind === 'sliding' && windowMs > 0 ? fromMs + windowMs : resetsAtMs }
  })
}
