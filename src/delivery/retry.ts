/**
 * When a notice is tried again, and when enough is enough.
 *
 * - A try that surely did not take the message (`unavailable`) is repeated with growing pauses, up to
 *   `tries`.
 * - A try of which nobody knows (`unknown`: an answer lost after the hand-over, a worker that died)
 *   may have reached the person. It is repeated at most `unknownRetries` times, so a fault doubles a
 *   message at most that often.
 * - A pause the provider asked for (`throttled`) uses up nothing; the notice's own time ends it.
 */
import type { Attempt } from '../notice/states.ts'

export interface RetryPolicy {
  tries: number
  unknownRetries: number
}

const firstPauseMs = 500
const longestPauseMs = 60_000

export function mayTryAgain(attempts: readonly Attempt[], policy: RetryPolicy): boolean {
  const rounds = attempts.filter(({ outcome }) => outcome !== 'throttled').length
  const unknowns = attempts.filter(({ outcome }) => outcome === 'unknown').length
  return rounds < policy.tries && unknowns <= policy.unknownRetries
}

/** Doubles with every try; half of it is random, so that a provider's return is not met by everyone at once. */
export function pauseMs(attempts: readonly Attempt[], random: () => number = Math.random): number {
  const doublings = Math.min(attempts.length - 1, 10)
  const fullMs = Math.min(firstPauseMs * 2 ** Math.max(0, doublings), longestPauseMs)
  return fullMs / 2 + (random() * fullMs) / 2
}
