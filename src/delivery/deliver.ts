/**
 * Delivers one notice: claim → still in time? → render → providers in order → record.
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
import type { ClaimedNotice, NoticeOutcome, NoticeStore } from '../notice/store.ts'
import type { Message, Provider, SendResult } from '../providers/provider.ts'
import type { Templates } from '../templates/templates.ts'
import { mayTryAgain, pauseMs, type RetryPolicy } from './retry.ts'
import type { Routable } from './route.ts'

/** What the queue should do with the job. */
export type Verdict = { done: true } | { done: false; againInMs: number }

/** What became of a claim, without the bookkeeping. */
type Ending = Pick<
  NoticeOutcome,
  'state' | 'retryInMs' | 'provider' | 'providerMessageId' | 'error'
>

export function createDeliver(deps: {
  store: NoticeStore
  templates: Templates
  routeOf: (notice: Routable) => Provider[]
  secrets: Secrets
  /** True while the code of a captcha could still pass. */
  isCodeCurrent: (notice: ClaimedNotice) => Promise<boolean>
  retry: Record<'captcha' | 'notice', RetryPolicy>
  /** One provider call at most. */
  timeoutMs: number
  metrics: Metrics
  log: Log
}) {
  const { store, templates, routeOf, secrets, isCodeCurrent, metrics, log } = deps

  /** Throws Unavailable while nothing has been claimed; afterwards it always ends with a written outcome. */
  return async function deliver(id: string): Promise<Verdict> {
    const notice = await store.claim(id)
    if (!notice) return { done: true }
    const deadlineMs = performance.now() + notice.remainingMs
    const tried: Attempt[] = []
    const ending = await carry(notice, deadlineMs, tried)
    await record(notice, ending, tried)
    return ending.state === 'pending'
      ? { done: false, againInMs: ending.retryInMs ?? 0 }
      : { done: true }
  }

  async function carry(
    notice: ClaimedNotice,
    deadlineMs: number,
    tried: Attempt[],
  ): Promise<Ending> {
    const retry = deps.retry[notice.kind]
    if (notice.remainingMs <= 0) return { state: 'expired', error: 'too_late' }
    if (!mayTryAgain(notice.attempts, retry)) return { state: 'failed', error: 'tries_used_up' }

    let message: Message
    try {
      if (notice.kind === 'captcha' && !(await isCodeCurrent(notice))) {
        return { state: 'expired', error: 'code_gone' }
      }
      message = compose(notice)
    } catch (error) {
      if (error instanceof Unavailable) {
        return { state: 'pending', retryInMs: pauseMs(notice.attempts) }
      }
      log.jobFailed(notice.id, error)
      return { state: 'failed', error: 'not_rendered' }
    }

    const providers = routeOf(notice)
    if (providers.length === 0) return { state: 'failed', error: 'no_route' }

    let throttledForMs = Number.POSITIVE_INFINITY
    for (const provider of providers) {
      const isFirst = provider === providers[0]
      if (!isFirst && !(await keepClaim(notice))) return { state: 'pending', retryInMs: 0 }
      const leftMs = deadlineMs - performance.now()
      if (leftMs <= 0) return { state: 'expired', error: 'too_late' }

      const result = await call(provider, message, Math.min(deps.timeoutMs, leftMs), tried)
      if (result.kind === 'accepted') {
        return {
          state: 'sent',
          provider: provider.name,
          ...(result.messageId ? { providerMessageId: result.messageId } : {}),
        }
      }
      if (result.kind === 'invalid_recipient') {
        return { state: 'failed', error: result.kind, provider: provider.name }
      }
      // Trying elsewhere after `unknown` would double the message at once; later, within the budget.
      if (result.kind === 'unknown') break
      if (result.kind === 'throttled')
        throttledForMs = Math.min(throttledForMs, result.retryAfterMs)
    }

    const outcomes = tried.map(({ outcome }) => outcome)
    if (outcomes.every((outcome) => outcome === 'rejected'))
      return { state: 'failed', error: 'rejected' }
    const all = [...notice.attempts, ...tried]
    if (!mayTryAgain(all, retry)) {
      return {
        state: 'failed',
        error: outcomes.at(-1) === 'unknown' ? 'outcome_unknown' : 'tries_used_up',
      }
    }
    const isOnlyThrottled = outcomes.every(
      (outcome) => outcome === 'throttled' || outcome === 'rejected',
    )
    return { state: 'pending', retryInMs: isOnlyThrottled ? throttledForMs : pauseMs(all) }
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

  async function call(
    provider: Provider,
    message: Message,
    timeoutMs: number,
    tried: Attempt[],
  ): Promise<SendResult> {
    const startedAt = new Date()
    const startMs = performance.now()
    let result: SendResult
    try {
      result = await provider.send(message, AbortSignal.timeout(Math.ceil(timeoutMs)))
    } catch (error) {
      // The contract says it never throws; a bug there must not look like a message that was not sent.
      log.jobFailed(message.noticeId, error)
      result = { kind: 'unknown', detail: 'the provider failed inside' }
    }
    const durationMs = Math.round(performance.now() - startMs)
    const detail = 'detail' in result ? result.detail : undefined
    const facts = {
      provider: provider.name,
      outcome: result.kind,
      durationMs,
      ...(detail ? { detail } : {}),
    }
    tried.push({ ...facts, at: startedAt.toISOString() })
    metrics.sends.inc({ provider: provider.name, outcome: result.kind })
    metrics.sendSeconds.observe({ provider: provider.name }, durationMs / 1_000)
    log.tried({ noticeId: message.noticeId, ...facts })
    return result
  }

  async function keepClaim(notice: ClaimedNotice): Promise<boolean> {
    try {
      return await store.keepClaim(notice.id, notice.claim)
    } catch {
      return false
    }
  }

  /** Tries until PostgreSQL takes it: what was sent must be known as sent, and never sent again for this. */
  async function record(notice: ClaimedNotice, ending: Ending, attempts: Attempt[]): Promise<void> {
    for (let pause = 100; ; pause = Math.min(pause * 2, 2_000)) {
      try {
        const isWritten = await store.record({
          id: notice.id,
          claim: notice.claim,
          attempts,
          ...ending,
        })
        if (isWritten && ending.state !== 'pending') finished(notice, ending)
        return
      } catch (error) {
        log.recordFailed(notice.id, error)
        await sleep(pause)
      }
    }
  }

  function finished(notice: ClaimedNotice, ending: Ending): void {
    const labels = { kind: notice.kind, channel: notice.channel }
    metrics.finished.inc({ ...labels, state: ending.state })
    if (ending.state === 'sent') {
      const waitedMs = Math.max(0, Date.now() - notice.createdAt.getTime())
      metrics.acceptedToSentSeconds.observe(labels, waitedMs / 1_000)
    }
    log.finished({
      noticeId: notice.id,
      state: ending.state,
      ...(ending.error ? { error: ending.error } : {}),
    })
  }
}
