import { setTimeout as sleep } from 'node:timers/promises'

/** `npm run mutants` waits less, because most of its waiting is for a mutant that must be noticed. */
const withinMsByDefault = Number(process.env.TEST_WAIT_MS ?? 30_000)

/**
 * Waits for a condition instead of a time. Calls `check` until it neither throws nor returns false, and returns its
 * result. When the time is up, it fails with the last reason.
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  options: { withinMs?: number; everyMs?: number } = {},
): Promise<Exclude<T, false>> {
  const { withinMs = withinMsByDefault, everyMs = 20 } = options
  const deadline = performance.now() + withinMs
  for (;;) {
    let reason: unknown = new Error('the condition stayed false')
    try {
      const result = await check()
      if (result !== false) return result as Exclude<T, false>
    } catch (error) {
      reason = error
    }
    if (performance.now() >= deadline) {
      const message = reason instanceof Error ? reason.message : String(reason)
      throw new Error(`not within ${withinMs} ms: ${message}`, { cause: reason })
    }
    await sleep(everyMs)
  }
}
