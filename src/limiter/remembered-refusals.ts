/**
 * A flood against one subject must not reach Redis. A refusal holds until a known time, and ends
 * earlier only by a reset, a release or a policy change, so it can be answered from memory:
 *
 * - Redis decided some time between sending and receiving. The memory refuses until `sent + wait` by
 *   the monotonic clock, which is never too long, and names the wait that `received + wait` leaves,
 *   which is never too short.
 * - A reset in *this* process forgets the subject at once, and what was asked before it is not
 *   remembered after; a reset in another process is seen within `maxAgeMs`.
 * - It holds for the permits that were refused and for more, not for fewer.
 * - Bounded: two generations of half the size each; the older one goes at once.
 */
import { createGenerations } from '../base/generations.ts'
import type { Refusal } from './limiter.ts'

export interface Remembered {
  readonly subject: string
  readonly refusal: Refusal
  readonly permits: number
  readonly holdsUntil: number
  readonly endsAt: number
}

export function createRememberedRefusals(options: {
  maxAgeMs: number
  maxSubjects: number
  now: () => number
}) {
  const { maxAgeMs, maxSubjects, now } = options
  const bySubject = createGenerations<Remembered>(maxSubjects)
  /** When a subject was forgotten last; those not here, at `othersForgottenAt` or before. */
  const forgottenAt = new Map<string, number>()
  let othersForgottenAt = Number.NEGATIVE_INFINITY

  return {
    isEmpty: bySubject.isEmpty,

    remember(subject: string, permits: number, refusal: Refusal, sentAt: number): void {
      if (maxAgeMs === 0 || sentAt <= (forgottenAt.get(subject) ?? othersForgottenAt)) return
      bySubject.set(subject, {
        subject,
        refusal,
        permits,
        holdsUntil: sentAt + Math.min(refusal.retryAfterMs, maxAgeMs),
        endsAt: now() + refusal.retryAfterMs,
      })
    },

    /** What still holds for one of the subjects, the longest of it. */
    find(subjects: readonly string[], permits: number): Remembered | undefined {
      if (bySubject.isEmpty()) return undefined
      let longest: Remembered | undefined
      const nowMs = now()
      for (const subject of subjects) {
        const remembered = bySubject.get(subject)
        if (!remembered || permits < remembered.permits || nowMs >= remembered.holdsUntil) continue
        if (!longest || remembered.endsAt > longest.endsAt) longest = remembered
      }
      return longest
    },

    /** The refusal with what is left of its wait, if it holds and is neither forgotten nor replaced. */
    repeat(remembered: Remembered, permits: number): Refusal | undefined {
      if (bySubject.get(remembered.subject) !== remembered) return undefined
      const nowMs = now()
      if (nowMs >= remembered.holdsUntil || permits < remembered.permits) return undefined
      const { rule, window, limit, windowMs, kind, message } = remembered.refusal
      const retryAfterMs = Math.ceil(remembered.endsAt - nowMs)
      const refusal = {
        admitted: false,
        rule,
        window,
        limit,
        windowMs,
        kind,
        retryAfterMs,
      } as const
      return message === undefined ? refusal : { ...refusal, message }
    },

    forget(subjects: readonly string[]): void {
      const nowMs = now()
      for (const subject of subjects) {
        bySubject.delete(subject)
        forgottenAt.set(subject, nowMs)
      }
      if (forgottenAt.size <= maxSubjects) return
      forgottenAt.clear()
      othersForgottenAt = nowMs
    },

    forgetAll(): void {
      bySubject.clear()
      forgottenAt.clear()
      othersForgottenAt = now()
    },
  }
}
