/**
 * The gate before a provider: whether a message may go to it now, and what came of it.
 *
 * A provider that said "too fast" is left alone until its time is over; a dead one costs nobody a wait
 * (circuit.ts); one that allows only so much is not asked for more (pace.ts). And whatever a provider
 * does, a call ends: within its time and a second, with a result of the closed set.
 */
import { orLate } from '../base/deadline.ts'
import type { Message, Provider, SendResult, SentMessage } from '../providers/provider.ts'
import { createCircuit } from './circuit.ts'
import type { TakeTurn } from './pace.ts'

/** The provider was not called. */
export interface Held {
  kind: 'held'
  reason: 'paused' | 'circuit' | 'pace' | 'quota' | 'limiter'
  retryInMs: number
}

export interface GateCall {
  /** Which claim of the notice makes the call. */
  claim: number
  /** Codes do not wait behind bulk. */
  isUrgent: boolean
  timeoutMs: number
}

export interface Gate {
  readonly name: string
  readonly channels: Provider['channels']
  send(message: Message, call: GateCall): Promise<SendResult | Held>
  /** What became of an `unknown` send, where the provider can be asked. */
  readonly query?: (sent: SentMessage, timeoutMs: number) => Promise<SendResult>
}

/** What a provider may take beyond its time before nobody waits for it any longer. */
const overrunMs = 1_000

export function createGate(
  provider: Provider,
  deps: {
    takeTurn: TakeTurn
    onCircuit: (isOpen: boolean) => void
    /** The provider broke its contract: it threw. */
    onFault: (noticeId: string, error: unknown) => void
  },
): Gate {
  const { takeTurn, onFault } = deps
  const circuit = createCircuit(deps.onCircuit)
  let pausedUntilMs = 0

  async function send(message: Message, call: GateCall): Promise<SendResult | Held> {
    const pausedForMs = pausedUntilMs - performance.now()
    if (pausedForMs > 0) return { kind: 'held', reason: 'paused', retryInMs: pausedForMs }

    const openForMs = circuit.openForMs()
    if (openForMs > 0) return { kind: 'held', reason: 'circuit', retryInMs: openForMs }
    const turn = await takeTurn(message.to, `${message.noticeId}:${call.claim}`, call.isUrgent)
    if (!turn.granted) return { kind: 'held', reason: turn.reason, retryInMs: turn.retryInMs }

    const result = await circuit.run(() =>
      withinTime(call.timeoutMs, message.noticeId, (signal) => provider.send(message, signal)),
    )
    // The far end counts what it was given, and this it was not.
    if (result === undefined || result.kind === 'unavailable') await turn.giveBack()
    if (result === undefined) {
      return { kind: 'held', reason: 'circuit', retryInMs: circuit.openForMs() }
    }
    if (result.kind === 'throttled' && result.quotaOf !== 'recipient') {
      pausedUntilMs = Math.max(pausedUntilMs, performance.now() + result.retryAfterMs)
    }
    return result
  }

  async function withinTime(
    timeoutMs: number,
    noticeId: string,
    call: (signal: AbortSignal) => Promise<SendResult>,
  ): Promise<SendResult> {
    const controller = new AbortController()
    const abort = setTimeout(() => controller.abort(), timeoutMs)
    try {
      return await orLate<SendResult>(call(controller.signal), timeoutMs + overrunMs, () => ({
        kind: 'unknown',
        detail: 'the provider did not end in time',
      }))
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
    send,
    ...(provider.query
      ? {
          query: (sent: SentMessage, timeoutMs: number) =>
            withinTime(
              timeoutMs,
              sent.noticeId,
              (signal) => provider.query?.(sent, signal) as Promise<SendResult>,
            ),
        }
      : {}),
  }
}
