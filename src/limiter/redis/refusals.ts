/**
 * The one memory of refusals in front of Redis: a flood against a subject must not reach it. A refusal
 * holds until a known time and ends earlier only by a reset, a release or new policies:
 *
 * - Redis decided some time between sending and receiving. The memory refuses until `sent + wait` by the
 *   monotonic clock, never too long, and names the wait that `received + wait` leaves, never too short.
 * - What changes a subject's counts in *this* process forgets it at once, and what was asked before that
 *   is not remembered after; a change in another process is seen within `maxAgeMs`.
 * - It holds for the permits that were refused and for more; a refusal that asks for a challenge holds
 *   until one is solved.
 * - Bounded: two generations of half the size each; the older one goes at once.
 */
import { createBoundedMap } from '../../base/bounded-map.ts'
import type { PolicyWindow } from '../policy/compile.ts'
import type { Ask, RefusedAnswer } from '../store.ts'

type Counted = Pick<Ask, 'subject' | 'permits'>

interface Remembered {
  readonly window: PolicyWindow
  readonly permits: number
  readonly holdsUntil: number
  readonly endsAt: number
}

export function createRefusals(options: {
  maxAgeMs: number
  maxSubjects: number
  now: () => number
}) {
  const { maxAgeMs, maxSubjects, now } = options
  const refusals = createBoundedMap<Remembered>(maxSubjects)
  /** The time at which a subject was last forgotten. A subject that is not here: `othersForgottenAt` at the latest. */
  const forgottenAt = new Map<string, number>()
  let othersForgottenAt = Number.NEGATIVE_INFINITY

  function forgetTimes(): void {
    forgottenAt.clear()
    othersForgottenAt = now()
  }

  return {
    remember({ subject, permits }: Counted, { hold }: RefusedAnswer, sentAt: number): void {
      if (maxAgeMs === 0 || sentAt <= (forgottenAt.get(subject) ?? othersForgottenAt)) return
      const { window, waitMs } = hold
      const holdsUntil = sentAt + Math.min(waitMs, maxAgeMs)
      refusals.set(subject, { window, permits, holdsUntil, endsAt: now() + waitMs })
    },

    /** What still holds for one of the subjects, the longest of it. */
    find(asks: readonly Counted[], isSolved = false): RefusedAnswer | undefined {
      if (refusals.isEmpty()) return undefined
      let longest: Remembered | undefined
      const nowMs = now()
      for (const { subject, permits } of asks) {
        const found = refusals.get(subject)
        if (!found || nowMs >= found.holdsUntil || permits < found.permits) continue
        if (isSolved && found.window.rule.mode === 'challenge') continue
        if (!longest || found.endsAt > longest.endsAt) longest = found
      }
      if (!longest) return undefined
      const waitMs = Math.ceil(longest.endsAt - nowMs)
      return { hold: { waitMs, window: longest.window }, isNewLock: false }
    },

    forget(asks: readonly Counted[]): void {
      for (const { subject } of asks) {
        refusals.delete(subject)
        forgottenAt.set(subject, now())
      }
      if (forgottenAt.size > maxSubjects) forgetTimes()
    },

    forgetAll(): void {
      refusals.clear()
      forgetTimes()
    },
  }
}
