/**
 * Guards the calls of one provider: decides whether a message can go to it now, and returns the result.
 *
 * - A provider that throttles is not called until its pause ends.
 * - No message waits for a dead provider (circuit.ts).
 * - Messages wait for a busy provider before they are claimed (slots.ts). The next messages of a fast provider are
 *   claimed during earlier calls. Otherwise its connections would wait for PostgreSQL.
 * - The limits of the provider are kept (provider-limits.ts).
 * - Every call ends soon after its time limit, with a result of the closed set (timed-calls.ts). A late answer counts.
 *
 * Messages that wait for a provider to return get places in a line. They come back one after the other, soon after
 * calls are allowed again. So few try at a time, even if thousands wait.
 */
import type { Message, Provider, SendResult, SentMessage } from '../providers/provider.ts'
import { createCircuit, probeEveryMs } from './circuit.ts'
import { createPostponedShare } from './postponed-share.ts'
import type { AcquireSendPermit } from './provider-limits.ts'
import { captchaPauses, meanings, noticePauses } from './retry.ts'
import { createCheckTimes, createReturnTimes, longestWaitMs } from './return-times.ts'
import { createSlots, type Slot } from './slots.ts'
import { createTimedCalls } from './timed-calls.ts'
import type { ProviderState } from './worker-notes.ts'

/** The provider was not called. */
export interface Deferred {
  kind: 'deferred'
  reason: 'paused' | 'circuit' | 'busy' | 'pace' | 'quota' | 'limiter'
  retryInMs: number
}

/** Permission for one call: a use of the provider's limits and the next slot. The holder must always end it. */
export interface Turn {
  kind: 'turn'
  /** Waits a short time for a slot. Deferred: the provider must not be called after all. */
  takeSlot(): Promise<Deferred | undefined>
  /**
   * Calls the provider once. The provider has `timeoutMs` to hand the message over, and `answerMs` for its answer. The
   * result comes at most a second after both, or after the end of the message.
   */
  call(timeoutMs: number, leftMs: number): Promise<SendResult>
  end(): Promise<void>
}

export interface Wish {
  /** Codes do not wait behind bulk notices. */
  isUrgent: boolean
  /** Time until the end of the message, and so the longest wait. */
  leftMs: number
  /** Whether another provider can send the message. */
  hasOther: boolean
}

/** A guarded provider, for its owner. */
export type WatchedProvider = ReturnType<typeof createGuardedProvider>

export type GuardedProvider = Omit<WatchedProvider, 'close'>

/**
 * Length of the line before one provider. It is long enough that no slot stays empty while messages wait, although each
 * message needs SQL statements before and after its call.
 */
const maxWaiting = 200

/** At the usual pace, messages are claimed this long before their call. A claim takes less time. */
const aheadMs = 40
// A claimed message waits no longer for a slot, because its code may be replaced meanwhile. It is then given back, and
// comes again after the same time.
const giveBackMs = 250

/** Distance between two messages that come back to a provider. Each costs two SQL statements. */
const returnSpacingMs = 20

export function createGuardedProvider(
  provider: Provider,
  deps: {
    acquireSendPermit: AcquireSendPermit
    /** Time for a late answer. A second try beside a message that was handed over could double it. */
    answerMs?: number
    /** See timed-calls.ts. */
    isOwnKind?: boolean
    onCircuit: (isOpen: boolean) => void
    /** See postponed-share.ts. */
    onPostponing?: (isNearlyAll: boolean) => void
    /** Called when the provider broke its contract: it threw, or returned an invalid result. */
    onFault: (noticeId: string, error: unknown) => void
  },
) {
  const { acquireSendPermit, answerMs = 0, onPostponing = () => {} } = deps
  const { timedCall, stop: stopCalls } = createTimedCalls(provider, deps)
  const callSlots = createSlots(() => provider.slots)
  const claimSlots = createSlots(() => provider.slots + ahead(), maxWaiting)
  const circuit = createCircuit(provider.slots, (isOpen) => {
    deps.onCircuit(isOpen)
    if (isOpen) claimSlots.dismiss()
  })
  const postponedShare = createPostponedShare(onPostponing)
  const ahead = () => Math.floor((provider.slots * aheadMs) / callSlots.usualMs())
  const returnTimes = createReturnTimes(captchaPauses.longestPauseMs, noticePauses.longestPauseMs)
  const checkInMs = createCheckTimes()
  let pausedUntilMs = 0

  /** Why no call is allowed now, and when this message may come back. Undefined if calls are allowed. */
  function away(isUrgent: boolean): Deferred | undefined {
    const pausedForMs = pausedUntilMs - performance.now()
    const awayForMs = pausedForMs > 0 ? pausedForMs : circuit.openForMs()
    if (awayForMs <= 0) return undefined
    return sentAway(isUrgent, pausedForMs > 0 ? 'paused' : 'circuit', awayForMs)
  }

  function sentAway(isUrgent: boolean, reason: 'paused' | 'circuit', awayForMs: number): Deferred {
    const isLong = awayForMs > longestWaitMs
    const retryInMs = isLong
      ? checkInMs(awayForMs)
      : returnTimes(isUrgent, awayForMs, returnSpacingMs)
    return { kind: 'deferred', reason, retryInMs }
  }

  /** Waits for a turn to send this message. */
  async function takeTurn(message: Message, wish: Wish): Promise<Turn | Deferred> {
    const { isUrgent, leftMs, hasOther } = wish
    const deferred = away(isUrgent)
    if (deferred) return deferred
    const weight = provider.slotsFor?.(message) ?? 1
    const place = await claimSlots.take({
      isUrgent,
      weight,
      withinMs: circuit.isOpen() ? 0 : leftMs,
      isPatient: !hasOther,
    })
    if (!place.granted) return withoutSlot(isUrgent, place.retryInMs)
    let turn: Turn | Deferred | undefined
    try {
      turn = await turnAt(place, message, isUrgent, weight)
      return turn
    } finally {
      if (turn?.kind !== 'turn') place.leave()
    }
  }

  /**
   * Why a message got no slot. While the circuit is open, calls without an answer hold the slots for as long as an answer
   * may take. So no message waits for one, although a probe is due.
   */
  function withoutSlot(isUrgent: boolean, retryInMs: number): Deferred {
    const deferred = away(isUrgent)
    if (deferred) return deferred
    return circuit.isOpen()
      ? sentAway(isUrgent, 'circuit', probeEveryMs)
      : { kind: 'deferred', reason: 'busy', retryInMs }
  }

  async function turnAt(
    place: { leave(): void },
    message: Message,
    isUrgent: boolean,
    weight: number,
  ): Promise<Turn | Deferred> {
    // While the message waited, the provider may have failed or throttled.
    const deferred = away(isUrgent)
    if (deferred) return deferred
    const permit = await acquireSendPermit(provider.name, message.to, isUrgent, weight)
    if (!permit.granted) {
      return { kind: 'deferred', reason: permit.reason, retryInMs: permit.retryInMs }
    }
    const passage = circuit.enter()
    if (!passage) {
      await permit.release()
      return away(isUrgent) ?? { kind: 'deferred', reason: 'circuit', retryInMs: 0 }
    }
    let slot: Slot | undefined
    let result: SendResult | undefined
    return {
      kind: 'turn',
      async takeSlot() {
        const startMs = performance.now()
        slot = await callSlots.take({ isUrgent, weight, withinMs: giveBackMs, isPatient: false })
        // A process that stood still may have lost the claim. Its timer did not run either.
        const isLate = performance.now() - startMs > giveBackMs
        if (!slot.granted || isLate) return withoutSlot(isUrgent, giveBackMs)
        return passage.isProbe ? undefined : away(isUrgent)
      },
      async call(timeoutMs, leftMs) {
        passage.begin()
        const limitMs = Math.ceil(Math.min(timeoutMs + answerMs, leftMs))
        const stoppedLimitMs = Math.min(timeoutMs, limitMs)
        result = await timedCall({ limitMs, stoppedLimitMs }, message, (signal) =>
          provider.send(message, signal, passage.alive),
        )
        passage.end(result)
        postponedShare.add(message.to, result)
        if (result.kind === 'throttled') {
          pausedUntilMs = Math.max(pausedUntilMs, performance.now() + result.retryAfterMs)
        }
        return result
      },
      async end() {
        if (!result) passage.giveUp()
        // The provider did not accept the message, so it does not count for the quotas. An answered call counts for the pace.
        if (!result || result.kind === 'unavailable') await permit.release()
        else if (meanings[result.kind].waits) await permit.release('quota')
        if (slot?.granted) slot.leave()
        place.leave()
      },
    }
  }

  /** The outcome of an `unknown` send, if the provider supports queries. */
  async function query(sent: SentMessage, timeoutMs: number): Promise<SendResult> {
    // A query uses the same connections as sends, and a message waits for its answer.
    const wanted = { isUrgent: true, weight: 1, withinMs: timeoutMs, isPatient: true }
    const slot = await callSlots.take(wanted)
    if (!slot.granted) return { kind: 'unknown', detail: 'the provider is busy' }
    try {
      return await timedCall(
        { limitMs: timeoutMs },
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
    /** The largest number of messages that can be in calls or in line. */
    capacity: provider.slots + maxWaiting,
    takeTurn,
    away,
    ...(provider.query ? { query } : {}),
    state(): ProviderState {
      if (pausedUntilMs > performance.now()) return 'paused'
      return circuit.isOpen() ? 'circuit' : 'ready'
    },
    /** The provider postpones nearly all recipients, so it is at fault. */
    postponesAll: postponedShare.isNearlyAll,
    /** Defers all waiting messages. Calls under way go on, but a late answer is no longer waited for. */
    stopWaiting(): void {
      claimSlots.close()
      callSlots.close()
      stopCalls()
      postponedShare.stop()
    },
    close: () => provider.close(),
  }
}
