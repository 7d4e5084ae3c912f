/**
 * Requests under way. A stopping process ends them before it closes the servers they use. A send that was cut off
 * between its quota and its row would answer 503 and keep its uses.
 */
import { orLate } from '../base/deadline.ts'

/** The longest wait for bodies at the end. Work with a complete body ends much earlier. */
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
    /** False: the process is closing, so refuse the request. Each `true` needs one `end`. */
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

    /** `refuse` is called when the server stops waiting for late bodies. */
    onLateBodies(refuse: () => void): void {
      lateBodies.push(refuse)
    },
    refuseBodies,

    /** Refuses new requests, and resolves when the running ones have ended. */
    close(): Promise<void> {
      isClosing = true
      closing ??= untilNone()
      return closing
    },
  }
}
