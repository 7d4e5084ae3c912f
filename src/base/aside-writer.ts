/**
 * Writing what no caller waits for, at a price that has an upper end whatever comes: so many items per
 * turn, one turn after the other, and what is above is dropped and counted. In a full turn an owner with more than half of it
 * makes room for the others. A server that is slow or away costs a
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
  /** Whose item it is, where none may take the place of all. */
  ownerOf?: (item: Item) => string
  write: (items: readonly Item[]) => Promise<unknown>
  /** Told once a turn. */
  onDropped: (items: number) => void
}): AsideWriter<Item> {
  const { everyMs, maxItems, ownerOf, write, onDropped } = options
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

  /** Drops the newest item of an owner that has more than half, for an item of another. */
  function makeRoomFor(item: Item): boolean {
    if (!ownerOf) return false
    const counts = Map.groupBy(waiting, ownerOf)
    const [greedy] = [...counts].find(([, items]) => items.length > maxItems / 2) ?? []
    if (greedy === undefined || greedy === ownerOf(item)) return false
    waiting.splice(
      waiting.findLastIndex((other) => ownerOf(other) === greedy),
      1,
    )
    dropped += 1
    return true
  }

  return {
    add(item) {
      if (isClosed || (waiting.length >= maxItems && !makeRoomFor(item))) {
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
