/**
 * When a notice is tried again, and when it ends.
 *
 * - A call whose message was surely not accepted uses up nothing. It is repeated with growing pauses until
 *   the time of the notice ends. So a provider that is away delays messages, but loses none.
 * - An attempt of unknown outcome (`unknown`: an answer lost after the hand-over, a worker that died) may have reached
 *   the person. The provider is queried first, if it supports that. An attempt that stays unknown is repeated at most
 *   `unknownRetries` times, so a fault doubles a message at most that often.
 * - An answer about the message itself (`rejected`) uses up one of `tries`.
 */
import { backoffMs } from '../base/backoff.ts'
import type { Attempt, AttemptOutcome } from '../notice/states.ts'

/**
 * The meaning of an outcome for the message, its tries and the circuit breaker of the provider. Only failures of the
 * provider itself count for its breaker, so the answer about one recipient stops no other message.
 */
export interface Meaning {
  /** It uses up one of `delivery.tries`. */
  usesTry: boolean
  /** The provider surely did not accept the message, but may accept it later. */
  waits: boolean
  /** The provider failed. Five of these in a row open its breaker. */
  isOutage: boolean
}

const isFinal: Meaning = { usesTry: true, waits: false, isOutage: false }
const waits: Meaning = { usesTry: false, waits: true, isOutage: false }

export const meanings: Readonly<Record<AttemptOutcome, Meaning>> = {
  accepted: isFinal,
  rejected: isFinal,
  invalid_recipient: isFinal,
  postponed: waits,
  throttled: waits,
  unavailable: { ...waits, isOutage: true },
  unknown: { usesTry: true, waits: false, isOutage: true },
  not_taken: { usesTry: false, waits: false, isOutage: false },
}

export interface RetryPolicy {
  tries: number
  unknownRetries: number
  /**
   * Short for codes, because a person waits. For notices, short enough that all are sent within a minute after a
   * provider returns.
   */
  longestRetryMs: number
  /** Pause before the next query about an unknown attempt, and before the attempt is repeated. */
  queryRetryMs: number
}

export const captchaPauses = { longestRetryMs: 30_000, queryRetryMs: 5_000 } as const
export const noticePauses = { longestRetryMs: 50_000, queryRetryMs: 60_000 } as const

/** A code that may have arrived is repeated only once, because the waiting person can request another one. */
export function retryPolicies({
  tries,
  unknownRetries,
}: Pick<RetryPolicy, 'tries' | 'unknownRetries'>) {
  return {
    captcha: { tries, unknownRetries: 1, ...captchaPauses },
    notice: { tries, unknownRetries, ...noticePauses },
  } satisfies Record<string, RetryPolicy>
}

const firstRetryMs = 500

export function mayTryAgain(attempts: readonly Attempt[], policy: RetryPolicy): boolean {
  const open = unknowns(attempts)
  const final = attempts.filter(({ outcome }) => meanings[outcome].usesTry && outcome !== 'unknown')
  return open.length + final.length < policy.tries && open.length <= policy.unknownRetries
}

/** The attempts that may have reached the person. `not_taken` is a provider's answer about its latest attempt. */
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

/** Pause before a message is offered again, by the number of its calls. */
export const growingRetryMs = (calls: number, longestRetryMs: number) =>
  backoffMs(calls, firstRetryMs, longestRetryMs)
