/**
 * Tells receivers what has happened, at least once.
 *
 * Every worker looks for due events, takes some, and POSTs each to the receiver of its app and type,
 * signed by Standard Webhooks. Taking moves the due time behind the time a call may last, so a worker
 * that dies in between only delays its events: another tells them again, under the same `webhook-id`,
 * by which a receiver knows a repeat. An event that is not taken (no 2xx) is told again with growing
 * pauses for a day. Order is not promised: a repeat may arrive after a later event.
 *
 * A receiver that gives no answer at all must not hold up the others, so its events are put off without
 * a call until one of them gets an answer.
 *
 * This is polling of a table and no queue of its own: the rows must be in PostgreSQL anyway to be
 * written with the moves they tell of, and a second of delay is nothing to their readers.
 */
import { backoffMs } from '../base/backoff.ts'
import type { EventType } from '../base/event-types.ts'
import { createHttpClient } from '../base/http-client.ts'
import type { Log } from '../base/log.ts'
import type { Metrics } from '../base/metrics.ts'
import { type Repetition, repeat } from '../base/repeat.ts'
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
/** A receiver that gave no answer is left alone for this long; then one event asks for all of its events. */
const leftAloneMs = 10_000
const leaseMs = 3 * timeoutMs
/** Doubles with every try. */
const firstPauseMs = 5_000
const longestPauseMs = 3_600_000
const pauseMs = (tries: number) => backoffMs(tries, firstPauseMs, longestPauseMs)
const giveUpAfterMs = 86_400_000

/** The types that some receiver wants. */
export function wantedEventTypes(
  receivers: readonly Receiver[],
  all: readonly EventType[],
): EventType[] {
  return all.filter((type) => receivers.some(({ types }) => types?.includes(type) ?? true))
}

export function startEventDispatcher(deps: {
  store: EventOutbox
  receivers: readonly Receiver[]
  metrics: Metrics
  log: Log
  /** The pause between two passes while nothing more is due. */
  pollMs?: number
}): Repetition {
  const { store, receivers, metrics, log, pollMs = defaultPollMs } = deps
  const client = createHttpClient(timeoutMs)
  /** Receivers that gave no answer, and until when they are not called. */
  const silentUntilMs = new Map<Receiver, number>()

  async function dispatch(signal: AbortSignal): Promise<number> {
    try {
      const events = await store.take(perPass, leaseMs, giveUpAfterMs)
      const results = await Promise.all(events.map((event) => tell(event, signal)))
      const gone = events.filter((_, index) => results[index] === undefined)
      const again = events.flatMap(({ id }, index) => {
        const againInMs = results[index]
        return againInMs === undefined ? [] : [{ id, pauseMs: againInMs }]
      })
      await store.settle(
        gone.map(({ id }) => id),
        again,
      )
      return events.length === perPass ? 0 : pollMs
    } catch (error) {
      // What was told and could not be settled is told again when its lease ends.
      log.backgroundFailed('events', error)
      return pollMs
    }
  }

  /** The pause before the next try; undefined when there is none, because it was taken or given up. */
  async function tell(event: TakenEvent, signal: AbortSignal): Promise<number | undefined> {
    const { id, app, type, data, createdAt, tries, isLast } = event
    const receiver = receivers.find(
      (each) => (each.app?.includes(app) ?? true) && (each.types?.includes(type) ?? true),
    )
    // The types of all receivers are written for all apps; and a receiver may have left the policy file.
    if (!receiver) return undefined
    const silentForMs = (silentUntilMs.get(receiver) ?? 0) - performance.now()
    if (silentForMs > 0) {
      if (isLast) return giveUp(event)
      // A pause that grows as after a call: many events of a dead receiver must not go round and round.
      return Math.max(silentForMs + Math.random() * pollMs, pauseMs(tries))
    }
    // A receiver that was silent is called for one event; those beside it wait for what comes of that.
    if (silentUntilMs.has(receiver)) silentUntilMs.set(receiver, performance.now() + timeoutMs)
    const body = JSON.stringify({ type, timestamp: createdAt.toISOString(), data })
    const headers = {
      'content-type': 'application/json',
      ...signWebhook(receiver.secret, id, Date.now(), body),
    }
    const outcome = await client.call({ method: 'POST', url: receiver.url, headers, body }, signal)
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

  function giveUp({ id, type, tries }: TakenEvent): undefined {
    metrics.events.inc({ type, outcome: 'given_up' })
    log.eventGivenUp({ eventId: id, type, tries })
  }

  const repetition = repeat(dispatch, pollMs)

  return {
    /** Breaks off the calls under way; resolves when they have ended. */
    async stop() {
      await repetition.stop()
      client.close()
    },
  }
}
