/**
 * Delivers one notice: read it → settle unknown attempts → check the time → render → try the providers in order. For each
 * provider: one turn, in which the notice is claimed and the provider is called → write the outcome.
 *
 * The process may die at every await. Before the claim, nothing has happened, however long the wait was. Between claim
 * and record, the row is `sending` until the claim ends. Then the reconciler frees it, with one attempt of unknown
 * outcome. After the record, the attempt is complete.
 */
import { noteInSpan, traced } from '../base/traces.ts'
import type { OpenNotice } from '../notice/claim.ts'
import { isKnownFormat } from '../notice/format.ts'
import { queueSpan } from '../notice/job.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { Message, SendResult } from '../providers/provider.ts'
import { createComposeMessage } from './compose-message.ts'
import type { GuardedProvider } from './guarded-provider.ts'
import { type Deferred, longestLimitRetryMs } from './lines.ts'
import type { IsEnabled, Routable } from './provider-order.ts'
import { type ClaimOutcome, expired, sentBy } from './record-outcome.ts'
import type { ResolveUnknown } from './resolve-unknown.ts'
import { createRounds, done, type Round, type Verdict } from './round.ts'

/**
 * Extra pause for a message after whose call the provider must rest. The message comes back after the messages that
 * wait. Otherwise a message that always fails or is always throttled would be called first for ever.
 */
const giveWayRetryMs = 500

/** First pause before a message that only a newer worker can send is tried again. The pauses grow. */
const soonestNewerRetryMs = 1_000
const latestNewerRetryMs = 30_000

/** The provider was taken out of all routes during the wait for a turn. */
const leftOut: Deferred = { kind: 'deferred', reason: 'paused', retryInMs: soonestNewerRetryMs }

type RoundDeps = Parameters<typeof createRounds>[0]
type ComposeDeps = Parameters<typeof createComposeMessage>[0]

export interface DeliverDeps extends RoundDeps, ComposeDeps {
  store: NoticeStore
  providersFor: (notice: Routable) => GuardedProvider[]
  /** False for a provider that is out of all routes since the round began. */
  isEnabled?: IsEnabled
  resolveUnknown: ResolveUnknown
}

export function createDeliver(deps: DeliverDeps) {
  const { store, providersFor, resolveUnknown, metrics, isEnabled = () => true } = deps
  const composeMessage = createComposeMessage(deps)
  const openRound = createRounds(deps)

  /** Throws Unavailable only before the claim. After a claim, it always writes an outcome. */
  return async function deliver(id: string): Promise<Verdict> {
    const notice = await store.findOpen(id)
    if (!notice) return done
    // The job came early: its time is by another clock than PostgreSQL's.
    if (notice.retryInMs > 0) return { done: false, retryInMs: notice.retryInMs }
    const span = { ...queueSpan('process', notice), parent: notice.traceParent }
    const round = openRound(notice, providersFor(notice))
    return traced(span, () => deliverOpen(round)).finally(round.letClaimEnd)
  }

  async function deliverOpen(round: Round): Promise<Verdict> {
    const { notice, providers, attemptLog, record } = round
    // This comes first: a message that reached the person is neither late nor failed.
    const sent = await resolveUnknown(notice, providers, attemptLog)
    if (sent) return record(sent)
    const suppressed = whySuppressed(notice)
    if (suppressed) return record({ state: 'failed', error: suppressed })
    const isOver = notice.ttlMs <= 0
    const message = isKnownFormat(notice.format)
      ? composeMessage(notice, performance.now() + round.ttlMs())
      : null
    if (!message || providers.length === 0) {
      // A newer worker may know the format, or have the template, the secret or the route. So only its time ends the
      // notice (I27).
      if (isOver) return record(expired(message ? 'no_route' : 'not_rendered'))
      return record({ state: 'pending', retryInMs: newerWorkerRetryMs(notice) })
    }
    return isOver ? record(round.outOfTime()) : offer(round, message)
  }

  /** Offers a message to one provider after the other, until one has accepted it or may have accepted it. */
  async function offer(round: Round, message: Message): Promise<Verdict> {
    const { providers, attemptLog, isUrgent, ttlMs, record } = round
    const open = providers.filter(({ name }) => !isClosed(attemptLog, name))
    /** Shortest time until one of the providers may accept the message. */
    let retryInMs = Number.POSITIVE_INFINITY
    for (const [index, provider] of open.entries()) {
      if (ttlMs() <= 0 || !round.mayTryAgain()) break
      const postponedRetryMs = round.postponedRetryMs(provider.name)
      if (postponedRetryMs > 0) {
        retryInMs = Math.min(retryInMs, postponedRetryMs)
        continue
      }
      const hasOther = index < open.length - 1
      const claim = async () => (isEnabled(provider.name) ? round.claim(provider) : leftOut)
      const end = await provider.inTurn(message, { isUrgent, hasOther, ttlMs, claim })
      if (end.kind === 'stopped') return end.outcome ? record(end.outcome) : done
      if (end.kind === 'answered') {
        round.addAttempt(provider, end)
        const verdict = await concluded(round, provider, end.result)
        if (verdict) return verdict
        retryInMs = Math.min(retryInMs, providerRetryMs(round, provider, end.result))
      } else if (!isEnabled(provider.name)) {
        // A wait for a turn may be long.
        retryInMs = Math.min(retryInMs, leftOut.retryInMs)
      } else {
        metrics.deferred.inc({ provider: provider.name, reason: end.reason })
        noteInSpan({ 'postern.deferred': end.reason })
        retryInMs = Math.min(retryInMs, end.retryInMs)
        // The message waits only for the pace or a slot. In other cases, the next provider can send it.
        if (end.reason === 'pace' || end.reason === 'busy') break
      }
      if (hasOther && round.isClaimed()) {
        // The next provider may need a wait, and a waiting notice must not be claimed.
        const verdict = await record({ state: 'pending', retryInMs: round.nextRetryMs() })
        if (verdict.done) return verdict
      }
    }
    return record(withoutSuccess(round, retryInMs))
  }

  /** The verdict if this answer ends the round. Undefined: the next provider is called. */
  async function concluded(
    round: Round,
    { name }: GuardedProvider,
    result: SendResult,
  ): Promise<Verdict | undefined> {
    const { notice, providers, attemptLog, record } = round
    if (result.kind === 'accepted') return record(sentBy(name, result.messageId))
    if (result.kind === 'invalid_recipient' && !result.isBarredHere) {
      return record({ state: 'failed', error: result.kind, provider: name })
    }
    if (result.kind !== 'unknown') return undefined
    // Written before a query, because the claim lasts only for the call.
    const verdict = await record({ state: 'pending', retryInMs: unknownRetryMs(round) })
    if (verdict.done) return verdict
    const found = await resolveUnknown(notice, providers, attemptLog)
    if (found) return record(found)
    // Another provider would send the message twice.
    return attemptLog.unknowns().length > 0 ? verdict : undefined
  }
}

/** Time until the message is offered again to this provider. Infinite if the provider refused it for good. */
function providerRetryMs(round: Round, provider: GuardedProvider, result: SendResult): number {
  switch (result.kind) {
    case 'throttled':
      return Math.min(result.retryAfterMs, longestLimitRetryMs) + giveWayRetryMs
    case 'postponed':
      return round.postponedRetryMs(provider.name)
    case 'rejected':
    case 'invalid_recipient':
      return Number.POSITIVE_INFINITY
    default: {
      const away = provider.away(round.isUrgent)
      return away ? away.retryInMs + giveWayRetryMs : round.nextRetryMs()
    }
  }
}

/** The report about the recipient that stops this notice, perhaps only since it was accepted. */
function whySuppressed({ kind, suppressions }: OpenNotice): 'bounced' | 'complained' | undefined {
  const reasons = (suppressions ?? []).map(({ reason }) => reason)
  if (reasons.includes('bounced')) return 'bounced'
  return kind === 'notice' && reasons.includes('complained') ? 'complained' : undefined
}

/** True if this provider never gets the message: it refused the message, or the recipient has opted out of its messages. */
const isClosed = (attemptLog: Round['attemptLog'], name: string) =>
  attemptLog.isRefusedBy(name) || attemptLog.hasOptedOutOf(name)

/** The outcome when no provider has accepted the message. */
function withoutSuccess(round: Round, retryInMs: number): ClaimOutcome {
  const { providers, attemptLog } = round
  if (providers.every(({ name }) => isClosed(attemptLog, name))) {
    const isRejected = attemptLog.all().some(({ outcome }) => outcome === 'rejected')
    if (isRejected) return { state: 'failed', error: 'rejected' }
    const hasOptedOut = providers.some(({ name }) => attemptLog.hasOptedOutOf(name))
    return { state: 'failed', error: hasOptedOut ? 'opted_out' : 'invalid_recipient' }
  }
  if (round.ttlMs() <= 0) return round.outOfTime()
  if (round.mayTryAgain()) return { state: 'pending', retryInMs: retryInMs }
  return { state: 'failed', error: 'tries_used_up' }
}

/** Pause of a notice that only a newer worker can send. It grows with the age of the notice. */
function newerWorkerRetryMs({ wantedAtMs }: OpenNotice): number {
  const waitedDurationMs = performance.now() - wantedAtMs
  return Math.min(Math.max(waitedDurationMs / 4, soonestNewerRetryMs), latestNewerRetryMs)
}

/** Pause before a query: a provider needs time before it knows the outcome. */
function unknownRetryMs({ providers, attemptLog, nextRetryMs, queryRetryMs }: Round): number {
  const canBeAsked = attemptLog
    .unknowns()
    .some(({ provider }) =>
      providers.some(({ name, query }) => query && (provider === null || provider === name)),
    )
  return canBeAsked ? queryRetryMs : nextRetryMs()
}
