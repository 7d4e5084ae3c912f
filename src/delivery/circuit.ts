/**
 * The circuit breaker of one provider: after five failures in a row it gets nothing but a single probe
 * now and then, so that a dead far end costs no message a wait.
 *
 * A call that is not answered for much longer than usual counts as a failure at once, because waiting
 * for the time-out of five calls would be waiting on a dead one; so does one such call per slot, where
 * there are fewer. What is usual is learnt from the answers, so a provider that always takes two seconds
 * is soon left in peace. And the real answer has the last word: a good one closes the circuit however
 * late it comes. So does a far end that shows in another way that it lives while a call waits: then the wait is about that
 * one message, and five recipients whose answers never come don't open it. It is this process' own experience: what
 * killed one worker's connection need not have touched another's.
 */
import type { SendResult } from '../providers/provider.ts'
import { meanings } from './meaning.ts'

const failuresToOpen = 5
/** Shorter than this no call is slow. */
const leastSlowMs = 1_500
const probeEveryMs = 3_000

/** The leave to make one call: it must be used, or given up. */
export interface Passage {
  /** The call is handed what to call when the far end has shown that it lives. */
  run(call: (onAlive: () => void) => Promise<SendResult>): Promise<SendResult>
  giveUp(): void
}

export function createCircuit(slots: number, onChange: (isOpen: boolean) => void) {
  /** In a row. */
  let failures = 0
  /** Calls under way that take too long. */
  let overdue = 0
  /** The time of the next probe; undefined while closed. */
  let probeAtMs: number | undefined
  let isProbing = false
  /** The longest of the latest good answers; forgotten by a tenth with each that is shorter. */
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

  async function run(call: (onAlive: () => void) => Promise<SendResult>): Promise<SendResult> {
    const startMs = performance.now()
    let isOverdue = false
    let isExcused = false
    const timer = setTimeout(
      () => {
        isOverdue = true
        overdue++
        failed()
      },
      Math.max(leastSlowMs, usualMs * 2),
    )
    const endTimer = () => {
      clearTimeout(timer)
      if (isOverdue) overdue--
      isOverdue = false
    }
    try {
      const result = await call(() => {
        endTimer()
        isExcused = true
        lives()
      })
      // What one message waited for is not what is usual.
      if (!isFailure(result)) succeeded(isExcused ? 0 : performance.now() - startMs)
      // Counted already, when it became too long.
      else if (!isOverdue) failed()
      return result
    } finally {
      endTimer()
    }
  }

  const ordinary: Passage = { run, giveUp() {} }

  const probe: Passage = {
    async run(call) {
      const startMs = performance.now()
      try {
        const result = await call(lives)
        if (!isFailure(result)) succeeded(performance.now() - startMs)
        return result
      } finally {
        isProbing = false
        if (probeAtMs !== undefined) probeAtMs = performance.now() + probeEveryMs
      }
    },
    giveUp() {
      isProbing = false
    },
  }

  return {
    isOpen: () => probeAtMs !== undefined,

    /** How long a call would be kept out; 0 when it would be made. */
    openForMs(): number {
      if (probeAtMs === undefined) return 0
      // The end of a probe under way is not known.
      if (isProbing) return probeEveryMs
      return Math.max(0, probeAtMs - performance.now())
    },

    /** Undefined while the circuit is open and no probe is due. */
    enter(): Passage | undefined {
      if (probeAtMs === undefined) return ordinary
      if (isProbing || performance.now() < probeAtMs) return undefined
      isProbing = true
      return probe
    },
  }
}

const isFailure = ({ kind }: SendResult): boolean => meanings[kind].isOutage
