/**
 * The circuit breaker of one provider: after five failures in a row it gets nothing but a single probe
 * now and then, so that a dead far end costs nobody a wait.
 *
 * A call that has no answer after `slowMs` counts as a failure at once, because waiting for the
 * time-out of five calls would be waiting on a dead one; a good answer that comes later makes up for
 * it, so a provider that is merely slow stays in use. It is this process' own experience: what killed
 * one worker's connection need not have touched another's.
 */
import {
  BrokenCircuitError,
  CircuitState,
  ConsecutiveBreaker,
  circuitBreaker,
  handleWhenResult,
} from 'cockatiel'
import { orLate } from '../base/deadline.ts'
import type { SendResult } from '../providers/provider.ts'

const failuresToOpen = 5
const slowMs = 1_500
const probeEveryMs = 3_000

const slow = { kind: 'slow' } as const

export type Circuit = ReturnType<typeof createCircuit>

export function createCircuit(onChange: (isOpen: boolean) => void) {
  const policy = circuitBreaker(
    handleWhenResult((result) => isFailure(result as SendResult | typeof slow)),
    { breaker: new ConsecutiveBreaker(failuresToOpen), halfOpenAfter: probeEveryMs },
  )
  let probeAtMs = 0
  policy.onBreak(() => {
    probeAtMs = Date.now() + probeEveryMs
    onChange(true)
  })
  policy.onReset(() => onChange(false))

  return {
    /** How long a call would be kept out; 0 when it would be made. */
    openForMs(): number {
      if (policy.state === CircuitState.Closed) return 0
      // The breaker would make us wait for the end of the probe under way.
      if (policy.state === CircuitState.HalfOpen) return probeEveryMs
      return Math.max(0, probeAtMs - Date.now())
    },

    /** Makes the call; undefined when the circuit is open and it was not made. */
    async run(call: () => Promise<SendResult>): Promise<SendResult | undefined> {
      if (policy.state === CircuitState.HalfOpen) return undefined
      let answer: Promise<SendResult> | undefined
      let first: SendResult | typeof slow
      try {
        first = await policy.execute(() => {
          answer = call()
          return orLate<SendResult | typeof slow>(answer, slowMs, () => slow)
        })
      } catch (error) {
        if (error instanceof BrokenCircuitError) return undefined
        throw error
      }
      if (first !== slow) return first as SendResult
      const late = (await answer) as SendResult
      if (!isFailure(late) && policy.state === CircuitState.Closed) await policy.execute(() => late)
      return late
    },
  }
}

function isFailure(result: SendResult | typeof slow): boolean {
  return result.kind === 'unavailable' || result.kind === 'unknown' || result.kind === 'slow'
}
