/**
 * The gate before a provider: whether a message may go to it now, and what came of it.
 *
 * A provider that said "too fast" is left alone until its time is over; a dead one costs no message a
 * wait (circuit.ts); one that is busy is waited for before anything begins (slots.ts); one that allows
 * only so much is not asked for more (provider-limits.ts). And whatever a provider does, a call ends: within its
 * time and a second, with a result of the closed set.
 *
 * Messages that wait for a provider to return get places in a line: they come back one after the other, soon after it
 * may be called again, and however many wait, few of them look at it in a second.
 */
import { orLate } from '../base/deadline.ts'
import type { Message, Provider, SendResult, SentMessage } from '../providers/provider.ts'
import { createCircuit } from './circuit.ts'
import { createPlaces } from './places.ts'
import type { AcquireSendPermit } from './provider-limits.ts'
import { readResult } from './read-result.ts'
import { captchaPauses, noticePauses } from './retry.ts'
import { createSlots } from './slots.ts'
import type { ProviderState } from './worker-notes.ts'

/** The provider was not called. */
export interface Deferred {
  kind: 'deferred'
  reason: 'paused' | 'circuit' | 'busy' | 'pace' | 'quota' | 'limiter'
  retryInMs: number
}

/** All was ready, and then the caller wanted no call any more. */
export interface Withdrawn {
  kind: 'withdrawn'
}

export interface GuardedCall {
  /** Codes do not wait behind bulk. */
  isUrgent: boolean
  /** What is left of the message's time: it waits no longer. */
  leftMs: number
  /** The message can go by another provider. */
  hasOther: boolean
  /**
   * Asked when nothing else stands before the call: how long it may take, in milliseconds; undefined
   * when there shall be none.
   */
  begin(): Promise<number | undefined>
}

export interface GuardedProvider {
  readonly name: string
  readonly channels: Provider['channels']
  /** Messages that may be in its hands at once: in a call, in line, and on their way there and back. */
  readonly capacity: number
  send(message: Message, call: GuardedCall): Promise<SendResult | Deferred | Withdrawn>
  /** Why it would not be called now, with a place in the line of those that come back; undefined when it would be. */
  away(isUrgent: boolean): Deferred | undefined
  /** What became of an `unknown` send, where the provider can be asked. */
  readonly query?: (sent: SentMessage, timeoutMs: number) => Promise<SendResult>
  /** Lets go of all that wait; calls under way go on. */
  stopWaiting(): void
}

/** For those who look on, and for who opened it. */
export interface WatchedProvider extends GuardedProvider {
  state(): ProviderState
  /** Ends the provider's connections. */
  close(): Promise<void>
}

/** What a provider may take beyond its time before it is waited for no longer. */
const overrunMs = 1_000

/**
 * In line before one provider, besides those in its slots. Enough that a slot never waits for the next
 * message while the queue has one, though each needs statements of ours before and after its call.
 */
const maxWaiting = 100

/** Between two messages that come back to a provider that was away: each costs two statements. */
const returnSpacingMs = 20

export function createGuardedProvider(
  provider: Provider,
  deps: {
    acquireSendPermit: AcquireSendPermit
    onCircuit: (isOpen: boolean) => void
    /** The provider broke its contract: it threw, or answered what is no result. */
    onFault: (noticeId: string, error: unknown) => void
  },
): WatchedProvider {
  const { acquireSendPermit, onFault } = deps
  const slots = createSlots(provider.slots, maxWaiting)
  const circuit = createCircuit(provider.slots, (isOpen) => {
    deps.onCircuit(isOpen)
    if (isOpen) slots.dismiss()
  })
  const places = createPlaces(captchaPauses.longestPauseMs, noticePauses.longestPauseMs)
  let pausedUntilMs = 0

  function away(isUrgent: boolean): Deferred | undefined {
    const pausedForMs = pausedUntilMs - performance.now()
    const awayForMs = pausedForMs > 0 ? pausedForMs : circuit.openForMs()
    if (awayForMs <= 0) return undefined
    return {
      kind: 'deferred',
      reason: pausedForMs > 0 ? 'paused' : 'circuit',
      retryInMs: places(isUrgent, awayForMs, returnSpacingMs),
    }
  }

  async function send(
    message: Message,
    call: GuardedCall,
  ): Promise<SendResult | Deferred | Withdrawn> {
    const { isUrgent, leftMs, hasOther } = call
    const held = away(isUrgent)
    if (held) return held
    const weight = provider.slotsFor?.(message) ?? 1
    const slot = await slots.take({ isUrgent, weight, withinMs: leftMs, isPatient: !hasOther })
    if (!slot.granted) {
      return away(isUrgent) ?? { kind: 'deferred', reason: 'busy', retryInMs: slot.retryInMs }
    }
    try {
      return await sendInSlot(message, call)
    } finally {
      slot.leave()
    }
  }

  async function sendInSlot(message: Message, call: GuardedCall) {
    // While the message waited the provider may have died or asked for a pause.
    const held = away(call.isUrgent)
    if (held) return held
    const permit = await acquireSendPermit(message.to, call.isUrgent)
    if (!permit.granted) {
      return { kind: 'deferred', reason: permit.reason, retryInMs: permit.retryInMs } as const
    }
    const passage = circuit.enter()
    let result: SendResult | undefined
    try {
      const timeoutMs = passage && (await call.begin())
      if (passage && timeoutMs !== undefined) {
        result = await passage.run((onAlive) =>
          withinTime(timeoutMs, message.noticeId, (signal) =>
            provider.send(message, signal, onAlive),
          ),
        )
      }
    } finally {
      if (!result) passage?.giveUp()
      // The far end counts what it was given, and this it was not.
      if (!result || result.kind === 'unavailable') await permit.release()
    }
    if (!result) {
      return passage
        ? ({ kind: 'withdrawn' } as const)
        : (away(call.isUrgent) ?? ({ kind: 'deferred', reason: 'circuit', retryInMs: 0 } as const))
    }
    if (result.kind === 'throttled') {
      pausedUntilMs = Math.max(pausedUntilMs, performance.now() + result.retryAfterMs)
    }
    return result
  }

  async function query(sent: SentMessage, timeoutMs: number): Promise<SendResult> {
    const busy: SendResult = { kind: 'unknown', detail: 'the provider is busy' }
    // It goes over the same connections, and a message waits for its word.
    const wanted = { isUrgent: true, weight: 1, withinMs: timeoutMs, isPatient: true }
    const slot = await slots.take(wanted)
    if (!slot.granted) return busy
    try {
      return await withinTime(
        timeoutMs,
        sent.noticeId,
        (signal) => provider.query?.(sent, signal) as Promise<SendResult>,
      )
    } finally {
      slot.leave()
    }
  }

  async function withinTime(
    timeoutMs: number,
    noticeId: string,
    call: (signal: AbortSignal) => Promise<SendResult>,
  ): Promise<SendResult> {
    const controller = new AbortController()
    const abort = setTimeout(() => controller.abort(), timeoutMs)
    try {
      const answer = await orLate<unknown>(call(controller.signal), timeoutMs + overrunMs, () => ({
        kind: 'unknown',
        detail: 'the provider did not end in time',
      }))
      const result = readResult(answer)
      if (!result) throw new TypeError(`provider ${provider.name} answered what is no result`)
      return result
    } catch (error) {
      onFault(noticeId, error)
      return { kind: 'unknown', detail: 'the provider failed inside' }
    } finally {
      clearTimeout(abort)
    }
  }

  return {
    name: provider.name,
    channels: provider.channels,
    capacity: slots.count + maxWaiting,
    send,
    away,
    ...(provider.query ? { query } : {}),
    state() {
      if (pausedUntilMs > performance.now()) return 'paused'
      return circuit.isOpen() ? 'circuit' : 'ready'
    },
    stopWaiting: slots.close,
    close: () => provider.close(),
  }
}
