/**
 * One turn before a provider. A call needs five things for which messages wait: a place in the line, a use of the limits,
 * the claim of the notice, a slot, and a provider that works. Each wait may outlast the message, its code or the provider.
 * So a caller asks once (`inTurn`), and the turn gives back once what it took, in each of its states.
 *
 * - line: Begins when the caller asks. Next with a place (lines.ts) and the circuit's permission. Ends the turn if the
 *   provider rests (circuit.ts), the line is full, or the message ends. This wait may be long, so it comes before the claim.
 * - limits: Next with a use of the provider's limits (provider-limits.ts). Ends the turn if one is reached.
 * - claim: Next with a claim for one call. The caller ends the turn if the message must not be sent any more. The next
 *   messages of a fast provider are claimed during earlier calls. Otherwise its connections would wait for PostgreSQL.
 * - slot: Next with a slot. Ends the turn soon, because the code may be replaced meanwhile.
 * - call: Ends the turn with a result, soon after the time limit (timed-calls.ts). A late answer counts.
 */
import { noteInSpan, traced } from '../base/traces.ts'
import type { Message, Provider, SendResult, SentMessage } from '../providers/provider.ts'
import type { Answered } from './attempt-log.ts'
import { createCircuit, type Passage } from './circuit.ts'
import { createSlots, type Deferred, type Slot } from './lines.ts'
import { createPostponedShare } from './postponed-share.ts'
import type { AcquireSendPermit, SendPermit } from './provider-limits.ts'
import { meanings } from './retry.ts'
import { createTimedCalls } from './timed-calls.ts'

export interface Wish<Stopped> {
  /** Codes do not wait behind bulk notices. */
  isUrgent: boolean
  /** Whether another provider can send the message. */
  hasOther: boolean
  /** Time until the end of the message, which bounds each wait and the call. */
  ttlMs: () => number
  /** Claims the message for one call. Returns the reason if it must not be called. */
  claim: () => Promise<Stopped | undefined>
}

/** A guarded provider, for its owner. */
export type WatchedProvider = ReturnType<typeof createGuardedProvider>

export type GuardedProvider = Omit<WatchedProvider, 'close'>

/**
 * Length of each line before one provider. It is long enough that no slot stays empty while messages wait, although each
 * message needs SQL statements before and after its call.
 */
const maxWaiting = 200

/**
 * At the usual pace, messages are claimed this long before their call. A claim takes less time. A code gets a slot before all
 * bulk notices that are claimed, so they do not keep it from its claim.
 */
const claimDurationMs = 40
/** The longest wait of a claimed message for a slot. It comes back after the same time. */
const slotTimeoutMs = 250

export function createGuardedProvider(
  provider: Provider,
  deps: {
    acquireSendPermit: AcquireSendPermit
    /** Time limit of a call, until the message is handed over, and of a query. */
    timeoutMs: number
    /** Further time for a late answer. A second try beside a message that was handed over could double it. */
    answerTimeoutMs?: number
    /** See timed-calls.ts. */
    isOwnKind?: boolean
    onCircuit: (isOpen: boolean) => void
    /** See postponed-share.ts. */
    onPostponing?: (isNearlyAll: boolean) => void
    /** Called when the provider broke its contract: it threw, or returned an invalid result. */
    onFault: (noticeId: string, error: unknown) => void
  },
) {
  const { acquireSendPermit, timeoutMs, answerTimeoutMs = 0, onPostponing = () => {} } = deps
  const { timedCall, stop: stopCalls } = createTimedCalls(provider, deps)
  const callSlots = createSlots(() => provider.slots)
  const places = createSlots(
    (isUrgent) => provider.slots + ahead() * (isUrgent ? 2 : 1),
    maxWaiting,
  )
  const circuit = createCircuit(provider.slots, (isOpen) => {
    deps.onCircuit(isOpen)
    if (isOpen) places.dismiss()
  })
  const postponedShare = createPostponedShare(onPostponing)
  const ahead = () => Math.floor((provider.slots * claimDurationMs) / callSlots.usualDurationMs())

  /** Calls the provider once with this message, or returns why it was not called. */
  async function inTurn<Stopped>(
    message: Message,
    wish: Wish<Stopped>,
  ): Promise<Answered | Deferred | Stopped> {
    const turn = createTurn(message, wish)
    try {
      return (
        (await turn.line()) ??
        (await turn.limits()) ??
        (await wish.claim()) ??
        (await turn.slot()) ??
        (await turn.call())
      )
    } finally {
      await turn.giveBack()
    }
  }

  /** The states of one turn. Each returns why the turn ends; undefined: the next state follows. */
  function createTurn(message: Message, { isUrgent, hasOther, ttlMs }: Wish<unknown>) {
    const weight = provider.slotsFor?.(message) ?? 1
    let place: Slot | undefined
    let passage: Passage | undefined
    let permit: SendPermit | undefined
    let slot: Slot | undefined
    let result: SendResult | undefined

    /** The provider may have failed or throttled while the message waited. */
    const awaySince = () => (passage?.isProbe ? undefined : circuit.away(isUrgent))

    const withoutSlot = (retryInMs: number): Deferred =>
      circuit.away(isUrgent, false) ?? { kind: 'deferred', reason: 'busy', retryInMs }

    return {
      async line() {
        const deferred = circuit.away(isUrgent)
        if (deferred) return deferred
        const timeoutMs = circuit.isOpen() ? 0 : ttlMs()
        place = await places.take({ isUrgent, weight, timeoutMs, isPatient: !hasOther })
        if (!place.granted) return withoutSlot(place.retryInMs)
        const deferredSince = circuit.away(isUrgent)
        if (!deferredSince) passage = circuit.enter()
        return deferredSince
      },

      async limits() {
        permit = await acquireSendPermit(provider.name, message.to, isUrgent, weight)
        if (permit.granted) return awaySince()
        return { kind: 'deferred', reason: permit.reason, retryInMs: permit.retryInMs } as const
      },

      async slot() {
        const startedAtMs = performance.now()
        slot = await callSlots.take({ isUrgent, weight, timeoutMs: slotTimeoutMs })
        // A process that stood still may have lost the claim. Its timer did not run either.
        const isLate = performance.now() - startedAtMs > slotTimeoutMs
        return !slot.granted || isLate || ttlMs() <= 0 ? withoutSlot(slotTimeoutMs) : awaySince()
      },

      async call(): Promise<Answered> {
        const [startedAt, startedAtMs] = [new Date(), performance.now()]
        const callTimeoutMs = Math.ceil(Math.min(timeoutMs + answerTimeoutMs, ttlMs()))
        const stoppedTimeoutMs = Math.min(timeoutMs, callTimeoutMs)
        const timeouts = { timeoutMs: callTimeoutMs, stoppedTimeoutMs }
        result = await traced(callSpan(provider.name), async () => {
          const answer = await (passage as Passage).call((onAlive) =>
            timedCall(timeouts, message, (signal) => provider.send(message, signal, onAlive)),
          )
          const error = answer.kind === 'accepted' ? undefined : answer.kind
          noteInSpan({ 'postern.outcome': answer.kind }, error)
          return answer
        })
        postponedShare.add(message.to, result)
        return { kind: 'answered', result, startedAt, durationMs: performance.now() - startedAtMs }
      },

      async giveBack() {
        if (!result) passage?.giveUp()
        // First, because Redis may need time for the rest, and the next call has its permit already.
        if (slot?.granted) slot.leave()
        // The provider did not accept the message, so it does not count for the quotas. An answered call counts for the pace.
        if (permit?.granted) {
          if (!result || result.kind === 'unavailable') await permit.release()
          else if (meanings[result.kind].waits) await permit.release('quota')
        }
        if (place?.granted) place.leave()
      },
    }
  }

  /** The outcome of an `unknown` send, if the provider supports queries. */
  async function query(sent: SentMessage): Promise<SendResult> {
    // A query uses the same connections as sends, and a message waits for its answer.
    const slot = await callSlots.take({ isUrgent: true, timeoutMs })
    if (!slot.granted) return { kind: 'unknown', detail: 'the provider is busy' }
    try {
      return await timedCall(
        { timeoutMs },
        sent,
        (signal) => provider.query?.(sent, signal) as Promise<SendResult>,
      )
    } finally {
      slot.leave()
    }
  }

  return {
    name: provider.name,
    kind: provider.kind,
    channels: provider.channels,
    /** The largest number of messages of a kind that can be in calls or in line. */
    capacity: provider.slots + maxWaiting,
    inTurn,
    away: circuit.away,
    ...(provider.query ? { query } : {}),
    state: circuit.state,
    /** The provider postpones nearly all recipients, so it is at fault. */
    postponesAll: postponedShare.isNearlyAll,
    /** Defers all waiting messages. Calls under way go on, but a late answer is no longer waited for. */
    stopWaiting(): void {
      places.close()
      callSlots.close()
      stopCalls()
      postponedShare.stop()
    },
    close: () => provider.close(),
  }
}

const callSpan = (provider: string) =>
  ({
    name: `call ${provider}`,
    kind: 'CLIENT',
    attributes: { 'server.service.name': provider },
  }) as const
