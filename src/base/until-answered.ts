/**
 * Does work at a server as soon as the server answers again. Most of the work undoes a request whose caller got 503: for
 * example, it gives uses back.
 *
 * Undoing must change nothing if there is nothing to undo. It is done a second time some seconds later, because the
 * request may still have been under way on another connection. With `isOnceEnough` the work is done once, because it
 * follows no request or must not be repeated.
 *
 * The work is bounded in number and time. It can be dropped, or lost with the process. So everything that it undoes must
 * also expire.
 */
interface Entry {
  readonly expiresAt: number
  /** The earliest next time, by `performance.now()`. */
  dueAt: number
  isDoneOnce: boolean
  readonly work: Work
}

/** `isWanted` becomes false when the work is dropped. */
type Work = (isWanted: () => boolean) => Promise<unknown>

const retryMs = 200
/** A server may continue a request after its caller has stopped waiting, but never for this long. */
const onceMoreMs = 2_000
/** Pieces of work at a time. A batcher may send all of them in one call. */
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
      // The server is still away, so the rest would only wait for the same deadline. If some work was done, only one of
      // several servers is away.
      if (!answers.includes(true)) break
    }
    timer = undefined
    schedule()
  }

  async function tryOne([id, entry]: [string, Entry]): Promise<boolean> {
    const isWanted = () => entries.get(id) === entry
    if (!isWanted()) return true
    try {
      await entry.work(isWanted)
    } catch {
      return false
    }
    if (!isWanted()) return true
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
    add(id: string, work: Work): void {
      if (entries.size >= maxEntries) entries.delete(entries.keys().next().value as string)
      const nowMs = performance.now()
      entries.set(id, { expiresAt: nowMs + maxAgeMs, dueAt: nowMs, isDoneOnce: false, work })
      schedule()
    },
    has: (id: string): boolean => entries.has(id),
    /** Drops the work: the caller has repeated this request. */
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
