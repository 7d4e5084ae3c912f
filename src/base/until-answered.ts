/**
 * Work at a server that gives no answer now: mostly taking back what may have been taken, because the caller
 * heard 503. Each piece is kept here until the server answers, then done, which must change nothing where
 * there is nothing to do. It is done a second time some seconds later, because the request it follows may
 * still have been on its way, on another connection, when the server answered again. Not where `isOnceEnough`: such
 * work follows no request, or must not be done twice.
 *
 * Bounded in number and time. What is dropped, or lost with the process, must end by a time to live.
 */
interface Entry {
  readonly expiresAt: number
  /** Not before it, by `performance.now()`. */
  dueAt: number
  isDoneOnce: boolean
  readonly work: () => Promise<unknown>
}

const retryMs = 200
/** Longer than any server goes on with a request whose caller has given up. */
const onceMoreMs = 2_000
/** Pieces in one go; a batcher behind them may make one call of these. */
const maxAtOnce = 100

export function createUntilAnswered(options: {
  maxAgeMs: number
  maxEntries: number
  isOnceEnough?: boolean
}) {
  const { maxAgeMs, maxEntries, isOnceEnough = false } = options
  const entries = new Map<string, Entry>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  async function tryAll(): Promise<void> {
    const nowMs = performance.now()
    for (const [id, { expiresAt }] of entries) if (expiresAt <= nowMs) entries.delete(id)
    const due = [...entries].filter(([, { dueAt }]) => dueAt <= nowMs)
    for (let at = 0; at < due.length; at += maxAtOnce) {
      const answers = await Promise.all(due.slice(at, at + maxAtOnce).map(tryOne))
      // The server is still away: the rest would only wait for the same deadline.
      if (answers.includes(false)) break
    }
    timer = undefined
    schedule()
  }

  async function tryOne([id, entry]: [string, Entry]): Promise<boolean> {
    if (entries.get(id) !== entry) return true
    try {
      await entry.work()
    } catch {
      return false
    }
    if (entries.get(id) !== entry) return true
    if (entry.isDoneOnce || isOnceEnough) entries.delete(id)
    entry.isDoneOnce = true
    entry.dueAt = performance.now() + onceMoreMs
    return true
  }

  function schedule(): void {
    if (timer !== undefined || isClosed || entries.size === 0) return
    timer = setTimeout(() => void tryAll(), retryMs).unref()
  }

  return {
    add(id: string, work: () => Promise<unknown>): void {
      if (entries.size >= maxEntries) entries.delete(entries.keys().next().value as string)
      const nowMs = performance.now()
      entries.set(id, {
        expiresAt: nowMs + maxAgeMs,
        dueAt: nowMs,
        isDoneOnce: false,
        work,
      })
      schedule()
    },
    /** It is not wanted any more: the caller has taken this request up again. */
    remove(id: string): void {
      entries.delete(id)
    },
    close(): void {
      isClosed = true
      clearTimeout(timer)
      entries.clear()
    },
  }
}
