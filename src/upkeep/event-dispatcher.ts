/**
 * Sends events to receivers, at least once.
 *
 * Every worker claims some due events and POSTs each to the receiver of its app and type, signed by Standard Webhooks.
 * The claim moves the due time past the end of the call. So a worker that dies only delays its events: another worker
 * sends them again with the same `webhook-id`, by which a receiver detects a repeat. An event without a 2xx answer is
 * sent again for a day, with growing pauses. The order is not guaranteed: a repeat may arrive after a later event.
 *
 * A receiver must not delay others. If it does not answer, its events are postponed without a call until one of them gets
 * an answer. If it answers slowly, a number of its calls are under way, and its other events are postponed. They come
 * back one after the other, at the rate of its answers. This wait is no try: the receiver works.
 *
 * The events are polled from a table, without a queue: the rows must be in PostgreSQL, because they are written with the
 * moves that they report. A delay of a second does not matter to receivers.
 */
import { backoffMs } from '../base/backoff.ts'
import { createBatcher } from '../base/batcher.ts'
import { orLate } from '../base/deadline.ts'
import { type EventType, eventTypes } from '../base/event-types.ts'
import { createHttpClient, type HttpOutcome } from '../base/http-client.ts'
import type { Log } from '../base/log.ts'
import { type Repetition, repeat } from '../base/repeat.ts'
import { noteInSpan, traced, traceHeaders } from '../base/traces.ts'
import { signWebhook } from '../crypto/standard-webhooks.ts'
import type { EndedLease, EventOutbox, TakenEvent } from '../notice/event-outbox.ts'
import type { UpkeepMetrics } from './metrics.ts'

export interface Receiver {
  readonly url: string
  readonly secret: string
  readonly types?: readonly EventType[] | undefined
  readonly app?: readonly string[] | undefined
}

const defaultPollMs = 1_000
const perPass = 50
/** The most calls of this process under way to one receiver. */
const perReceiver = perPass
/** A pass waits this long for its calls. So the events of a quick receiver are not postponed. */
const quickMs = 100
const timeoutMs = 5_000
/** Pause for a receiver that did not answer. After it, one event is sent as a test for all others. */
const leftAloneMs = 10_000
const leaseMs = 3 * timeoutMs
/** The pause after the first attempt. It doubles with every attempt. */
const firstPauseMs = 5_000
const longestPauseMs = 3_600_000
const retryInMs = (tries: number) => backoffMs(tries, firstPauseMs, longestPauseMs)
const giveUpAfterMs = 86_400_000
/** An event is given up after this many tries at least. Their pauses last about an hour, also after a day without workers. */
const fewestTries = 10

/** The event types that at least one receiver wants. */
export function wantedEventTypes(receivers: readonly Receiver[]): EventType[] {
  return eventTypes.filter((type) => receivers.some(({ types }) => types?.includes(type) ?? true))
}

export interface DispatcherDeps {
  events: EventOutbox
  receivers: readonly Receiver[]
  metrics: UpkeepMetrics
  log: Log
  /** Pause between two passes while no event is due. */
  pollMs?: number
}

export function startEventDispatcher(deps: DispatcherDeps): Repetition {
  const { events, receivers, metrics, log, pollMs = defaultPollMs } = deps
  const client = createHttpClient(timeoutMs)
  const gates = new Map(receivers.map((receiver) => [receiver, createGate(pollMs)]))
  const underWay = new Set<Promise<void>>()
  /** The number of events postponed because their receiver had enough calls under way. */
  let crowded = 0
  const settle = createBatcher<EndedLease, void>({
    maxItems: 200,
    maxConcurrent: 1,
    run: (list) => events.settle(list),
  })

  async function dispatch(signal: AbortSignal): Promise<number> {
    try {
      const taken = await events.take(perPass, leaseMs, giveUpAfterMs)
      const crowdedBefore = crowded
      const ends = taken.map((event) => end(event, signal))
      for (const one of ends) {
        underWay.add(one)
        void one.then(() => underWay.delete(one))
      }
      if (crowded === crowdedBefore) await orLate(Promise.all(ends), quickMs, () => [])
      return taken.length === perPass ? 0 : pollMs
    } catch (error) {
      log.backgroundFailed('events', error)
      return pollMs
    }
  }

  /** Sends an event and ends its lease. Never rejects. */
  async function end(event: TakenEvent, signal: AbortSignal): Promise<void> {
    try {
      await settle({ id: event.id, ...(await tell(event, signal)) })
    } catch (error) {
      // An event that was sent but not settled is sent again when its claim ends.
      log.backgroundFailed('events', error)
    }
  }

  /** Undefined if the event was accepted or given up. */
  async function tell(
    event: TakenEvent,
    signal: AbortSignal,
  ): Promise<Omit<EndedLease, 'id'> | undefined> {
    const { id, app, type, tries, isOld } = event
    const receiver = receivers.find(
      (each) => (each.app?.includes(app) ?? true) && (each.types?.includes(type) ?? true),
    )
    const gate = receiver && gates.get(receiver)
    // Events of every wanted type are written for all apps, so some have no receiver. A receiver may also be removed.
    if (!gate) return undefined
    const isLast = isOld && tries >= fewestTries
    const silentForMs = gate.silentForMs()
    if (silentForMs > 0) {
      if (isLast) return giveUp(event)
      // The pause grows as after a call, so that many events of a dead receiver cause little work.
      return { retryInMs: Math.max(silentForMs + Math.random() * pollMs, retryInMs(tries)) }
    }
    const crowdedForMs = gate.crowdedForMs()
    if (crowdedForMs > 0) {
      crowded += 1
      return { retryInMs: crowdedForMs, isNoTry: true }
    }
    const outcome = await gate.call(() => post(event, receiver, signal))
    if (outcome.kind === 'answered' && outcome.status >= 200 && outcome.status < 300) {
      metrics.events.inc({ type, outcome: 'taken' })
      return undefined
    }
    // A call that this process aborted proves nothing about the receiver.
    if (isLast && !signal.aborted) return giveUp(event)
    metrics.events.inc({ type, outcome: 'failed' })
    const reason = outcome.kind === 'answered' ? `HTTP ${outcome.status}` : outcome.reason
    log.eventFailed({ eventId: id, type, tries, reason })
    return { retryInMs: retryInMs(tries) }
  }

  function post(
    { id, type, data, createdAt, traceParent }: TakenEvent,
    { url, secret }: Receiver,
    signal: AbortSignal,
  ): Promise<HttpOutcome> {
    const body = JSON.stringify({ type, timestamp: createdAt.toISOString(), data })
    const span = { name: `event ${type}`, kind: 'CLIENT', parent: traceParent } as const
    return traced(span, async () => {
      const headers = {
        'content-type': 'application/json',
        ...signWebhook(secret, id, Date.now(), body),
        ...traceHeaders(),
      }
      const outcome = await client.call({ method: 'POST', url, headers, body }, signal)
      if (outcome.kind !== 'answered') noteInSpan({}, outcome.kind)
      else {
        const { status } = outcome
        noteInSpan(
          { 'http.response.status_code': status },
          status >= 400 ? String(status) : undefined,
        )
      }
      return outcome
    })
  }

  function giveUp({ id, type, tries }: TakenEvent): undefined {
    metrics.events.inc({ type, outcome: 'given_up' })
    log.eventGivenUp({ eventId: id, type, tries })
  }

  const repetition = repeat(dispatch, pollMs)

  return {
    /** Aborts the calls under way. Resolves when they have ended. */
    async stop() {
      await repetition.stop()
      await Promise.all(underWay)
      client.close()
    },
  }
}

/** Whether one receiver can be called now. */
function createGate(pollMs: number) {
  let underWay = 0
  /** The time that the latest call took. The first value is a guess. */
  let tookMs = 1_000
  /** The latest time at which a postponed event comes back. */
  let backAtMs = 0
  /** The end of the receiver's pause, which begins with a call without an answer. 0 after an answer. */
  let silentUntilMs = 0

  return {
    silentForMs: () => silentUntilMs - performance.now(),

    /** The time until an event comes back because enough calls are under way. At most 0: it can be sent. */
    crowdedForMs(): number {
      if (underWay < perReceiver) return 0
      const nowMs = performance.now()
      const inLineAtMs = Math.max(nowMs + pollMs, backAtMs + tookMs / perReceiver)
      backAtMs = Math.min(inLineAtMs, nowMs + longestPauseMs)
      return backAtMs - nowMs
    },

    async call(post: () => Promise<HttpOutcome>): Promise<HttpOutcome> {
      const startMs = performance.now()
      // A silent receiver gets only one event. Other events wait for its result.
      if (silentUntilMs > 0) silentUntilMs = startMs + timeoutMs
      underWay += 1
      const outcome = await post().finally(() => {
        underWay -= 1
      })
      const endMs = performance.now()
      tookMs = endMs - startMs
      silentUntilMs = outcome.kind === 'answered' ? 0 : endMs + leftAloneMs
      return outcome
    },
  }
}
