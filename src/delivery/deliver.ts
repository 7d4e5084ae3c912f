/**
 * Delivers one notice: look at it → settle what is unknown → still in time? → render → providers in
 * order, each: wait for a slot → claim, and is the code still current? → call → write what came of it.
 *
 * Every await is a place where the process may die. Until the claim nothing has happened, however long
 * the wait was; between claim and record the row says `sending` until its claim ends, then another
 * worker takes it with one try of unknown outcome on its account; after the record it is over. A claim
 * covers one call. The outcome is written with the number of claims, so of two workers that both
 * believe to hold a notice only the later one writes.
 */
import type { Log } from '../base/log.ts'
import { Unavailable } from '../base/problems.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { OpenNotice } from '../notice/claim.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { Templates } from '../templates/templates.ts'
import { type AttemptLog, createAttemptLog, isFailure } from './attempt-log.ts'
import { createComposeMessage } from './compose-message.ts'
import type { GuardedProvider } from './guarded-provider.ts'
import { type ClaimOutcome, outcomeUnknown, sentBy, tooLate } from './outcome.ts'
import type { Routable } from './provider-order.ts'
import { createRecordOutcome } from './record-outcome.ts'
import type { ResolveUnknown } from './resolve-unknown.ts'
import { mayTryAgain, pauseMs, type RetryPolicy, triesLeft } from './retry.ts'

/**
 * Added to a pause that a provider asked for: the message that was told "too fast" comes back after those it
 * kept waiting. It would otherwise renew the pause before any other goes.
 */
const giveWayMs = 500

/** A message that only a newer worker can send is offered again, at growing intervals. */
const soonestNewerMs = 1_000
const latestNewerMs = 30_000

/** What the queue should do with the job. */
export type Verdict = { done: true } | { done: false; againInMs: number }

const done: Verdict = { done: true }

export function createDeliver(deps: {
  store: NoticeStore
  templates: Templates
  providersFor: (notice: Routable) => GuardedProvider[]
  resolveUnknown: ResolveUnknown
  secrets: Secrets
  /** Makes a captcha's code the one that passes, unless it was replaced, used or lost. */
  settleCode: (notice: OpenNotice) => Promise<'current' | 'gone' | 'lost'>
  retry: Record<'captcha' | 'notice', RetryPolicy>
  /** One provider call at most. */
  timeoutMs: number
  metrics: Metrics
  log: Log
}) {
  const { store, providersFor, resolveUnknown, settleCode, metrics, log } = deps
  const composeMessage = createComposeMessage(deps)
  const recordOutcome = createRecordOutcome(deps)

  /** Throws Unavailable while nothing has been claimed; afterwards it always ends with a written outcome. */
  return async function deliver(id: string): Promise<Verdict> {
    const notice = await store.findOpen(id)
    if (!notice) return done
    // Its job came early: the clock that set its time was another one than PostgreSQL's.
    if (notice.opensInMs > 0) return { done: false, againInMs: notice.opensInMs }
    return deliverOpen(notice)
  }

  async function deliverOpen(notice: OpenNotice): Promise<Verdict> {
    const retry = deps.retry[notice.kind]
    const providers = providersFor(notice)
    const attemptLog = createAttemptLog(notice, { metrics, log })
    let { claims } = notice
    let deadlineMs = performance.now() + notice.remainingMs

    /** Writes what is known now. Done when the notice is over, or another worker has claimed it since. */
    async function record(outcome: ClaimOutcome): Promise<Verdict> {
      if (outcome.state !== 'pending') {
        await recordOutcome(notice, claims, attemptLog, outcome)
        return done
      }
      const leftMs = Math.max(0, deadlineMs - performance.now())
      const retryInMs = Math.min(outcome.retryInMs ?? 0, leftMs)
      const isOurs = await recordOutcome(notice, claims, attemptLog, { ...outcome, retryInMs })
      return isOurs ? { done: false, againInMs: retryInMs } : done
    }

    // Before anything else: a message that has reached the person was neither late nor failed.
    const sent = await resolveUnknown(notice, providers, attemptLog)
    if (sent) return record(sent)
    const isOver = notice.remainingMs <= 0
    if (isOver && attemptLog.unknowns().length > 0) return record(outcomeUnknown)
    const message = composeMessage(notice, deadlineMs)
    if (!message || providers.length === 0) {
      // A newer worker may know the template, the secret or the route, so only its time ends it (I27).
      if (isOver) return record({ state: 'expired', error: message ? 'no_route' : 'not_rendered' })
      return record({ state: 'pending', retryInMs: newerWorkerPauseMs(notice) })
    }
    if (isOver) return record(tooLate)
    if (!mayTryAgain(attemptLog.all(), retry)) return record(triesUsedUp(attemptLog))

    /** The soonest that any provider which can't take it now might. */
    let openInMs = Number.POSITIVE_INFINITY
    /** The soonest that one which only asked for a pause, or has no quota left, will take it. */
    let pauseEndsInMs = Number.POSITIVE_INFINITY
    const isLastTry = () => triesLeft(attemptLog.all(), retry) === 1
    const open = providers.filter(({ name }) => !attemptLog.isRejectedBy(name))
    if (isLastTry()) {
      const hasFailed = ({ name }: GuardedProvider) => Number(attemptLog.hasFailedAt(name))
      open.sort((one, other) => hasFailed(one) - hasFailed(other))
    }
    for (const [index, provider] of open.entries()) {
      const leftMs = deadlineMs - performance.now()
      if (leftMs <= 0) return record(tooLate)
      if (!mayTryAgain(attemptLog.all(), retry)) break
      if (isLastTry() && pauseEndsInMs < leftMs && attemptLog.hasFailedAt(provider.name)) break

      let startedAt = new Date()
      /** What stopped the call at the last moment; null: another worker has the notice. */
      let stopped: ClaimOutcome | null = null
      const hasOther = index < open.length - 1
      const result = await provider.send(message, {
        isUrgent: notice.kind === 'captcha',
        leftMs,
        hasOther,
        async begin() {
          const [claim, whyNot] = await Promise.all([
            store.claim({ id: notice.id, claims }),
            whyNotSend(notice),
          ])
          if (!claim) return undefined
          claims = claim.claims
          deadlineMs = performance.now() + claim.remainingMs
          stopped = claim.remainingMs <= 0 ? tooLate : whyNot
          if (stopped) return undefined
          startedAt = new Date()
          return Math.ceil(Math.min(deps.timeoutMs, claim.remainingMs))
        },
      })
      if (result.kind === 'withdrawn') return stopped ? record(stopped) : done
      if (result.kind === 'deferred') {
        metrics.deferred.inc({ provider: provider.name, reason: result.reason })
        openInMs = Math.min(openInMs, result.retryInMs)
        // It will soon be its turn here; for any other reason it goes to the next provider.
        if (result.reason === 'pace' || result.reason === 'busy') break
        if (result.reason === 'paused' || result.reason === 'quota') {
          pauseEndsInMs = Math.min(pauseEndsInMs, result.retryInMs)
        }
        continue
      }
      attemptLog.add(provider.name, result, startedAt)
      if (result.kind === 'accepted') return record(sentBy(provider.name, result.messageId))
      if (result.kind === 'invalid_recipient') {
        return record({ state: 'failed', error: result.kind, provider: provider.name })
      }
      if (result.kind === 'throttled') {
        const againInMs = result.retryAfterMs + giveWayMs
        openInMs = Math.min(openInMs, againInMs)
        pauseEndsInMs = Math.min(pauseEndsInMs, againInMs)
      }
      if (result.kind === 'unknown') {
        // Written before anything else is asked: the claim is for the call alone.
        const verdict = await record({
          state: 'pending',
          retryInMs: unknownPauseMs(providers, attemptLog, retry),
        })
        if (verdict.done) return verdict
        const found = await resolveUnknown(notice, providers, attemptLog)
        if (found) return record(found)
        // Trying elsewhere would double the message at once.
        if (attemptLog.unknowns().length > 0) return verdict
      } else if (hasOther) {
        // The next one may have to be waited for, and what waits is not claimed.
        const verdict = await record({
          state: 'pending',
          retryInMs: pauseMs(1, retry.longestPauseMs),
        })
        if (verdict.done) return verdict
      }
    }
    return record(withoutSuccess(providers, attemptLog, retry, openInMs))
  }

  /** Why a message that was good a moment ago is not worth a call any more; null when it is. */
  async function whyNotSend(notice: OpenNotice): Promise<ClaimOutcome | null> {
    try {
      if (notice.kind !== 'captcha') return null
      const settled = await settleCode(notice)
      return settled === 'current' ? null : { state: 'expired', error: `code_${settled}` }
    } catch (error) {
      if (error instanceof Unavailable) return { state: 'pending', retryInMs: pauseMs(2, 10_000) }
      throw error
    }
  }
}

const triesUsedUp = (attemptLog: AttemptLog): ClaimOutcome =>
  attemptLog.unknowns().length > 0 ? outcomeUnknown : { state: 'failed', error: 'tries_used_up' }

/** The older the notice, the longer until it is looked at again. */
function newerWorkerPauseMs({ wantedAtMs }: OpenNotice): number {
  const ageMs = performance.now() - wantedAtMs
  return Math.min(Math.max(ageMs / 4, soonestNewerMs), latestNewerMs)
}

/** No provider has it, and none may have it unknown to us. */
function withoutSuccess(
  providers: readonly GuardedProvider[],
  attemptLog: AttemptLog,
  retry: RetryPolicy,
  openInMs: number,
): ClaimOutcome {
  if (providers.every(({ name }) => attemptLog.isRejectedBy(name))) {
    return { state: 'failed', error: 'rejected' }
  }
  const isHeld = openInMs < Number.POSITIVE_INFINITY
  const hasFailed = attemptLog.made.some(({ outcome }) => isFailure(outcome))
  if (isHeld && !hasFailed) return { state: 'pending', retryInMs: openInMs }
  if (!mayTryAgain(attemptLog.all(), retry)) return triesUsedUp(attemptLog)
  return { state: 'pending', retryInMs: pauseMs(attemptLog.all().length, retry.longestPauseMs) }
}

/** A provider that can be asked needs time to know. */
function unknownPauseMs(
  providers: readonly GuardedProvider[],
  attemptLog: AttemptLog,
  retry: RetryPolicy,
): number {
  const canBeAsked = attemptLog
    .unknowns()
    .some(({ provider }) =>
      providers.some(({ name, query }) => query && (provider === null || provider === name)),
    )
  return canBeAsked ? retry.askAgainMs : pauseMs(attemptLog.all().length, retry.longestPauseMs)
}
