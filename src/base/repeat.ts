/**
 * Background work in a loop: a pass, a pause, the next pass. Passes never overlap. Pauses vary by a quarter in both
 * directions, because processes that start together would otherwise always call a server at the same moment.
 *
 * A pass returns the length of the next pause. It must not reject: a pass logs its errors and returns a fitting pause.
 */
export interface Repetition {
  /** Aborts the signal of the running pass and resolves when that pass has ended. No pass follows. */
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
