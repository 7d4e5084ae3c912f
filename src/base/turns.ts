/**
 * Turns at what only so many may use at a time, shared between apps: whoever waits for an app comes after one of each
 * other app that waits, and each app has its own room to wait, so that a flood at one of them holds up its own.
 */
export function createTurns(options: {
  maxUnderWay: number
  /** For each app. */
  maxWaiting: number
  maxWaitMs: number
}) {
  const { maxUnderWay, maxWaiting, maxWaitMs } = options
  /** Whose turn it is next comes first; none of these is empty. */
  const waiting = new Map<string, Set<() => void>>()
  let underWay = 0

  /** True with a turn, which must be ended; false when there was no room to wait, or no turn in time. */
  function begin(app: string): boolean | Promise<boolean> {
    if (underWay < maxUnderWay) {
      underWay += 1
      return true
    }
    const queue = waiting.get(app) ?? new Set()
    if (queue.size >= maxWaiting) return false
    return new Promise((resolve) => {
      const start = () => {
        clearTimeout(timer)
        resolve(true)
      }
      const timer = setTimeout(() => {
        queue.delete(start)
        if (queue.size === 0) waiting.delete(app)
        resolve(false)
      }, maxWaitMs)
      queue.add(start)
      waiting.set(app, queue)
    })
  }

  /** Hands the turn on. */
  function end(): void {
    const [next] = waiting
    if (!next) {
      underWay -= 1
      return
    }
    const [app, queue] = next
    const [start] = queue
    waiting.delete(app)
    if (start) queue.delete(start)
    if (queue.size > 0) waiting.set(app, queue)
    start?.()
  }

  /** What the work comes to, or without a turn what `refuse` returns or throws; the work is not begun then. */
  return async function inTurn<Result>(
    app: string,
    work: () => Promise<Result>,
    refuse: () => Result,
  ): Promise<Result> {
    if (!(await begin(app))) return refuse()
    try {
      return await work()
    } finally {
      end()
    }
  }
}
