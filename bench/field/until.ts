import { setTimeout as sleep } from 'node:timers/promises'

/** Waits until it is true. Returns false if the time has ended before. */
export async function until(
  isTrue: () => boolean | Promise<boolean>,
  withinMs: number,
): Promise<boolean> {
  const deadline = performance.now() + withinMs
  while (!(await isTrue())) {
    if (performance.now() > deadline) return false
    await sleep(2)
  }
  return true
}
