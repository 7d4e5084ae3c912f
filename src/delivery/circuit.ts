/**
 * Whether calls of one provider are allowed now, and when messages that must wait for it come back. A provider that
 * throttles is not called until its pause ends, and a provider that fails has a circuit breaker.
 *
 * After five failures in a row, the breaker lets only a single probe pass every few seconds. So no message waits for a
 * dead provider. Messages come back one after the other, soon after calls are allowed again. So few try at a time, even if
 * thousands wait.
 *
 * A call that takes much longer than usual counts as a failure at once: waiting for five time-outs would take too long.
 * With fewer slots than five, one slow call per slot is enough. The usual time is learnt from the answers, so a provider
 * that always needs two seconds is soon accepted.
 *
 * A good answer closes the circuit, however late it arrives. So does any other sign of life during a call: the wait
 * then concerns only that message. So five silent recipients do not open the circuit.
 *
 * Each process has its own circuit: a broken connection of one worker does not concern the others.
 */
import { startCountdown } from '../base/deadline.ts'
import type { SendResult } from '../providers/provider.ts'
import { createReturnTimes, type Deferred } from './lines.ts'
import { meanings, noticePauses } from './retry.ts'

const failuresToOpen = 5
/** A call counts as slow only above this. */
const leastSlowDurationMs = 1_500
const probeSpacingMs = 3_000
/** A probe without an answer for this time has failed, so the next one may begin. Its answer may still come. */
const probeTimeoutMs = 5_000
/** Distance between two messages that come back to a provider. Each costs two SQL statements. */
const returnSpacingMs = 20

/** Whether a provider can be called now. `circuit`: its breaker is open. `paused`: it asked to wait. */
export type ProviderState = 'ready' | 'paused' | 'circuit'

/** Permission for one call. It ends with the call, or with `giveUp` if there is none. */
export interface Passage {
  /** The only call that an open circuit allows. */
  readonly isProbe: boolean
  /** `onAlive`: the provider has shown that it lives. */
  call(send: (onAlive: () => void) => Promise<SendResult>): Promise<SendResult>
  giveUp(): void
}

export function createCircuit(slots: number, onChange: (isOpen: boolean) => void) {
  /** Failures in a row. */
  let failures = 0
  /** Calls under way that take too long. */
  let overdue = 0
  /** The time of the next probe; undefined while closed. */
  let probeAtMs: number | undefined
  let isProbing = false
  let restEndsAtMs = 0
  const returnTimes = createReturnTimes(noticePauses.longestRetryMs)
  /** Duration of the longest recent good answer. Each shorter answer reduces it by a tenth. */
  let usualDurationMs = 0

  function failed(): void {
    failures++
    if (probeAtMs !== undefined) return
    if (failures < failuresToOpen && overdue < slots) return
    probeAtMs = performance.now() + probeSpacingMs
    onChange(true)
  }

  /** Stores what an answer shows. True if the provider is at fault. */
  function noteAnswer(result: SendResult, durationMs: number): boolean {
    if (result.kind === 'throttled') {
      restEndsAtMs = Math.max(restEndsAtMs, performance.now() + result.retryAfterMs)
    }
    if (meanings[result.kind].isOutage) return true
    usualDurationMs = Math.max(durationMs, usualDurationMs * 0.9)
    lives()
    return false
  }

  function lives(): void {
    failures = 0
    if (probeAtMs === undefined) return
    probeAtMs = undefined
    onChange(false)
  }

  async function callOrdinary(send: Parameters<Passage['call']>[0]): Promise<SendResult> {
    const startedAtMs = performance.now()
    let isOverdue = false
    let isExcused = false
    const stopCountdown = startCountdown(Math.max(leastSlowDurationMs, usualDurationMs * 2), () => {
      isOverdue = true
      overdue++
      failed()
    })
    const endTimer = () => {
      stopCountdown()
      if (isOverdue) overdue--
      isOverdue = false
    }
    const result = await send(() => {
      endTimer()
      isExcused = true
      lives()
    })
    // A slow call already counted as a failure when it became too slow.
    const isCounted = isOverdue
    endTimer()
    // A call that waited for its recipient does not count for the usual time.
    const durationMs = isExcused ? 0 : performance.now() - startedAtMs
    if (noteAnswer(result, durationMs) && !isCounted) failed()
    return result
  }

  async function callAsProbe(send: Parameters<Passage['call']>[0]): Promise<SendResult> {
    const startedAtMs = performance.now()
    let isLatest = true
    /** Lets the next probe begin after a pause. */
    function endProbe(): void {
      stopCountdown()
      if (!isLatest) return
      isLatest = false
      isProbing = false
      if (probeAtMs !== undefined) probeAtMs = performance.now() + probeSpacingMs
    }
    const stopCountdown = startCountdown(probeTimeoutMs, endProbe)
    const result = await send(lives)
    noteAnswer(result, performance.now() - startedAtMs)
    endProbe()
    return result
  }

  const isOpen = () => probeAtMs !== undefined
  const restRetryMs = () => restEndsAtMs - performance.now()

  /** Time until a call is allowed; 0 if it is allowed now. */
  function openRetryMs(): number {
    if (probeAtMs === undefined) return 0
    // The end of a probe under way is not known.
    if (isProbing) return probeSpacingMs
    return Math.max(0, probeAtMs - performance.now())
  }

  function sentAway(
    isUrgent: boolean,
    reason: 'paused' | 'circuit',
    soonestRetryMs: number,
  ): Deferred {
    const retryInMs = returnTimes(isUrgent, soonestRetryMs, returnSpacingMs)
    return { kind: 'deferred', reason, retryInMs }
  }

  return {
    isOpen,
    openRetryMs,

    state(): ProviderState {
      if (restRetryMs() > 0) return 'paused'
      return isOpen() ? 'circuit' : 'ready'
    },

    /**
     * Why no call is allowed now, and when this message may come back. Undefined if calls are allowed. A message without a
     * slot is no probe (`mayProbe`): in an open circuit, calls without an answer hold the slots for long.
     */
    away(isUrgent: boolean, mayProbe = true): Deferred | undefined {
      const pausedRetryMs = restRetryMs()
      if (pausedRetryMs > 0) return sentAway(isUrgent, 'paused', pausedRetryMs)
      const soonestRetryMs = openRetryMs() || (isOpen() && !mayProbe ? probeSpacingMs : 0)
      return soonestRetryMs > 0 ? sentAway(isUrgent, 'circuit', soonestRetryMs) : undefined
    },

    /** Permission for a call. Undefined while the provider has to rest. */
    enter(): Passage | undefined {
      if (restRetryMs() > 0 || openRetryMs() > 0) return undefined
      if (!isOpen()) return { isProbe: false, call: callOrdinary, giveUp() {} }
      isProbing = true
      return {
        isProbe: true,
        call: callAsProbe,
        giveUp() {
          isProbing = false
        },
      }
    },
  }
}
