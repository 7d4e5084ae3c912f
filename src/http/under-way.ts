/**
 * Requests under way and the rooms for their bodies. A stopping process ends them before it closes the servers they use.
 * A send that was cut off between its quota and its row would answer 503 and keep its uses.
 */
import { orLate } from '../base/deadline.ts'
import { startSocketWait } from '../base/socket-wait.ts'
import { createTurns, type Sharer } from '../base/turns.ts'
import { Overloaded } from '../base/unavailable.ts'
import { createBodyRoom } from './body-room.ts'
import type { HttpMetrics } from './metrics.ts'

/** The longest wait for bodies at the end. Work with a complete body ends much earlier. */
const lastBodiesMs = 5_000
const lastWorkMs = 10_000

/**
 * Callers without a valid key give way to the others (I21): a turn of the event loop answers only this many of them. A
 * connection sends its next request after its answer, so a flood gets as slow as its answers. A send needs some six
 * turns. None of them is refused, because pages of the API and wrong keys get their answer too. Their addresses share
 * the turns. Preflights of listed pages share them with all others as one app with another, because any stranger can
 * name such a page.
 */
const strangersPerTurn = 4

/**
 * Requests with a key, and calls in process, that work at a time. Above that, they wait for a turn. If more arrive than
 * this process can answer within two seconds, the rest is refused at once: answered later, their clients would have gone
 * and would have asked again. The longest wait, the work of the requests under way and a server that answers late
 * must fit into the 2.5 s of an answer.
 *
 * The number at a time also limits the length of a turn of the event loop, because early-refusal.ts does so little. It
 * is the same at every load: turns are long on a busy machine too, and fewer requests at a time would answer fewer
 * there.
 */
const turnsOfWork = {
  maxUnderWay: 500,
  maxWaiting: 10_000,
  maxWaitMs: 1_000,
  maxExpectedMs: 500,
  maxStandingMs: 150,
}
/** Reads of rows leave connections of the pool to sends. */
const turnsOfReads = { maxUnderWay: 4, maxWaiting: 200, maxWaitMs: 1_000 }

export type UnderWay = ReturnType<typeof createUnderWay>

/** `maxBodyBytes`: the size of each room. `waitSeconds` counts the time of each request before its turn. */
export function createUnderWay({
  bodiesMs = lastBodiesMs,
  maxBodyBytes = 16_777_216,
  work = turnsOfWork as Parameters<typeof createTurns>[0],
  waitSeconds = undefined as HttpMetrics['waitSeconds'] | undefined,
} = {}) {
  const socketWait = startSocketWait()
  const turns = { work: createTurns(work), reads: createTurns(turnsOfReads) }
  const turnsOfStrangers = createTurns({ maxUnderWay: strangersPerTurn })
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
    if (count === 0) return socketWait.stop()
    const none = new Promise<void>((resolve) => {
      onNone = resolve
    })
    const timer = setTimeout(refuseBodies, bodiesMs)
    await orLate(none, lastWorkMs, () => {})
    clearTimeout(timer)
    socketWait.stop()
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

    /** The time that a request which is read now may have waited at its socket. */
    waitedAtSocketMs: socketWait.ms,

    /** Resolves when a request without a valid key may go on. */
    giveWay: (sharer: Sharer): Promise<void> => turnsOfStrangers(sharer, nextTurn, () => {}),

    /** Does the work of a request in its turn. Throws Overloaded if it gets no turn. */
    inTurn<Result>(
      kind: keyof typeof turns,
      sharer: Sharer,
      work: () => Promise<Result>,
    ): Promise<Result> {
      const { waitedMs = 0 } = sharer
      const startMs = performance.now()
      return turns[kind](
        sharer,
        () => {
          waitSeconds?.observe({}, (waitedMs + performance.now() - startMs) / 1_000)
          return work()
        },
        noTurn,
      )
    },

    /** True if requests wait for a turn. */
    isCrowded: turns.work.hasWaiting,
    /** True if the request would get no turn of `work` now. */
    wouldRefuse: turns.work.wouldRefuse,

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

/** Resolves in the next turn of the event loop. */
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

function noTurn(): never {
  throw new Overloaded('process', 'more requests wait than this process can answer in time')
}
