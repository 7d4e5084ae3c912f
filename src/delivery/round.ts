/**
 * One round of a worker over one notice: it claims the notice and writes the outcome.
 *
 * A claim covers one call. The outcome is written with the number of claims. So if two workers believe that they have the
 * claim, only the later one writes.
 */
import { randomUUID } from 'node:crypto'
import { startCountdown } from '../base/deadline.ts'
import type { Log } from '../base/log.ts'
import { Unavailable } from '../base/unavailable.ts'
import { createUntilAnswered } from '../base/until-answered.ts'
import { type Claim, type ClaimAsked, claimTtlFor, type OpenNotice } from '../notice/claim.ts'
import type { Producer } from '../notice/producer.ts'
import type { NoticeKind } from '../notice/states.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { SendResult } from '../providers/provider.ts'
import { type Answered, createAttemptLog } from './attempt-log.ts'
import type { GuardedProvider } from './guarded-provider.ts'
import type { DeliveryMetrics } from './metrics.ts'
import {
  type ClaimOutcome,
  createRecordOutcome,
  expired,
  outcomeUnknown,
} from './record-outcome.ts'
import { growingRetryMs, mayTryAgain, type RetryPolicy } from './retry.ts'

/** The message must not be sent: its outcome, or undefined if another worker has the notice. */
export interface Stopped {
  kind: 'stopped'
  outcome: ClaimOutcome | undefined
}

/** The next step of the queue with this job. */
export type Verdict = { done: true } | { done: false; retryInMs: number }

/** Redis ends a code up to this long before its notice ends, because the code is stored before the notice. */
const shorterCodeTtlMs = 3_000

/** After this time, the claim of a lost answer has ended in any case. */
const takeBackTimeoutMs = 60_000
const maxUnanswered = 10_000

export const done: Verdict = { done: true }

export type Round = ReturnType<ReturnType<typeof createRounds>>

export function createRounds(deps: {
  store: Pick<NoticeStore, 'claim' | 'extend' | 'takeBack' | 'record'>
  /** Puts a notice back on the queue whose claim was taken back. */
  producer?: Pick<Producer, 'add'>
  /** Makes a captcha's code the current one, unless it was replaced, used or lost (`settle` of captcha/code-store.ts). */
  settleCode: (notice: OpenNotice) => Promise<'current' | 'gone' | 'lost'>
  /** True if the policy file refuses this recipient, perhaps only since the notice was accepted. */
  isRefused: (notice: Pick<OpenNotice, 'channel' | 'recipient'>) => boolean
  retry: Record<NoticeKind, RetryPolicy>
  /** Time limit of one provider call, until the message is handed over. */
  timeoutMs: number
  /** Further time for the answer. */
  answerTimeoutMs?: number
  metrics: DeliveryMetrics
  log: Log
}) {
  const { store, settleCode, isRefused, timeoutMs, answerTimeoutMs = 0 } = deps
  const recordOutcome = createRecordOutcome(deps)
  const unanswered = createUntilAnswered({ maxAgeMs: takeBackTimeoutMs, maxEntries: maxUnanswered })

  /**
   * Claims the notice. A claim without an answer may be committed. Then nothing would be called until the claim ended, and
   * the notice would get an attempt that never was. So the claim is taken back when PostgreSQL answers.
   */
  async function claimOrTakeBack(notice: OpenNotice, asked: ClaimAsked): Promise<Claim | null> {
    try {
      return await store.claim(asked)
    } catch (error) {
      if (error instanceof Unavailable) {
        unanswered.add(`${asked.by?.id}`, async () => {
          const { id, channel, kind } = notice
          if (!(await store.takeBack(asked))) return
          await deps.producer?.add({ id, channel, kind, isOverdue: true }).catch(() => {})
        })
      }
      throw error
    }
  }

  /** Extends the claim if the answer to its call is late, so that no other try begins beside it. */
  function keepClaim(claimed: Pick<OpenNotice, 'id' | 'claims'>): () => void {
    const key = `extend ${claimed.id}`
    const ms = answerTimeoutMs + claimTtlFor(timeoutMs)
    const stop = startCountdown(timeoutMs, () => {
      if (answerTimeoutMs > 0) unanswered.add(key, () => store.extend({ ...claimed, ms }))
    })
    return () => {
      stop()
      unanswered.remove(key)
    }
  }

  return function openRound(notice: OpenNotice, providers: readonly GuardedProvider[]) {
    const attemptLog = createAttemptLog(notice, deps)
    const retry = deps.retry[notice.kind]
    const isUrgent = notice.kind === 'captcha'
    let { claims } = notice
    let endsAtMs = performance.now() + notice.ttlMs
    let stopKeeping: (() => void) | undefined

    /** Extends the claim no more. */
    function letClaimEnd(): void {
      stopKeeping?.()
      stopKeeping = undefined
    }

    /** Time until the end of the notice. */
    const ttlMs = () => endsAtMs - performance.now()

    /** The pause grows with every call for the notice. */
    const nextRetryMs = (calls = attemptLog.calls()) => growingRetryMs(calls, retry.longestRetryMs)

    /** PostgreSQL's time. */
    const nowMs = () => notice.expiresAtMs - ttlMs()

    /** For a message that the provider postponed: the time of its next call. */
    function againAt(result: SendResult): string | undefined {
      if (result.kind !== 'postponed') return undefined
      const retryInMs = result.retryAfterMs ?? nextRetryMs(attemptLog.calls() + 1)
      return new Date(nowMs() + retryInMs).toISOString()
    }

    /** The outcome of a notice whose time ended, with the reason for its last wait. */
    function outOfTime(): ClaimOutcome {
      const latest = attemptLog.all().at(-1)
      const isAway = providers.some((provider) => provider.state() === 'circuit')
      if (isAway || latest?.outcome === 'unavailable') return expired('provider_away')
      if (latest?.outcome !== 'postponed') return expired('too_late')
      const postponing = providers.find(({ name }) => name === latest.provider)
      return expired(postponing?.postponesAll() ? 'provider_away' : 'postponed')
    }

    /** Why the message must not be sent any more; undefined if it can be sent. */
    async function whyNotSend(): Promise<ClaimOutcome | undefined> {
      if (isRefused(notice)) return { state: 'failed', error: 'invalid_recipient' }
      try {
        if (notice.kind !== 'captcha') return undefined
        const settled = await settleCode(notice)
        if (settled === 'lost' && ttlMs() < shorterCodeTtlMs) return outOfTime()
        return settled === 'current' ? undefined : expired(`code_${settled}`)
      } catch (error) {
        if (error instanceof Unavailable)
          return { state: 'pending', retryInMs: growingRetryMs(2, 10_000) }
        throw error
      }
    }

    return {
      notice,
      providers,
      attemptLog,
      isUrgent,
      ttlMs,
      letClaimEnd,
      outOfTime,
      mayTryAgain: () => mayTryAgain(attemptLog.all(), retry),

      nextRetryMs,

      /** Time until this provider accepts the message, if it postponed the message; at most 0 if it may accept it now. */
      postponedRetryMs: (name: string) => Date.parse(attemptLog.againAt(name) ?? '1970') - nowMs(),

      /** Pause before another query about a call with unknown outcome. */
      queryRetryMs: retry.queryRetryMs,

      /** Whether the notice has a claim without an outcome. */
      isClaimed: () => stopKeeping !== undefined,

      /** Claims the notice for one call, and checks whether it must still be sent. */
      async claim({ name, kind }: GuardedProvider): Promise<Stopped | undefined> {
        const by = { id: randomUUID(), provider: name, kind }
        const [claim, whyNot] = await Promise.all([
          claimOrTakeBack(notice, { id: notice.id, claims, by }),
          whyNotSend(),
        ])
        if (!claim) return { kind: 'stopped', outcome: undefined }
        claims = claim.claims
        endsAtMs = performance.now() + claim.ttlMs
        stopKeeping = keepClaim({ id: notice.id, claims })
        const outcome = ttlMs() <= 0 ? outOfTime() : whyNot
        return outcome && { kind: 'stopped', outcome }
      },

      addAttempt(provider: GuardedProvider, answered: Answered): void {
        attemptLog.add(provider, answered, againAt(answered.result))
      },

      /**
       * Writes the outcome. A notice with an attempt of unknown outcome never ends as surely unsent. Returns done if the
       * notice has ended, or if another worker has claimed it since.
       */
      async record(outcome: ClaimOutcome): Promise<Verdict> {
        letClaimEnd()
        if (outcome.state !== 'pending') {
          const mayHaveArrived = outcome.state !== 'sent' && attemptLog.unknowns().length > 0
          const end = mayHaveArrived ? outcomeUnknown : outcome
          await recordOutcome(notice, claims, attemptLog, end)
          return done
        }
        const retryInMs = Math.min(outcome.retryInMs, Math.max(0, ttlMs()))
        const isOurs = await recordOutcome(notice, claims, attemptLog, { ...outcome, retryInMs })
        return isOurs ? { done: false, retryInMs: retryInMs } : done
      },
    }
  }
}
