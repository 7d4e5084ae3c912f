import type { Log } from '../base/log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { OpenNotice } from '../notice/claim.ts'
import type { Attempt, Outcome } from '../notice/states.ts'
import type { SendResult } from '../providers/provider.ts'
import { unknowns } from './retry.ts'

export const isFailure = (outcome: Outcome): boolean =>
  outcome === 'unavailable' || outcome === 'not_taken'

/** The calls made for one notice: each is noted for the row, counted and logged. */
export interface AttemptLog {
  /** In this pass. */
  readonly made: readonly Attempt[]
  /** Those of earlier passes too. */
  all(): Attempt[]
  /** Those of all that may have reached the person. */
  unknowns(): Attempt[]
  /** Whether a provider has said that this message will never pass. */
  isRejectedBy(provider: string): boolean
  /** Whether a provider has had this message before and surely did not take it. */
  hasFailedAt(provider: string): boolean
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
  const all = () => [...notice.attempts, ...made]

  return {
    made,
    all,
    unknowns: () => unknowns(all()),

    isRejectedBy: (name) =>
      all().some(({ provider, outcome }) => provider === name && outcome === 'rejected'),

    hasFailedAt: (name) =>
      all().some(({ provider, outcome }) => provider === name && isFailure(outcome)),

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
