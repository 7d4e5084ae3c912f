import type { Log } from '../base/log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Attempt } from '../notice/states.ts'
import type { ClaimedNotice, NoticeStore } from '../notice/store.ts'
import type { SendResult } from '../providers/provider.ts'
import { unknowns } from './retry.ts'

/** The calls made under one claim: each is noted for the row, counted and logged. */
export interface Tries {
  /** Under this claim. */
  readonly made: readonly Attempt[]
  /** Those of earlier claims too. */
  all(): Attempt[]
  /** Those of all that may have reached the person. */
  unknowns(): Attempt[]
  /**
   * False when the claim was lost to another worker. A fresh claim is long enough for one call; before
   * a further one it is kept up.
   */
  mayCall(): Promise<boolean>
  add(provider: string, result: SendResult, startedAt: Date): void
  /** A provider's word on a try that was unknown. */
  addAnswer(provider: string | null, outcome: 'accepted' | 'not_taken'): void
}

const freshMs = 250

export function createTries(
  notice: ClaimedNotice,
  deps: { store: NoticeStore; metrics: Metrics; log: Log },
): Tries {
  const { store, metrics, log } = deps
  const made: Attempt[] = []
  let keptAtMs = performance.now()
  const all = () => [...notice.attempts, ...made]

  return {
    made,
    all,
    unknowns: () => unknowns(all()),

    async mayCall() {
      if (performance.now() - keptAtMs < freshMs) return true
      try {
        keptAtMs = performance.now()
        return await store.keepClaim(notice.id, notice.claim)
      } catch {
        return false
      }
    },

    add(provider, result, startedAt) {
      const durationMs = Date.now() - startedAt.getTime()
      const detail = 'detail' in result ? result.detail : undefined
      const facts = { provider, outcome: result.kind, durationMs, ...(detail ? { detail } : {}) }
      made.push({ ...facts, at: startedAt.toISOString() })
      metrics.sends.inc({ provider, outcome: result.kind })
      metrics.sendSeconds.observe({ provider }, durationMs / 1_000)
      // A try that went well is told with the notice's end.
      if (result.kind !== 'accepted') log.tried({ noticeId: notice.id, ...facts })
    },

    addAnswer(provider, outcome) {
      const facts = { provider, outcome, durationMs: 0, detail: 'asked afterwards' }
      made.push({ ...facts, at: new Date().toISOString() })
      log.tried({ noticeId: notice.id, ...facts, provider: provider ?? '' })
    },
  }
}
