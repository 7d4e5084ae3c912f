/**
 * The time that a request may have waited at its socket before this process read it. A busy process reads its sockets
 * once per turn of the event loop. A request arrived after the last reading, or it would have been read then. So it has
 * waited at most for the time in which the process worked since then. Time without work is left out: the process slept
 * until a socket had something to read.
 *
 * A connection that the process has not accepted yet waits in the system, where this is not seen.
 */
export function startSocketWait() {
  let workedMs = worked()
  let noting: NodeJS.Immediate
  function note(): void {
    workedMs = worked()
    noteNext()
  }
  /** Immediates run after the sockets were read. These keep neither the process nor a turn going. */
  function noteNext(): void {
    noting = setImmediate(note).unref()
  }
  noteNext()
  return {
    /** For a request that is read now. */
    ms: (): number => Math.max(0, worked() - workedMs),
    stop: (): void => clearImmediate(noting),
  }
}

/** The function itself, because tests replace the clock of `performance`. */
const { eventLoopUtilization } = performance
const worked = () => eventLoopUtilization().active
