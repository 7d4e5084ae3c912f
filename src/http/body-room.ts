/** The share of one request in the room for bodies. */
export type BodyShare = ReturnType<ReturnType<typeof createBodyRoom>['open']>

/**
 * Limits the bytes of bodies that a process keeps at a time, so that slow senders can't fill its memory. Bytes count
 * when they arrive; an announced length takes no room.
 *
 * If the room is full, the body that began to arrive first and is still arriving is given up. Otherwise a stranger with
 * a few hundred slow bodies could keep out all others.
 */
export function createBodyRoom(maxBytes: number) {
  let takenBytes = 0
  let isClosed = false
  /** Functions that give up a body. One for each body that is still arriving. */
  const unfinished = new Set<() => void>()
  /** The same functions for bodies whose first bytes have arrived, the oldest first. */
  const arriving = new Set<() => void>()

  function makeRoom(bytes: number, forBody: (() => void) | undefined): boolean {
    for (const giveUp of arriving) {
      if (takenBytes + bytes <= maxBytes) break
      if (giveUp !== forBody) giveUp()
    }
    return takenBytes + bytes <= maxBytes
  }

  return {
    open() {
      let ownBytes = 0
      let isGivenUp = false
      let giveUp: (() => void) | undefined

      function arrived(): void {
        if (!giveUp) return
        unfinished.delete(giveUp)
        arriving.delete(giveUp)
      }
      function close(): void {
        takenBytes -= ownBytes
        ownBytes = 0
        arrived()
      }
      return {
        /** False if there is no room for the bytes. */
        take(bytes: number): boolean {
          if (isClosed || isGivenUp || !makeRoom(bytes, giveUp)) return false
          takenBytes += bytes
          ownBytes += bytes
          if (giveUp) arriving.add(giveUp)
          return true
        },
        /** `stop` is called when the body is given up: the room closes or is full while the body is still arriving. */
        onGivenUp(stop: () => void): void {
          giveUp = () => {
            isGivenUp = true
            close()
            stop()
          }
          unfinished.add(giveUp)
        },
        /** The body is complete, and keeps its room until `close`. */
        arrived,
        /** Called when the body is no longer needed. */
        close,
      }
    },
    /** Closes the room: bodies that are still arriving are dropped. */
    close(): void {
      isClosed = true
      for (const giveUp of unfinished) giveUp()
    },
  }
}
