/**
 * A flood against one subject must not reach Redis. A refusal holds until a known time, and ends
 * earlier only by a reset, a release or a policy change, so it can be answered from memory:
 *
 * - Redis decided some time between sending and receiving. The memory refuses until `sent + wait` by
 *   the monotonic clock, which is never too long, and names the wait that `received + wait` leaves,
 *   which is never too short.
 * - A reset in *this* process drops it at once; one in another process is seen within `maxAgeMs`.
 * - It holds for the permits that were refused and for more, not for fewer.
 * - Bounded: two generations of half the size each; the older one goes at once.
 */
import type { Refusal } from './limiter.ts'

interface Remembered {
  readonly refusal: Refusal
  readonly permits: number
  readonly holdsUntil: number
  readonly endsAt: number
}

export type RememberedRefusals = ReturnType<typeof createRememberedRefusals>

export function createRememberedRefusals(options: {
  maxAgeMs: number
  maxSubjects: number
  now: () => number
}) {
  const { maxAgeMs, maxSubjects, now } = options
  let young = new Map<string, Remembered>()
  let old = new Map<string, Remembered>()

  return {
    remember(subject: string, permits: number, refusal: Refusal, sentAt: number): void {
      if (maxAgeMs === 0) return
      if (young.size >= maxSubjects / 2) {
        old = young
        young = new Map()
      }
      young.set(subject, {
        refusal,
        permits,
        holdsUntil: sentAt + Math.min(refusal.retryAfterMs, maxAgeMs),
        endsAt: now() + refusal.retryAfterMs,
      })
    },

    /** The refusal that still holds for one of the subjects, with what is left of its wait. */
    recall(subjects: readonly string[], permits: number): Refusal | undefined {
      if (young.size === 0 && old.size === 0) return undefined
      let longest: Remembered | undefined
      const nowMs = now()
      for (const subject of subjects) {
        const remembered = young.get(subject) ?? old.get(subject)
        if (!remembered || permits < remembered.permits || nowMs >= remembered.holdsUntil) continue
        if (!longest || remembered.endsAt > longest.endsAt) longest = remembered
      }
      if (!longest) return undefined
      const retryAfterMs = Math.ceil(longest.endsAt - nowMs)
      return { ...longest.refusal, retryAfterMs }
    },

    clear(): void {
      young = new Map()
      old = new Map()
    },
  }
}
