/** Limits the requests under way. Further requests wait for a place. */
export function createWindow(size: number, isEnded: () => boolean) {
  const waiting = new Set<() => void>()
  let underWay = 0

  /** Waits until a request ends, the session ends, or the signal aborts. */
  function turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const go = () => {
        waiting.delete(go)
        signal.removeEventListener('abort', go)
        resolve()
      }
      waiting.add(go)
      signal.addEventListener('abort', go, { once: true })
    })
  }

  return {
    /** Calls `request` when there is a place or the session has ended. Undefined if the signal aborts before. */
    async run<Answer>(
      request: () => Promise<Answer>,
      signal: AbortSignal,
    ): Promise<Answer | undefined> {
      try {
        while (underWay >= size && !isEnded() && !signal.aborted) await turn(signal)
        if (signal.aborted) return undefined
        underWay++
        try {
          return await request()
        } finally {
          underWay--
        }
      } finally {
        // A request that gives up also frees its turn for the next one.
        const [next] = waiting
        next?.()
      }
    },
    /** The session has ended: no request waits any more. */
    end(): void {
      for (const go of waiting) go()
    },
  }
}
