/**
 * Requests under way and the rooms for their bodies. A stopping process ends them before it closes the servers they use.
 * A send that was cut off between its quota and its row would answer 503 and keep its uses.
 */
import { createBatcher } from '../base/batcher.ts'
import { orLate } from '../base/deadline.ts'
import { createBodyRoom } from './body-room.ts'

/** The longest wait for bodies at the end. Work with a complete body ends much earlier. */
const lastBodiesMs = 5_000
const lastWorkMs = 10_000

/**
 * Callers without a valid key give way to the others (I21): a turn of the event loop answers only this many of them. A
 * connection sends its next request after its answer, so a flood gets as slow as its answers. A send needs some six
 * turns. None of them is refused, because receipts of providers and preflights of pages have no key either.
 */
const strangersPerTurn = 4

export type UnderWay = ReturnType<typeof createUnderWay>

/** `maxBodyBytes`: the size of each room. */
export function createUnderWay({ bodiesMs = lastBodiesMs, maxBodyBytes = 16_777_216 } = {}) {
  // Two rooms, so that a stranger's slow receipts can't fill the room of sends.
  const bodies = { keyed: createBodyRoom(maxBodyBytes), open: createBodyRoom(maxBodyBytes) }
  let count = 0
  let isClosing = false
  let closing: Promise<void> | undefined
  let onNone = () => {}

  function refuseBodies(): void {
    bodies.keyed.close()
    bodies.open.close()
  }

  async function untilNone(): Promise<void> {
    if (count === 0) return
    const none = new Promise<void>((resolve) => {
      onNone = resolve
    })
    const timer = setTimeout(refuseBodies, bodiesMs)
    await orLate(none, lastWorkMs, () => {})
    clearTimeout(timer)
  }

  return {
    /** For bodies of callers with a valid key, and for all other bodies. */
    bodies,

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

    /** Resolves when a request without a valid key may go on. */
    giveWay: createBatcher<void, void>({
      maxItems: strangersPerTurn,
      maxConcurrent: 1,
      run: async () => {},
    }),

    /** Gives up bodies that are still arriving. */
    refuseBodies,

    /** Refuses new requests, and resolves when the running ones have ended. */
    close(): Promise<void> {
      isClosing = true
      closing ??= untilNone()
      return closing
    },
  }
}
