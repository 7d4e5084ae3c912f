/**
 * When a notice is tried again, and when enough is enough.
 *
 * - A call that surely did not take the message uses up nothing (meaning.ts). It is repeated with growing pauses until
 *   the notice's time ends: a far end that is away delays messages and loses none.
 * - A try of unknown outcome (`unknown`: an answer lost after the hand-over, a worker that died) may
 *   have reached the person. Providers that can be asked are asked first; what stays unknown is
 *   repeated at most `unknownRetries` times, so a fault doubles a message at most that often.
 * - An answer about the message itself (`rejected`) uses up one of `tries`.
 */
import { backoffMs } from '../base/backoff.ts'
import type { Attempt } from '../notice/states.ts'
import { meanings } from './meaning.ts'

export interface RetryPolicy {
  tries: number
  unknownRetries: number
  /** A code is waited for; notices all go within a minute of a far end's return. */
  longestPauseMs: number
  /** Before a provider is asked again about a try it could not tell about, and before that is repeated. */
  askAgainMs: number
}

export const captchaPauses = { longestPauseMs: 30_000, askAgainMs: 5_000 } as const
export const noticePauses = { longestPauseMs: 50_000, askAgainMs: 60_000 } as const

const firstPauseMs = 500

export function mayTryAgain(attempts: readonly Attempt[], policy: RetryPolicy): boolean {
  const used = attempts.filter(({ outcome }) => meanings[outcome].usesTry)
  return used.length < policy.tries && unknowns(attempts).length <= policy.unknownRetries
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

/** Before a message is offered again, by the calls that were made for it. */
export const pauseMs = (calls: number, longestPauseMs: number) =>
  backoffMs(calls, firstPauseMs, longestPauseMs)
