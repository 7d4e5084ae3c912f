/**
 * Writing what no caller waits for, at a price that has an upper end whatever comes: so many items per
 * turn, one turn after the other, and what is above is dropped and counted. A server that is slow or away costs a
 * dropped turn and nothing else.
 */
export interface AsideWriter<Item> {
  /** False: there is no room in this turn, and the item is dropped. */
  add(item: Item): boolean
  /** Writes what is there, and takes nothing more. */
  close(): Promise<void>
}

export function createAsideWriter<Item>(options: {
  everyMs: number
  maxItems: number
  write: (items: readonly Item[]) => Promise<unknown>
  /** Told once a turn. */
  onDropped: (items: number) => void
}): AsideWriter<Item> {
  const { everyMs, maxItems, write, onDropped } = options
  let waiting: Item[] = []
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  let writing = Promise.resolve()
  let dropped = 0

  async function turn(): Promise<void> {
    const items = waiting
    waiting = []
    try {
      if (items.length > 0) await write(items)
    } catch {
      dropped += items.length
    }
    if (dropped > 0) onDropped(dropped)
    dropped = 0
  }

  function schedule(): void {
    timer ??= setTimeout(async () => {
      writing = turn()
      await writing
      timer = undefined
      if (waiting.length > 0 && !isClosed) schedule()
    }, everyMs).unref()
  }

  return {
    add(item) {
      if (isClosed || waiting.length >= maxItems) {
        dropped += 1
        return false
      }
      waiting.push(item)
      schedule()
      return true
    },
    async close() {
      isClosed = true
      clearTimeout(timer)
      await writing
      await turn()
    },
  }
}
