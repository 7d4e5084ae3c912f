/**
 * Work that a process does again and again by itself: a pass, a pause, the next pass. There is never
 * more than one pass at a time. Pauses vary by a quarter in both directions, because processes that are
 * started together would otherwise ask the same server together for as long as they live.
 *
 * A pass says how long the pause after it is. It must not reject: what goes wrong in it is the pass's
 * own to log, and to answer with a pause that fits.
 */
export interface Repetition {
  /** Aborts the signal of the pass under way and resolves when that pass has ended; none follows. */
  stop(): Promise<void>
}

export function repeat(
  pass: (signal: AbortSignal) => Promise<number>,
  /** The first pass begins at a random moment within this time. */
  firstWithinMs: number,
): Repetition {
  const stopping = new AbortController()
  let timer: NodeJS.Timeout
  let running = Promise.resolve()

  async function run(): Promise<void> {
    const pauseMs = await pass(stopping.signal)
    if (!stopping.signal.aborted) schedule(pauseMs * (0.75 + Math.random() / 2))
  }

  function schedule(delayMs: number): void {
    timer = setTimeout(() => {
      running = run()
    }, delayMs)
  }

  schedule(Math.random() * firstWithinMs)

  return {
    async stop() {
      stopping.abort()
      clearTimeout(timer)
      await running
    },
  }
}
