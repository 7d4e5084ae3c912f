/**
 * Writes the outcome of a claim. An outcome from a provider must not be lost. So the worker waits for a database that is
 * away, and writes a refused row again without the provider's texts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../base/backoff.ts'
import type { Log } from '../base/log.ts'
import { noteInSpan } from '../base/traces.ts'
import { Unavailable } from '../base/unavailable.ts'
import type { OpenNotice } from '../notice/claim.ts'
import type { NoticeOutcome } from '../notice/record.ts'
import type { Attempt, UnsentReason } from '../notice/states.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { AttemptLog } from './attempt-log.ts'
import type { DeliveryMetrics } from './metrics.ts'

/** The outcome of a claim, without the id, the number of claims and the attempts. */
export type ClaimOutcome = Pick<NoticeOutcome, 'provider' | 'providerMessageId'> &
  (
    | { state: 'pending'; retryInMs: number; error?: never }
    | { state: 'sent'; error?: never }
    | { state: 'failed' | 'expired'; error: UnsentReason }
  )

/** The notice or its code ended before a provider accepted it. */
export const expired = (error: UnsentReason): ClaimOutcome => ({ state: 'expired', error })

/** The message may have reached the person, and the policy allows no further repeat. */
export const outcomeUnknown: ClaimOutcome = { state: 'failed', error: 'outcome_unknown' }

export function sentBy(provider: string, providerMessageId?: string | null): ClaimOutcome {
  return { state: 'sent', provider, providerMessageId }
}

export function createRecordOutcome(deps: {
  store: Pick<NoticeStore, 'record'>
  metrics: DeliveryMetrics
  log: Log
}) {
  const { store, metrics, log } = deps

  /**
   * False if another worker has claimed the notice since. An outcome from a provider is written until PostgreSQL accepts
   * it. Otherwise a sent message could be sent again.
   */
  return async function recordOutcome(
    notice: OpenNotice,
    claims: number,
    attemptLog: AttemptLog,
    outcome: ClaimOutcome,
  ): Promise<boolean> {
    const suppresses = attemptLog.takeSuppression()
    const attempts = attemptLog.all()
    let row: NoticeOutcome = { id: notice.id, claims, attempts, suppresses, ...outcome }
    let isBare = false
    for (let tries = 1; ; tries++) {
      try {
        const isWritten = await store.record(row)
        if (isWritten && suppresses) metrics.suppressions.inc(suppresses)
        if (isWritten && outcome.state !== 'pending') finished(notice, outcome)
        return isWritten
      } catch (error) {
        log.recordFailed(notice.id, error)
        if (error instanceof Unavailable) {
          // A pause before the claim need not be written: the queue brings the notice back. After a claim, the row would
          // get an attempt of unknown outcome.
          const isUnclaimed = claims === notice.claims && attemptLog.made.length === 0
          if (outcome.state === 'pending' && isUnclaimed) return true
          row = { ...row, isRepeat: true }
          await sleep(backoffMs(tries, 100, 2_000))
        } else if (isBare) throw error
        else {
          isBare = true
          row = bare(row)
        }
      }
    }
  }

  function finished(
    notice: OpenNotice,
    outcome: Exclude<ClaimOutcome, { state: 'pending' }>,
  ): void {
    const { state, provider, error } = outcome
    const labels = { kind: notice.kind, channel: notice.channel }
    metrics.finished.inc({ ...labels, state })
    noteInSpan({ 'postern.state': state }, error)
    if (outcome.state === 'sent') {
      const waitedDurationMs = Math.max(0, performance.now() - notice.wantedAtMs)
      metrics.acceptedToSentSeconds.observe(labels, waitedDurationMs / 1_000)
    } else {
      metrics.unsent.inc({ ...labels, reason: outcome.error })
    }
    log.finished({ noticeId: notice.id, state, provider, error })
  }
}

/** Removes values that came from a provider, so that the row can end in any case. */
function bare({ providerMessageId: _, attempts, ...row }: NoticeOutcome): NoticeOutcome {
  const withoutDetail = ({ detail: _, ...attempt }: Attempt): Attempt => attempt
  return { ...row, attempts: attempts.map(withoutDetail) }
}
