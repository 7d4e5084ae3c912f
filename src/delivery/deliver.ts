/**
 * Delivers one notice: look at it → settle what is unknown → still in time? → render → providers in
 * order, each: wait for a slot → claim, and is the code still current? → call → write what came of it.
 *
 * Every await is a place where the process may die. Until the claim nothing has happened, however long
 * the wait was; between claim and record the row says `sending` until its claim ends, then another
 * worker takes it with one try of unknown outcome on its account; after the record it is over.
 */
import type { Log } from '../base/log.ts'
import type { Metrics } from '../base/metrics.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { OpenNotice } from '../notice/claim.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { Message, SendResult } from '../providers/provider.ts'
import { createComposeMessage } from './compose-message.ts'
import type { Deferred, GuardedProvider } from './guarded-provider.ts'
import { type ClaimOutcome, expired, outcomeUnknown, sentBy } from './outcome.ts'
import { createPasses, done, type Pass, type Verdict } from './pass.ts'
import type { Routable } from './provider-order.ts'
import type { ResolveUnknown } from './resolve-unknown.ts'
import type { RetryPolicy } from './retry.ts'
import type { Templates } from './templates.ts'

/**
 * Added where a call itself shut its provider: the message comes back behind those that it keeps waiting. Otherwise a message
 * that is always told "too fast", or that always fails, would be the next one called for ever, and no other would go.
 */
const giveWayMs = 500

/** A message that only a newer worker can send is offered again, at growing intervals. */
const soonestNewerMs = 1_000
const latestNewerMs = 30_000

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
  const { store, providersFor, resolveUnknown, metrics } = deps
  const composeMessage = createComposeMessage(deps)
  const openPass = createPasses(deps)

  /** Throws Unavailable while nothing has been claimed; afterwards it always ends with a written outcome. */
  return async function deliver(id: string): Promise<Verdict> {
    const notice = await store.findOpen(id)
    if (!notice) return done
    // Its job came early: the clock that set its time was another one than PostgreSQL's.
    if (notice.opensInMs > 0) return { done: false, againInMs: notice.opensInMs }
    return deliverOpen(openPass(notice, providersFor(notice)))
  }

  async function deliverOpen(pass: Pass): Promise<Verdict> {
    const { notice, providers, attemptLog, record } = pass
    // Before anything else: a message that has reached the person was neither late nor failed.
    const sent = await resolveUnknown(notice, providers, attemptLog)
    if (sent) return record(sent)
    const isOver = notice.remainingMs <= 0
    if (isOver && attemptLog.unknowns().length > 0) return record(outcomeUnknown)
    const message = composeMessage(notice, performance.now() + pass.leftMs())
    if (!message || providers.length === 0) {
      // A newer worker may know the template, the secret or the route, so only its time ends it (I27).
      if (isOver) return record(expired(message ? 'no_route' : 'not_rendered'))
      return record({ state: 'pending', retryInMs: newerWorkerPauseMs(notice) })
    }
    return isOver ? record(pass.outOfTime()) : offer(pass, message)
  }

  /** Offers a message to one provider after the other, until one has it or may have it. */
  async function offer(pass: Pass, message: Message): Promise<Verdict> {
    const { providers, attemptLog, isUrgent, begin, record } = pass
    const open = providers.filter(({ name }) => !attemptLog.isRejectedBy(name))
    /** The soonest that one of them may take it. */
    let waitMs = Number.POSITIVE_INFINITY
    for (const [index, provider] of open.entries()) {
      const leftMs = pass.leftMs()
      if (leftMs <= 0) return record(pass.outOfTime())
      if (!pass.mayTryAgain()) break
      const hasOther = index < open.length - 1
      const result = await provider.send(message, { isUrgent, leftMs, hasOther, begin })
      if (result.kind === 'withdrawn') {
        const stopped = pass.stopped()
        return stopped ? record(stopped) : done
      }
      if (result.kind === 'deferred') {
        metrics.deferred.inc({ provider: provider.name, reason: result.reason })
      } else {
        attemptLog.add(provider.name, result, pass.startedAt())
        const verdict = await concluded(pass, provider, result)
        if (verdict) return verdict
      }
      waitMs = Math.min(waitMs, comesBackInMs(pass, provider, result))
      if (isNextHere(result)) break
      if (hasOther && result.kind !== 'deferred') {
        // The next one may have to be waited for, and what waits is not claimed.
        const verdict = await record({ state: 'pending', retryInMs: pass.pauseMs() })
        if (verdict.done) return verdict
      }
    }
    return record(withoutSuccess(pass, waitMs))
  }

  /** What ends the pass, if the answer does: another provider must not have the message, or need not. */
  async function concluded(
    pass: Pass,
    { name }: GuardedProvider,
    result: SendResult,
  ): Promise<Verdict | undefined> {
    const { notice, providers, attemptLog, record } = pass
    if (result.kind === 'accepted') return record(sentBy(name, result.messageId))
    if (result.kind === 'invalid_recipient') {
      return record({ state: 'failed', error: result.kind, provider: name })
    }
    if (result.kind !== 'unknown') return undefined
    // Written before anything else is asked: the claim is for the call alone.
    const verdict = await record({ state: 'pending', retryInMs: unknownPauseMs(pass) })
    if (verdict.done) return verdict
    const found = await resolveUnknown(notice, providers, attemptLog)
    if (found) return record(found)
    // Trying elsewhere would double the message at once.
    return attemptLog.unknowns().length > 0 ? verdict : undefined
  }
}

/** When a message comes back to a provider that did not take it; never, where that has refused it for good. */
function comesBackInMs(
  pass: Pass,
  provider: GuardedProvider,
  result: SendResult | Deferred,
): number {
  switch (result.kind) {
    case 'deferred':
      return result.retryInMs
    case 'throttled':
      return result.retryAfterMs + giveWayMs
    case 'postponed':
      return result.retryAfterMs ?? pass.pauseMs()
    case 'rejected':
      return Number.POSITIVE_INFINITY
    default: {
      const away = provider.away(pass.isUrgent)
      return away ? away.retryInMs + giveWayMs : pass.pauseMs()
    }
  }
}

/** It will soon be the message's turn here; whatever else keeps it away, the next provider may take it. */
const isNextHere = (result: SendResult | Deferred): boolean =>
  result.kind === 'deferred' && (result.reason === 'pace' || result.reason === 'busy')

/** No provider has it, and none may have it unknown to us. */
function withoutSuccess(pass: Pass, waitMs: number): ClaimOutcome {
  const { providers, attemptLog } = pass
  if (providers.every(({ name }) => attemptLog.isRejectedBy(name))) {
    return { state: 'failed', error: 'rejected' }
  }
  if (pass.mayTryAgain()) return { state: 'pending', retryInMs: waitMs }
  return attemptLog.unknowns().length > 0
    ? outcomeUnknown
    : { state: 'failed', error: 'tries_used_up' }
}

/** The older the notice, the longer until it is looked at again. */
function newerWorkerPauseMs({ wantedAtMs }: OpenNotice): number {
  const ageMs = performance.now() - wantedAtMs
  return Math.min(Math.max(ageMs / 4, soonestNewerMs), latestNewerMs)
}

/** A provider that can be asked needs time to know. */
function unknownPauseMs({ providers, attemptLog, pauseMs, askAgainMs }: Pass): number {
  const canBeAsked = attemptLog
    .unknowns()
    .some(({ provider }) =>
      providers.some(({ name, query }) => query && (provider === null || provider === name)),
    )
  return canBeAsked ? askAgainMs : pauseMs()
}
