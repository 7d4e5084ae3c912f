/**
 * Writes what became of a claim. An outcome that was learnt from a provider must not be lost: a database
 * that is away is waited for, and a row it refuses is written without what the far end said.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../base/backoff.ts'
import type { Log } from '../base/log.ts'
import type { Metrics } from '../base/metrics.ts'
import { Unavailable } from '../base/problems.ts'
import type { OpenNotice } from '../notice/claim.ts'
import type { NoticeOutcome } from '../notice/record.ts'
import type { Attempt } from '../notice/states.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { AttemptLog } from './attempt-log.ts'
import type { ClaimOutcome } from './outcome.ts'

export function createRecordOutcome(deps: {
  store: Pick<NoticeStore, 'record'>
  metrics: Metrics
  log: Log
}) {
  const { store, metrics, log } = deps

  /**
   * False when another worker has claimed the notice since. What was learnt from a provider is written
   * until PostgreSQL takes it: what was sent must be known as sent, and never sent again for this.
   */
  return async function recordOutcome(
    notice: OpenNotice,
    claims: number,
    attemptLog: AttemptLog,
    outcome: ClaimOutcome,
  ): Promise<boolean> {
    let row: NoticeOutcome = { id: notice.id, claims, attempts: attemptLog.all(), ...outcome }
    let isBare = false
    for (let tries = 1; ; tries++) {
      try {
        const isWritten = await store.record(row)
        if (isWritten && outcome.state !== 'pending') finished(notice, outcome)
        return isWritten
      } catch (error) {
        log.recordFailed(notice.id, error)
        if (error instanceof Unavailable) {
          // A pause of which nothing was learnt need not be known; the job itself comes back.
          if (outcome.state === 'pending' && attemptLog.made.length === 0) return true
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
    if (outcome.state === 'sent') {
      const waitedMs = Math.max(0, performance.now() - notice.wantedAtMs)
      metrics.acceptedToSentSeconds.observe(labels, waitedMs / 1_000)
    } else {
      metrics.unsent.inc({ ...labels, reason: outcome.error })
    }
    log.finished({
      noticeId: notice.id,
      state,
      ...(provider ? { provider } : {}),
      ...(error ? { error } : {}),
    })
  }
}

/** Without what came from outside: a row must be able to end, whatever a far end said. */
function bare({ providerMessageId: _, attempts, ...row }: NoticeOutcome): NoticeOutcome {
  const withoutDetail = ({ detail: _, ...attempt }: Attempt): Attempt => attempt
  return { ...row, attempts: attempts.map(withoutDetail) }
}
