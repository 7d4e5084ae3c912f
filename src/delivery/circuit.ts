/**
 * The circuit breaker of one provider. After five failures in a row, it lets only a single probe pass every few seconds.
 * So no message waits for a dead provider.
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
import { meanings } from './retry.ts'

const failuresToOpen = 5
/** A call counts as slow only above this. */
const leastSlowMs = 1_500
export const probeEveryMs = 3_000
/** A probe without an answer for this time has failed, so the next one may begin. Its answer may still come. */
const probeLastsMs = 5_000

/** Permission for one call. Ends with `end` after the call, or with `giveUp` if there was none. */
export interface Passage {
  /** The only call that an open circuit allows. */
  readonly isProbe: boolean
  begin(): void
  /** The provider has shown that it lives. */
  alive(): void
  end(result: SendResult): void
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
  /** Duration of the longest recent good answer. Each shorter answer reduces it by a tenth. */
  let usualMs = 0

  function failed(): void {
    failures++
    if (probeAtMs !== undefined) return
    if (failures < failuresToOpen && overdue < slots) return
    probeAtMs = performance.now() + probeEveryMs
    onChange(true)
  }

  function succeeded(durationMs: number): void {
    usualMs = Math.max(durationMs, usualMs * 0.9)
    lives()
  }

  function lives(): void {
    failures = 0
    if (probeAtMs === undefined) return
    probeAtMs = undefined
    onChange(false)
  }

  function createOrdinary(): Passage {
    let startMs = 0
    let stopCountdown = () => {}
    let isOverdue = false
    let isExcused = false
    const endTimer = () => {
      stopCountdown()
      if (isOverdue) overdue--
      isOverdue = false
    }
    return {
      isProbe: false,
      begin() {
        startMs = performance.now()
        const slowAfterMs = Math.max(leastSlowMs, usualMs * 2)
        stopCountdown = startCountdown(slowAfterMs, () => {
          isOverdue = true
          overdue++
          failed()
        })
      },
      alive() {
        endTimer()
        isExcused = true
        lives()
      },
      end(result) {
        // A slow call already counted as a failure when it became too slow.
        const isCounted = isOverdue
        endTimer()
        // A call that waited for its recipient does not count for the usual time.
        if (!isFailure(result)) succeeded(isExcused ? 0 : performance.now() - startMs)
        else if (!isCounted) failed()
      },
      giveUp() {},
    }
  }

  function createProbe(): Passage {
    let startMs = 0
    let stopCountdown = () => {}
    let isLatest = true
    isProbing = true
    /** Lets the next probe begin after a pause. */
    function endProbe(): void {
      stopCountdown()
      if (!isLatest) return
      isLatest = false
      isProbing = false
      if (probeAtMs !== undefined) probeAtMs = performance.now() + probeEveryMs
    }
    return {
      isProbe: true,
      begin() {
        startMs = performance.now()
        stopCountdown = startCountdown(probeLastsMs, endProbe)
      },
      alive: lives,
      end(result) {
        if (!isFailure(result)) succeeded(performance.now() - startMs)
        endProbe()
      },
      giveUp() {
        isProbing = false
      },
    }
  }

  return {
    isOpen: () => probeAtMs !== undefined,

    /** Time until a call is allowed; 0 if it is allowed now. */
    openForMs(): number {
      if (probeAtMs === undefined) return 0
      // The end of a probe under way is not known.
      if (isProbing) return probeEveryMs
      return Math.max(0, probeAtMs - performance.now())
    },

    /** Permission for a call. Undefined while the circuit is open and no probe is due. */
    enter(): Passage | undefined {
      if (probeAtMs === undefined) return createOrdinary()
      return isProbing || performance.now() < probeAtMs ? undefined : createProbe()
    },
  }
}

const isFailure = ({ kind }: SendResult): boolean => meanings[kind].isOutage
