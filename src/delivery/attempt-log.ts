import type { Log } from '../base/log.ts'
import type { Metrics } from '../base/metrics.ts'
import type { OpenNotice } from '../notice/claim.ts'
import type { Attempt } from '../notice/states.ts'
import type { SendResult } from '../providers/provider.ts'
import { meanings } from './meaning.ts'
import { unknowns } from './retry.ts'

/** The calls made for one notice: each is noted for the row, counted and logged. */
export interface AttemptLog {
  /** In this pass. */
  readonly made: readonly Attempt[]
  /** Those of earlier passes too, as the row keeps them. */
  all(): Attempt[]
  /** How many calls there were, in all passes. */
  calls(): number
  /** Those of all that may have reached the person. */
  unknowns(): Attempt[]
  /** Whether a provider has said that this message will never pass. */
  isRejectedBy(provider: string): boolean
  add(provider: string, result: SendResult, startedAt: Date): void
  /** A provider's word on a try that was unknown. */
  addAnswer(provider: string | null, outcome: 'accepted' | 'not_taken'): void
}

export function createAttemptLog(
  notice: Pick<OpenNotice, 'id' | 'attempts'>,
  deps: { metrics: Metrics; log: Log },
): AttemptLog {
  const { metrics, log } = deps
  const made: Attempt[] = []
  const all = () => made.reduce(withAttempt, notice.attempts)

  return {
    made,
    all,
    calls: () => all().reduce((sum, { count = 1 }) => sum + count, 0),
    unknowns: () => unknowns(all()),

    isRejectedBy: (name) =>
      all().some(({ provider, outcome }) => provider === name && outcome === 'rejected'),

    add(provider, result, startedAt) {
      const durationMs = Date.now() - startedAt.getTime()
      const detail = 'detail' in result ? result.detail : undefined
      const facts = { provider, outcome: result.kind, durationMs, ...(detail ? { detail } : {}) }
      made.push({ ...facts, at: startedAt.toISOString() })
      metrics.sends.inc({ provider, outcome: result.kind })
      metrics.sendSeconds.observe({ provider }, durationMs / 1_000)
      // One that went well is logged with the notice's end.
      if (result.kind !== 'accepted') log.tried({ noticeId: notice.id, ...facts })
    },

    addAnswer(provider, outcome) {
      const facts = { provider, outcome, durationMs: 0, detail: 'asked afterwards' }
      made.push({ ...facts, at: new Date().toISOString() })
      log.tried({ noticeId: notice.id, ...facts, provider: provider ?? '' })
    },
  }
}

/**
 * Adds a call to the row's list. Calls after which the message waits are as many as an outage is long, so they share
 * one entry per provider and outcome; all others are bounded by the tries. The latest call stands last.
 */
function withAttempt(attempts: Attempt[], next: Attempt): Attempt[] {
  const index = meanings[next.outcome].waits
    ? attempts.findIndex((one) => one.provider === next.provider && one.outcome === next.outcome)
    : -1
  const earlier = attempts[index]
  if (!earlier) return [...attempts, next]
  const folded = { ...next, at: earlier.at, count: (earlier.count ?? 1) + 1, latestAt: next.at }
  return [...attempts.toSpliced(index, 1), folded]
}
