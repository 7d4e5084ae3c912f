/**
 * Calls of a provider's code with a time limit. Each ends at most a second after its limit, with a result of the closed
 * set.
 */
import { orLate, startCountdown } from '../base/deadline.ts'
import type { Provider, SendResult } from '../providers/provider.ts'
import { faultWithoutQuotes, type Quotable, readResult } from './read-result.ts'

/** Extra time for a provider that overruns its time limit. After it, the call counts as unknown. */
const overrunTimeoutMs = 1_000

interface TimeLimits {
  timeoutMs: number
  stoppedTimeoutMs?: number
}

export function createTimedCalls(
  { name }: Pick<Provider, 'name'>,
  deps: {
    /**
     * The provider is of a kind of Postern. Its details have codes of errors, which can be equal to a variable by accident. So
     * only the recipient is hidden.
     */
    isOwnKind?: boolean
    onFault: (noticeId: string, error: unknown) => void
  },
) {
  /** Ends the calls under way that can be ended early. */
  const endings = new Set<() => void>()
  let isStopping = false

  const quotable = (message: Quotable): Quotable => (deps.isOwnKind ? { to: message.to } : message)

  /**
   * Makes a call that ends after `timeoutMs`. While the worker stops, it ends after `stoppedTimeoutMs` from its begin, or at once
   * if it has lasted longer.
   */
  async function timedCall(
    { timeoutMs, stoppedTimeoutMs = timeoutMs }: TimeLimits,
    message: Quotable & { noticeId: string },
    call: (signal: AbortSignal) => Promise<SendResult>,
  ): Promise<SendResult> {
    const controller = new AbortController()
    const stopCountdown = startCountdown(timeoutMs, () => controller.abort())
    let mayEnd = false
    const endIfStopping = () => {
      if (mayEnd && isStopping) controller.abort()
    }
    const stopShorter = startCountdown(stoppedTimeoutMs, () => {
      mayEnd = true
      endIfStopping()
    })
    endings.add(endIfStopping)
    try {
      const answer = await withOverrun(call(controller.signal), controller.signal)
      const result = readResult(answer, quotable(message))
      if (!result) throw new TypeError(`provider ${name} returned an invalid result`)
      return result
    } catch (error) {
      deps.onFault(message.noticeId, faultWithoutQuotes(error, message))
      return { kind: 'unknown', detail: 'the code of the provider failed' }
    } finally {
      endings.delete(endIfStopping)
      stopCountdown()
      stopShorter()
    }
  }

  return {
    timedCall,
    stop(): void {
      isStopping = true
      for (const end of endings) end()
    },
  }
}

/** The answer of a call. If there is none soon after the signal, the outcome is unknown. */
function withOverrun(call: Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  const aborted = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
  const late = () => ({ kind: 'unknown', detail: 'the provider did not end in time' })
  return Promise.race([call, aborted.then(() => orLate(call, overrunTimeoutMs, late))])
}
