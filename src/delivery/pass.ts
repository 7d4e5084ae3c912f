/**
 * One pass of a worker over one notice: what makes the notice this worker's, and what it writes back.
 *
 * A claim covers one call. The outcome is written with the number of claims, so of two workers that both
 * believe to hold a notice only the later one writes.
 */
import type { Log } from '../base/log.ts'
import type { Metrics } from '../base/metrics.ts'
import { Unavailable } from '../base/problems.ts'
import type { OpenNotice } from '../notice/claim.ts'
import type { NoticeStore } from '../notice/store.ts'
import { createAttemptLog } from './attempt-log.ts'
import type { GuardedProvider } from './guarded-provider.ts'
import { type ClaimOutcome, expired } from './outcome.ts'
import { createRecordOutcome } from './record-outcome.ts'
import { mayTryAgain, pauseMs, type RetryPolicy } from './retry.ts'

/** What the queue should do with the job. */
export type Verdict = { done: true } | { done: false; againInMs: number }

export const done: Verdict = { done: true }

export type Pass = ReturnType<ReturnType<typeof createPasses>>

export function createPasses(deps: {
  store: Pick<NoticeStore, 'claim' | 'record'>
  /** Makes a captcha's code the one that passes, unless it was replaced, used or lost. */
  settleCode: (notice: OpenNotice) => Promise<'current' | 'gone' | 'lost'>
  retry: Record<'captcha' | 'notice', RetryPolicy>
  /** One provider call at most. */
  timeoutMs: number
  metrics: Metrics
  log: Log
}) {
  const { store, settleCode, timeoutMs } = deps
  const recordOutcome = createRecordOutcome(deps)

  return function openPass(notice: OpenNotice, providers: readonly GuardedProvider[]) {
    const attemptLog = createAttemptLog(notice, deps)
    const retry = deps.retry[notice.kind]
    /** Codes do not wait behind bulk. */
    const isUrgent = notice.kind === 'captcha'
    let { claims } = notice
    let deadlineMs = performance.now() + notice.remainingMs
    let startedAt = new Date()
    let stopped: ClaimOutcome | undefined

    /** What is left of the notice's time. */
    const leftMs = () => deadlineMs - performance.now()

    /** Its time ended before a provider took it: what it waited for last. */
    function outOfTime(): ClaimOutcome {
      const latest = attemptLog.all().at(-1)?.outcome
      const isAway = providers.some((provider) => provider.away(isUrgent)?.reason === 'circuit')
      if (isAway || latest === 'unavailable') return expired('provider_away')
      return expired(latest === 'postponed' ? 'postponed' : 'too_late')
    }

    /** Why a message that was good a moment ago is not worth a call any more; undefined when it is. */
    async function whyNotSend(): Promise<ClaimOutcome | undefined> {
      try {
        if (notice.kind !== 'captcha') return undefined
        const settled = await settleCode(notice)
        return settled === 'current' ? undefined : expired(`code_${settled}`)
      } catch (error) {
        if (error instanceof Unavailable) return { state: 'pending', retryInMs: pauseMs(2, 10_000) }
        throw error
      }
    }

    return {
      notice,
      providers,
      attemptLog,
      isUrgent,
      leftMs,
      outOfTime,
      mayTryAgain: () => mayTryAgain(attemptLog.all(), retry),

      /** Grows with every call that was made for the notice. */
      pauseMs: () => pauseMs(attemptLog.calls(), retry.longestPauseMs),

      /** Before a provider is asked again about a call that it could not tell about. */
      askAgainMs: retry.askAgainMs,

      /** Claims the notice for one call: how long that may take. Undefined when there shall be none. */
      async begin(): Promise<number | undefined> {
        const [claim, whyNot] = await Promise.all([
          store.claim({ id: notice.id, claims }),
          whyNotSend(),
        ])
        if (!claim) return undefined
        claims = claim.claims
        deadlineMs = performance.now() + claim.remainingMs
        stopped = claim.remainingMs <= 0 ? outOfTime() : whyNot
        if (stopped) return undefined
        startedAt = new Date()
        return Math.ceil(Math.min(timeoutMs, claim.remainingMs))
      },

      /** What stopped the call at the last moment; undefined when another worker has the notice. */
      stopped: () => stopped,

      /** When the latest call began. */
      startedAt: () => startedAt,

      /** Writes what is known now. Done when the notice is over, or another worker has claimed it since. */
      async record(outcome: ClaimOutcome): Promise<Verdict> {
        if (outcome.state !== 'pending') {
          await recordOutcome(notice, claims, attemptLog, outcome)
          return done
        }
        const retryInMs = Math.min(outcome.retryInMs, Math.max(0, leftMs()))
        const isOurs = await recordOutcome(notice, claims, attemptLog, { ...outcome, retryInMs })
        return isOurs ? { done: false, againInMs: retryInMs } : done
      },
    }
  }
}
