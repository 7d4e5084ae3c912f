/**
 * Closes resources in the reverse order of opening. Every closer runs, even after an earlier one failed or did not end.
 * The first failure is reported. Closing twice closes once.
 */
import { orLate } from './deadline.ts'

/** Time limit for all closers. It ends before the time limit of the process, so that the process can print the part that hangs. */
export const closeWithinMs = 18_000
/** A closer that begins late still gets this time. */
const leastMs = 1_000

export type Closers = ReturnType<typeof createClosers>

export function createClosers(withinMs = closeWithinMs) {
  const closers: (() => unknown)[] = []
  let closing: Promise<void> | undefined

  async function closeAll(): Promise<void> {
    const failures: unknown[] = []
    const endMs = performance.now() + withinMs
    for (const close of closers.reverse()) {
      try {
        const leftMs = Math.max(endMs - performance.now(), leastMs)
        await orLate(Promise.resolve(close()), leftMs, () => {
          throw new Error(`not closed in time: ${close}`)
        })
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }

  return {
    onClose(close: () => unknown): void {
      closers.push(close)
    },
    close(): Promise<void> {
      closing ??= closeAll()
      return closing
    },
  }
}
