/**
 * Remembers refusals, so that a flood against one subject does not reach Redis. A refusal is valid until a known time.
 * It ends earlier only by a reset, a release or new policies:
 *
 * - Redis decided at some time between sending and receiving. So the refusal is remembered until `sent + wait` by the
 *   monotonic clock, which is never too long. The wait in the answer ends at `received + wait`, which is never too
 *   short.
 * - A change of a subject's counts in this process deletes its refusal at once. The answer of an earlier call is not
 *   stored after that. A change in another process takes effect within `maxAgeMs`.
 * - A refusal answers calls for the same number of permits or more. A refusal with `challenge` does not answer callers
 *   that solved one.
 * - The memory is bounded: two generations, each half of the size. The older generation is dropped as a whole.
 */
import { createBoundedMap } from '../../base/bounded-map.ts'
import { type Hold, stronger } from '../kinds.ts'
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
  /** When each subject was last forgotten. Without an entry, that was before `othersForgottenAt`. */
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

    /** The strongest remembered refusal among these subjects, as Redis would choose it. */
    find(asks: readonly Counted[], isSolved = false): RefusedAnswer | undefined {
      if (refusals.isEmpty()) return undefined
      let hold: Hold | undefined
      const nowMs = now()
      for (const { subject, permits } of asks) {
        const found = refusals.get(subject)
        if (!found || nowMs >= found.holdsUntil || permits < found.permits) continue
        const { window, endsAt } = found
        if (isSolved && window.rule.mode === 'challenge') continue
        hold = stronger(hold, { waitMs: Math.ceil(endsAt - nowMs), window })
      }
      return hold && { hold }
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
