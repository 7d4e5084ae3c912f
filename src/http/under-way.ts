/**
 * Requests whose work is under way. A process that stops ends them before it closes what they work with: a send
 * that is cut off between its quota and its row would be answered 503 and keep what it took.
 */
import { orLate } from '../base/deadline.ts'

/** Work that has its body ends by deadlines of its own, far below this. */
const lastBodiesMs = 5_000
const lastWorkMs = 10_000

export type UnderWay = ReturnType<typeof createUnderWay>

export function createUnderWay({ bodiesMs = lastBodiesMs, workMs = lastWorkMs } = {}) {
  let count = 0
  let isClosing = false
  let closing: Promise<void> | undefined
  let onNone = () => {}
  const lateBodies: (() => void)[] = []

  const refuseBodies = () => {
    for (const refuse of lateBodies) refuse()
  }

  async function untilNone(): Promise<void> {
    if (count === 0) return
    const none = new Promise<void>((resolve) => {
      onNone = resolve
    })
    const timer = setTimeout(refuseBodies, bodiesMs)
    await orLate(none, workMs, () => {})
    clearTimeout(timer)
  }

  return {
    /** False: the process is closing and the request must be refused. After each `true` comes one `end`. */
    begin(): boolean {
      if (isClosing) return false
      count += 1
      return true
    },
    end(): void {
      count -= 1
      if (count === 0) onNone()
    },
    isClosing: () => isClosing,

    /** `refuse` is called when bodies that are still arriving are not waited for any more. */
    onLateBodies(refuse: () => void): void {
      lateBodies.push(refuse)
    },
    refuseBodies,

    /** Refuses new requests from now on, and resolves when those under way have ended. */
    close(): Promise<void> {
      isClosing = true
      closing ??= untilNone()
      return closing
    },
  }
}
