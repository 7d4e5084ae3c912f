/**
 * Sends events to receivers, at least once.
 *
 * Every worker claims some due events and POSTs each to the receiver of its app and type, signed by Standard Webhooks.
 * The claim moves the due time past the end of the call. So a worker that dies only delays its events: another worker
 * sends them again with the same `webhook-id`, by which a receiver detects a repeat. An event without a 2xx answer is
 * sent again for a day, with growing pauses. The order is not guaranteed: a repeat may arrive after a later event.
 *
 * A receiver that does not answer must not delay others. So its events are postponed without a call until one of them gets
 * an answer.
 *
 * The events are polled from a table, without a queue: the rows must be in PostgreSQL, because they are written with the
 * moves that they report. A delay of a second does not matter to receivers.
 */
import { backoffMs } from '../base/backoff.ts'
import { type EventType, eventTypes } from '../base/event-types.ts'
import { createHttpClient, type HttpOutcome } from '../base/http-client.ts'
import type { Log } from '../base/log.ts'
import type { Metrics } from '../base/metrics.ts'
import { type Repetition, repeat } from '../base/repeat.ts'
import { noteInSpan, traced, traceHeaders } from '../base/traces.ts'
import { signWebhook } from '../crypto/standard-webhooks.ts'
import type { EventOutbox, TakenEvent } from '../notice/event-outbox.ts'

export interface Receiver {
  readonly url: string
  readonly secret: string
  readonly types?: readonly EventType[] | undefined
  readonly app?: readonly string[] | undefined
}

const defaultPollMs = 1_000
const perPass = 50
const timeoutMs = 5_000
/** Pause for a receiver that did not answer. After it, one event is sent as a test for all others. */
const leftAloneMs = 10_000
const leaseMs = 3 * timeoutMs
/** The pause after the first attempt. It doubles with every attempt. */
const firstPauseMs = 5_000
const longestPauseMs = 3_600_000
const pauseMs = (tries: number) => backoffMs(tries, firstPauseMs, longestPauseMs)
const giveUpAfterMs = 86_400_000

/** The event types that at least one receiver wants. */
export function wantedEventTypes(receivers: readonly Receiver[]): EventType[] {
  return eventTypes.filter((type) => receivers.some(({ types }) => types?.includes(type) ?? true))
}

export interface DispatcherDeps {
  events: EventOutbox
  receivers: readonly Receiver[]
  metrics: Metrics
  log: Log
  /** Pause between two passes while no event is due. */
  pollMs?: number
}

export function startEventDispatcher(deps: DispatcherDeps): Repetition {
  const { events, receivers, metrics, log, pollMs = defaultPollMs } = deps
  const client = createHttpClient(timeoutMs)
  /** Receivers that did not answer, with the end of their pause. */
  const silentUntilMs = new Map<Receiver, number>()

  async function dispatch(signal: AbortSignal): Promise<number> {
    try {
      const taken = await events.take(perPass, leaseMs, giveUpAfterMs)
      const told = taken.map(async (event) => {
        return { id: event.id, pauseMs: await tell(event, signal) }
      })
      await events.settle(await Promise.all(told))
      return taken.length === perPass ? 0 : pollMs
    } catch (error) {
      // An event that was sent but not settled is sent again when its claim ends.
      log.backgroundFailed('events', error)
      return pollMs
    }
  }

  /** Returns the pause before the next attempt; undefined if the event was accepted or given up. */
  async function tell(event: TakenEvent, signal: AbortSignal): Promise<number | undefined> {
    const { id, app, type, tries, isLast } = event
    const receiver = receivers.find(
      (each) => (each.app?.includes(app) ?? true) && (each.types?.includes(type) ?? true),
    )
    // Events of every wanted type are written for all apps, so some have no receiver. A receiver may also be removed.
    if (!receiver) return undefined
    const silentForMs = (silentUntilMs.get(receiver) ?? 0) - performance.now()
    if (silentForMs > 0) {
      if (isLast) return giveUp(event)
      // The pause grows as after a call, so that many events of a dead receiver cause little work.
      return Math.max(silentForMs + Math.random() * pollMs, pauseMs(tries))
    }
    // A silent receiver gets only one event. Other events wait for its result.
    if (silentUntilMs.has(receiver)) silentUntilMs.set(receiver, performance.now() + timeoutMs)
    const outcome = await post(event, receiver, signal)
    if (outcome.kind === 'answered') silentUntilMs.delete(receiver)
    else silentUntilMs.set(receiver, performance.now() + leftAloneMs)
    if (outcome.kind === 'answered' && outcome.status >= 200 && outcome.status < 300) {
      metrics.events.inc({ type, outcome: 'taken' })
      return undefined
    }
    if (isLast) return giveUp(event)
    metrics.events.inc({ type, outcome: 'failed' })
    const reason = outcome.kind === 'answered' ? `HTTP ${outcome.status}` : outcome.reason
    log.eventFailed({ eventId: id, type, tries, reason })
    return pauseMs(tries)
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
      client.close()
    },
  }
}
