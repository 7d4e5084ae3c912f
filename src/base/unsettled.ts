/**
 * What has to be taken back from a server that gave no answer: the caller heard 503, so nothing may stay
 * taken. Each entry is kept here until the server answers, and is then taken back, which does nothing if
 * the request was never carried out. It is taken back a second time some seconds later, because the
 * request itself may still have been on its way, on another connection, when the server answered again.
 *
 * Bounded in number and time. What is dropped, or lost with the process, must end by a time to live.
 */
export type Unsettled = ReturnType<typeof createUnsettled>

interface Entry {
  readonly expiresAt: number
  /** Not before it, by `performance.now()`. */
  dueAt: number
  isTakenBackOnce: boolean
  readonly takeBack: () => Promise<unknown>
}

const retryMs = 200
/** Longer than any server goes on with a request whose caller has given up. */
const onceMoreMs = 2_000
/** At once; they may join in one call. */
const maxAtOnce = 100

export function createUnsettled(options: { maxAgeMs: number; maxEntries: number }) {
  const { maxAgeMs, maxEntries } = options
  const entries = new Map<string, Entry>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  async function settle(): Promise<void> {
    const nowMs = performance.now()
    for (const [id, { expiresAt }] of entries) if (expiresAt <= nowMs) entries.delete(id)
    const due = [...entries].filter(([, { dueAt }]) => dueAt <= nowMs)
    for (let at = 0; at < due.length; at += maxAtOnce) {
      const settled = await Promise.all(due.slice(at, at + maxAtOnce).map(settleOne))
      // The server is still away: the rest would only wait for the same deadline.
      if (settled.includes(false)) break
    }
    timer = undefined
    schedule()
  }

  async function settleOne([id, entry]: [string, Entry]): Promise<boolean> {
    if (entries.get(id) !== entry) return true
    try {
      await entry.takeBack()
    } catch {
      return false
    }
    if (entries.get(id) !== entry) return true
    if (entry.isTakenBackOnce) entries.delete(id)
    entry.isTakenBackOnce = true
    entry.dueAt = performance.now() + onceMoreMs
    return true
  }

  function schedule(): void {
    if (timer !== undefined || isClosed || entries.size === 0) return
    timer = setTimeout(() => void settle(), retryMs).unref()
  }

  return {
    add(id: string, takeBack: () => Promise<unknown>): void {
      if (entries.size >= maxEntries) entries.delete(entries.keys().next().value as string)
      const nowMs = performance.now()
      entries.set(id, {
        expiresAt: nowMs + maxAgeMs,
        dueAt: nowMs,
        isTakenBackOnce: false,
        takeBack,
      })
      schedule()
    },
    /** The caller has taken this request up again. */
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
