import type { Decision } from './limiter.ts'

/** Timers beyond it fire at once. */
const maxTimerMs = 2 ** 31 - 1

/**
 * Asks again whenever permits may have come free, until an admission or until the next chance lies
 * beyond the time-out: then the refusal is returned at once, because more waiting can't change it.
 * Those who wait are not served in order.
 */
export async function acquireWithin(
  acquire: () => Promise<Decision>,
  timeoutMs: number,
): Promise<Decision> {
  const endsAt = performance.now() + timeoutMs
  for (;;) {
    const decision = await acquire()
    if (decision.admitted) return decision
    if (performance.now() + decision.retryAfterMs > endsAt) return decision
    await sleep(decision.retryAfterMs)
  }
}

/** Sleeps in steps that a timer can hold. */
async function sleep(sleepMs: number): Promise<void> {
  for (let leftMs = sleepMs; leftMs > 0; leftMs -= maxTimerMs) {
    await new Promise((wake) => setTimeout(wake, Math.min(leftMs, maxTimerMs)))
  }
}
