/**
 * When a notice is tried again, and when enough is enough.
 *
 * - A try that surely did not take the message (`unavailable`) is repeated with growing pauses, up to
 *   `tries`.
 * - A try of unknown outcome (`unknown`: an answer lost after the hand-over, a worker that died) may
 *   have reached the person. Providers that can be asked are asked first; what stays unknown is
 *   repeated at most `unknownRetries` times, so a fault doubles a message at most that often.
 * - A pause the provider asked for (`throttled`) uses up nothing; the notice's own time ends it. The last try waits for
 *   it rather than go to a provider that has failed this notice before.
 */
import type { Attempt } from '../notice/states.ts'

export interface RetryPolicy {
  tries: number
  unknownRetries: number
  /** A code is waited for; bulk can let a far end recover. */
  longestPauseMs: number
  /** Before a provider is asked again about a try it could not tell about, and before that is repeated. */
  askAgainMs: number
}

export const captchaPauses = { longestPauseMs: 10_000, askAgainMs: 5_000 } as const
export const noticePauses = { longestPauseMs: 60_000, askAgainMs: 60_000 } as const

const firstPauseMs = 500

export function mayTryAgain(attempts: readonly Attempt[], policy: RetryPolicy): boolean {
  return triesLeft(attempts, policy) > 0 && unknowns(attempts).length <= policy.unknownRetries
}

export function triesLeft(attempts: readonly Attempt[], { tries }: RetryPolicy): number {
  const used = attempts.filter(({ outcome }) => !['throttled', 'not_taken'].includes(outcome))
  return tries - used.length
}

/** The tries that may have reached the person; `not_taken` is a provider's word on its latest one. */
export function unknowns(attempts: readonly Attempt[]): Attempt[] {
  const open: Attempt[] = []
  for (const attempt of attempts) {
    if (attempt.outcome === 'unknown') open.push(attempt)
    if (attempt.outcome === 'not_taken') {
      const latest = open.findLastIndex(({ provider }) => provider === attempt.provider)
      if (latest >= 0) open.splice(latest, 1)
    }
  }
  return open
}

/** Doubles with every try; half of it is random, so that a provider that is back does not get all at once. */
export function pauseMs(
  tries: number,
  longestPauseMs: number,
  random: () => number = Math.random,
): number {
  const doublings = Math.min(Math.max(0, tries - 1), 20)
  const fullMs = Math.min(firstPauseMs * 2 ** doublings, longestPauseMs)
  return fullMs / 2 + (random() * fullMs) / 2
}
