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
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../base/log.ts'
import { Unavailable } from '../base/problems.ts'
import type { Secrets } from '../base/secrets.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Attempt } from '../notice/states.ts'
import type { NoticeOutcome, NoticeStore, OpenNotice } from '../notice/store.ts'
import type { Message } from '../providers/provider.ts'
import type { Templates } from '../templates/templates.ts'
import { type Ending, outcomeUnknown, sentBy, tooLate } from './ending.ts'
import type { Gate } from './gate.ts'
import { mayTryAgain, pauseMs, type RetryPolicy } from './retry.ts'
import type { Routable } from './route.ts'
import type { Settle } from './settle.ts'
import { createTries, type Tries } from './tries.ts'

/**
 * After a pause, whoever got it comes later than those they kept waiting: a message that is told "too
 * fast" every time would otherwise renew the pause before any other goes.
 */
const giveWayMs = 500

/** A message that only a newer worker can carry is offered again, at growing intervals. */
const soonestNewerMs = 1_000
const latestNewerMs = 30_000

/** What the queue should do with the job. */
export type Verdict = { done: true } | { done: false; againInMs: number }

const done: Verdict = { done: true }

export function createDeliver(deps: {
  store: NoticeStore
  templates: Templates
  routeOf: (notice: Routable) => Gate[]
  settle: Settle
  secrets: Secrets
  /** True while the code of a captcha could still pass. */
  isCodeCurrent: (notice: OpenNotice) => Promise<boolean>
  retry: Record<'captcha' | 'notice', RetryPolicy>
  /** One provider call at most. */
  timeoutMs: number
  metrics: Metrics
  log: Log
}) {
  const { store, templates, routeOf, settle, secrets, isCodeCurrent, metrics, log } = deps
  /** Templates of which the log says already that this worker can't render them. */
  const unrenderable = new Set<string>()

  /** Throws Unavailable while nothing has been claimed; afterwards it always ends with a written outcome. */
  return async function deliver(id: string): Promise<Verdict> {
    const notice = await store.findOpen(id)
    if (!notice) return done
    // Its job came early: the clock that set its time was another one than PostgreSQL's.
    if (notice.opensInMs > 0) return { done: false, againInMs: notice.opensInMs }
    return carry(notice)
  }

  async function carry(notice: OpenNotice): Promise<Verdict> {
    const retry = deps.retry[notice.kind]
    const gates = routeOf(notice)
    const tries = createTries(notice, { metrics, log })
    let { claims } = notice
    let deadlineMs = performance.now() + notice.remainingMs

    /** Writes it, and says what becomes of the job. */
    async function end(ending: Ending): Promise<Verdict> {
      if (ending.state !== 'pending') {
        await record(notice, claims, tries, ending)
        return done
      }
      const leftMs = Math.max(0, deadlineMs - performance.now())
      const retryInMs = Math.min(ending.retryInMs ?? 0, leftMs)
      const isOurs = await record(notice, claims, tries, { ...ending, retryInMs })
      return isOurs ? { done: false, againInMs: retryInMs } : done
    }

    // Before anything else: a message that has reached the person was neither late nor failed.
    const sent = await settle(notice, gates, tries)
    if (sent) return end(sent)
    const isOver = notice.remainingMs <= 0
    if (isOver && tries.unknowns().length > 0) return end(outcomeUnknown)
    const message = findMessage(notice)
    if (!message || gates.length === 0) {
      // A newer worker may know the template, the secret or the route, so only its time ends it (I27).
      if (isOver) return end({ state: 'expired', error: message ? 'no_route' : 'not_rendered' })
      return end({ state: 'pending', retryInMs: newerWorkerPauseMs(notice) })
    }
    if (isOver) return end(tooLate)
    if (!mayTryAgain(tries.all(), retry)) return end(triesUsedUp(tries))

    /** The soonest that any provider which can't take it now might. */
    let openInMs = Number.POSITIVE_INFINITY
    const open = gates.filter(({ name }) => !tries.isRejectedBy(name))
    for (const [index, gate] of open.entries()) {
      const leftMs = deadlineMs - performance.now()
      if (leftMs <= 0) return end(tooLate)
      if (!mayTryAgain(tries.all(), retry)) break

      let startedAt = new Date()
      /** What stopped the call at the last moment; null: another worker has the notice. */
      let stopped: Ending | null = null
      const hasOther = index < open.length - 1
      const result = await gate.send(message, {
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
      if (result.kind === 'withdrawn') return stopped ? end(stopped) : done
      if (result.kind === 'held') {
        metrics.held.inc({ provider: gate.name, reason: result.reason })
        openInMs = Math.min(openInMs, result.retryInMs)
        // Its turn will come; every other hindrance is a reason to go elsewhere.
        if (result.reason === 'pace' || result.reason === 'busy') break
        continue
      }
      tries.add(gate.name, result, startedAt)
      if (result.kind === 'accepted') return end(sentBy(gate.name, result.messageId))
      if (result.kind === 'invalid_recipient') {
        return end({ state: 'failed', error: result.kind, provider: gate.name })
      }
      if (result.kind === 'throttled')
        openInMs = Math.min(openInMs, result.retryAfterMs + giveWayMs)
      if (result.kind === 'unknown') {
        // Written before anything else is asked: the claim is for the call alone.
        const later = await end({
          state: 'pending',
          retryInMs: unknownPauseMs(gates, tries, retry),
        })
        if (later.done) return later
        const found = await settle(notice, gates, tries)
        if (found) return end(found)
        // Trying elsewhere would double the message at once.
        if (tries.unknowns().length > 0) return later
      } else if (hasOther) {
        // The next one may have to be waited for, and what waits is not claimed.
        const later = await end({ state: 'pending', retryInMs: pauseMs(1, retry.longestPauseMs) })
        if (later.done) return later
      }
    }
    return end(withoutSuccess(gates, tries, retry, openInMs))
  }

  /** Why a message that was good a moment ago is not worth a call any more; null when it is. */
  async function whyNotSend(notice: OpenNotice): Promise<Ending | null> {
    try {
      if (notice.kind === 'captcha' && !(await isCodeCurrent(notice))) {
        return { state: 'expired', error: 'code_gone' }
      }
      return null
    } catch (error) {
      if (error instanceof Unavailable) return { state: 'pending', retryInMs: pauseMs(2, 10_000) }
      throw error
    }
  }

  /** Null when this worker lacks the template, a variable of it, or the secret that sealed them. */
  function findMessage(notice: OpenNotice): Message | null {
    const edition = `${notice.template}/${notice.channel}.${notice.locale}`
    try {
      const message = compose(notice)
      unrenderable.delete(edition)
      return message
    } catch (error) {
      if (!unrenderable.has(edition)) log.notRendered(notice.id, edition, error)
      unrenderable.add(edition)
      return null
    }
  }

  function compose(notice: OpenNotice): Message {
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

  /**
   * False when another worker has claimed the notice since. What was learnt from a provider is written
   * until PostgreSQL takes it: what was sent must be known as sent, and never sent again for this.
   */
  async function record(
    notice: OpenNotice,
    claims: number,
    tries: Tries,
    ending: Ending,
  ): Promise<boolean> {
    let outcome: NoticeOutcome = { id: notice.id, claims, attempts: tries.all(), ...ending }
    let isBare = false
    for (let pause = 100; ; pause = Math.min(pause * 2, 2_000)) {
      try {
        const isWritten = await store.record(outcome)
        if (isWritten && ending.state !== 'pending') finished(notice, ending.state, ending)
        return isWritten
      } catch (error) {
        log.recordFailed(notice.id, error)
        if (error instanceof Unavailable) {
          // A pause of which nothing was learnt need not be known; the job itself comes back.
          if (ending.state === 'pending' && tries.made.length === 0) return true
          await sleep(pause)
        } else if (isBare) throw error
        else {
          isBare = true
          outcome = bare(outcome)
        }
      }
    }
  }

  function finished(
    notice: OpenNotice,
    state: Exclude<Ending['state'], 'pending'>,
    ending: Ending,
  ): void {
    const labels = { kind: notice.kind, channel: notice.channel }
    metrics.finished.inc({ ...labels, state })
    if (state === 'sent') {
      const waitedMs = Math.max(0, performance.now() - notice.wantedAtMs)
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

/** Without what came from outside: a row must be able to end, whatever a far end said. */
function bare({ providerMessageId: _, attempts, ...outcome }: NoticeOutcome): NoticeOutcome {
  const withoutDetail = ({ detail: _, ...attempt }: Attempt): Attempt => attempt
  return { ...outcome, attempts: attempts.map(withoutDetail) }
}

const triesUsedUp = (tries: Tries): Ending =>
  tries.unknowns().length > 0 ? outcomeUnknown : { state: 'failed', error: 'tries_used_up' }

/** The older the notice, the longer until it is looked at again. */
function newerWorkerPauseMs({ wantedAtMs }: OpenNotice): number {
  const ageMs = performance.now() - wantedAtMs
  return Math.min(Math.max(ageMs / 4, soonestNewerMs), latestNewerMs)
}

/** No provider has it, and none may have it unknown to us. */
function withoutSuccess(
  gates: readonly Gate[],
  tries: Tries,
  retry: RetryPolicy,
  openInMs: number,
): Ending {
  if (gates.every(({ name }) => tries.isRejectedBy(name))) {
    return { state: 'failed', error: 'rejected' }
  }
  const isHeld = openInMs < Number.POSITIVE_INFINITY
  const hasFailed = tries.made.some(({ outcome }) => ['unavailable', 'not_taken'].includes(outcome))
  if (isHeld && !hasFailed) return { state: 'pending', retryInMs: openInMs }
  if (!mayTryAgain(tries.all(), retry)) return triesUsedUp(tries)
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
