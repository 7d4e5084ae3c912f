/**
 * Delivers one notice: claim → settle what is unknown → still in time? → render → providers in order →
 * record.
 *
 * Every await is a place where the process may die. Before the claim nothing has happened; between
 * claim and record the row says `sending` until its claim ends, then another worker takes it with one
 * try of unknown outcome on its account; after the record it is over. The outcome is written with the
 * claim's number, so of two workers that both believe to hold a notice only the later one writes.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../base/log.ts'
import { Unavailable } from '../base/problems.ts'
import type { Secrets } from '../base/secrets.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Attempt } from '../notice/states.ts'
import type { ClaimedNotice, NoticeStore } from '../notice/store.ts'
import type { Message } from '../providers/provider.ts'
import type { Templates } from '../templates/templates.ts'
import { type Ending, outcomeUnknown, sentBy, tooLate } from './ending.ts'
import type { Gate } from './gate.ts'
import { mayTryAgain, pauseMs, type RetryPolicy } from './retry.ts'
import type { Routable } from './route.ts'
import type { Settle } from './settle.ts'
import { createTries, type Tries } from './tries.ts'

/**
 * After a pause, whoever got it comes later than those it kept waiting: a message that is told "too
 * fast" every time would otherwise renew the pause before any other goes.
 */
const giveWayMs = 500

/** What the queue should do with the job. */
export type Verdict = { done: true } | { done: false; againInMs: number }

export function createDeliver(deps: {
  store: NoticeStore
  templates: Templates
  routeOf: (notice: Routable) => Gate[]
  settle: Settle
  secrets: Secrets
  /** True while the code of a captcha could still pass. */
  isCodeCurrent: (notice: ClaimedNotice) => Promise<boolean>
  retry: Record<'captcha' | 'notice', RetryPolicy>
  /** One provider call at most. */
  timeoutMs: number
  metrics: Metrics
  log: Log
}) {
  const { store, templates, routeOf, settle, secrets, isCodeCurrent, metrics, log } = deps

  /** Throws Unavailable while nothing has been claimed; afterwards it always ends with a written outcome. */
  return async function deliver(id: string): Promise<Verdict> {
    const notice = await store.claim(id)
    if (!notice) return { done: true }
    const tries = createTries(notice, { store, metrics, log })
    const ending = await carry(notice, tries)
    await record(notice, ending, tries.made)
    return ending.state === 'pending'
      ? { done: false, againInMs: ending.retryInMs ?? 0 }
      : { done: true }
  }

  async function carry(notice: ClaimedNotice, tries: Tries): Promise<Ending> {
    const deadlineMs = performance.now() + notice.remainingMs
    const retry = deps.retry[notice.kind]
    const gates = routeOf(notice)

    // Before anything else: a message that has reached the person was neither late nor failed.
    const sent = await settle(notice, gates, tries)
    if (sent) return sent
    if (notice.remainingMs <= 0) return tries.unknowns().length > 0 ? outcomeUnknown : tooLate
    if (!mayTryAgain(tries.all(), retry)) {
      return tries.unknowns().length > 0
        ? outcomeUnknown
        : { state: 'failed', error: 'tries_used_up' }
    }
    const message = await prepare(notice)
    if ('state' in message) return message
    if (gates.length === 0) return { state: 'failed', error: 'no_route' }

    /** The soonest that any provider which can't take it now might. */
    let openInMs = Number.POSITIVE_INFINITY
    for (const gate of gates) {
      if (!(await tries.mayCall())) return { state: 'pending', retryInMs: 0 }
      const leftMs = deadlineMs - performance.now()
      if (leftMs <= 0) return tooLate

      const startedAt = new Date()
      const result = await gate.send(message, {
        claim: notice.claim,
        isUrgent: notice.kind === 'captcha',
        timeoutMs: Math.ceil(Math.min(deps.timeoutMs, leftMs)),
      })
      if (result.kind === 'held') {
        metrics.held.inc({ provider: gate.name, reason: result.reason })
        openInMs = Math.min(openInMs, result.retryInMs)
        // Its turn will come; every other hindrance is a reason to go elsewhere.
        if (result.reason === 'pace') break
        continue
      }
      tries.add(gate.name, result, startedAt)
      if (result.kind === 'accepted') return sentBy(gate.name, result.messageId)
      if (result.kind === 'invalid_recipient') {
        return { state: 'failed', error: result.kind, provider: gate.name }
      }
      if (result.kind === 'throttled')
        openInMs = Math.min(openInMs, result.retryAfterMs + giveWayMs)
      if (result.kind === 'unknown') {
        const found = await settle(notice, gates, tries)
        if (found) return found
        // Trying elsewhere would double the message at once.
        if (tries.unknowns().length > 0)
          return { state: 'pending', retryInMs: unknownPauseMs(gates, tries, retry) }
      }
    }
    const ending = withoutSuccess(tries, retry, openInMs)
    const leftMs = Math.max(0, deadlineMs - performance.now())
    return ending.state === 'pending'
      ? { ...ending, retryInMs: Math.min(ending.retryInMs ?? 0, leftMs) }
      : ending
  }

  /** The message, or what becomes of a notice that has none. */
  async function prepare(notice: ClaimedNotice): Promise<Message | Ending> {
    try {
      if (notice.kind === 'captcha' && !(await isCodeCurrent(notice))) {
        return { state: 'expired', error: 'code_gone' }
      }
      return compose(notice)
    } catch (error) {
      if (error instanceof Unavailable) return { state: 'pending', retryInMs: pauseMs(2, 10_000) }
      log.jobFailed(notice.id, error)
      return { state: 'failed', error: 'not_rendered' }
    }
  }

  function compose(notice: ClaimedNotice): Message {
    const params: Record<string, unknown> = JSON.parse(
      secrets.unseal(notice.sealedParams, notice.id),
    )
    const variables: Record<string, string> = {}
    for (const [name, value] of Object.entries(params)) variables[name] = String(value)
    const { channel, template, locale } = notice
    return {
      noticeId: notice.id,
      channel,
      to: notice.recipient,
      template,
      locale,
      variables,
      ...templates.render(template, channel, locale, variables),
    }
  }

  /** Tries until PostgreSQL takes it: what was sent must be known as sent, and never sent again for this. */
  async function record(
    notice: ClaimedNotice,
    ending: Ending,
    attempts: readonly Attempt[],
  ): Promise<void> {
    for (let pause = 100; ; pause = Math.min(pause * 2, 2_000)) {
      try {
        const isWritten = await store.record({
          id: notice.id,
          claim: notice.claim,
          attempts,
          ...ending,
        })
        if (isWritten && ending.state !== 'pending') finished(notice, ending.state, ending)
        return
      } catch (error) {
        log.recordFailed(notice.id, error)
        await sleep(pause)
      }
    }
  }

  function finished(
    notice: ClaimedNotice,
    state: Exclude<Ending['state'], 'pending'>,
    ending: Ending,
  ): void {
    const labels = { kind: notice.kind, channel: notice.channel }
    metrics.finished.inc({ ...labels, state })
    if (state === 'sent') {
      const waitedMs = Math.max(0, Date.now() - notice.wantedAt.getTime())
      metrics.acceptedToSentSeconds.observe(labels, waitedMs / 1_000)
    }
    log.finished({
      noticeId: notice.id,
      state,
      ...(ending.provider ? { provider: ending.provider } : {}),
      ...(ending.error ? { error: ending.error } : {}),
    })
  }
}

/** No provider has it, and none may have it unknown to us. */
function withoutSuccess(tries: Tries, retry: RetryPolicy, openInMs: number): Ending {
  const outcomes = tries.made.map(({ outcome }) => outcome)
  const isHeld = openInMs < Number.POSITIVE_INFINITY
  if (!isHeld && outcomes.every((outcome) => outcome === 'rejected')) {
    return { state: 'failed', error: 'rejected' }
  }
  const hasFailed = outcomes.some((outcome) => outcome === 'unavailable' || outcome === 'not_taken')
  if (isHeld && !hasFailed) return { state: 'pending', retryInMs: openInMs }
  if (!mayTryAgain(tries.all(), retry)) return { state: 'failed', error: 'tries_used_up' }
  return { state: 'pending', retryInMs: pauseMs(tries.all().length, retry.longestPauseMs) }
}

/** Whoever can be asked needs time to know. */
function unknownPauseMs(gates: readonly Gate[], tries: Tries, retry: RetryPolicy): number {
  const canBeAsked = tries
    .unknowns()
    .some(({ provider }) =>
      gates.some(({ name, query }) => query && (provider === null || provider === name)),
    )
  return canBeAsked ? retry.askAgainMs : pauseMs(tries.all().length, retry.longestPauseMs)
}
