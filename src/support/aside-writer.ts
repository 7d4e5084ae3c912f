/**
 * Writes records that no caller waits for, at a bounded cost. Each turn writes at most `maxItems` items, and turns
 * never overlap. Items above that are dropped and counted. A slow or absent server costs one dropped turn.
 */
export function createAsideWriter<Item>(options: {
  everyMs: number
  maxItems: number
  /** Called when a turn is full. True if it has removed items to make room. If not, the new item is dropped. */
  makeRoom: (waiting: Item[], item: Item) => boolean
  write: (items: readonly Item[]) => Promise<unknown>
  /** Called once per turn that dropped items. */
  onDropped: (items: number) => void
}) {
  const { everyMs, maxItems, makeRoom, write, onDropped } = options
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
    if (isClosed) return
    timer ??= setTimeout(async () => {
      writing = turn()
      await writing
      timer = undefined
      if (waiting.length > 0 || dropped > 0) schedule()
    }, everyMs).unref()
  }

  function drop(items = 1): void {
    dropped += items
    schedule()
  }

  return {
    /** False: there is no room in this turn, and the item is dropped. */
    add(item: Item): boolean {
      const before = waiting.length
      const hasRoom = !isClosed && (before < maxItems || makeRoom(waiting, item))
      if (waiting.length < before) drop(before - waiting.length)
      if (!hasRoom) {
        drop()
        return false
      }
      waiting.push(item)
      schedule()
      return true
    },
    /** Counts an item that is dropped before it is added. */
    drop: () => drop(),
    /** Writes the waiting items and accepts no more. */
    async close(): Promise<void> {
      isClosed = true
      clearTimeout(timer)
      await writing
      await turn()
    },
  }
}

/** If one owner has more than half of a full turn, its newest item is replaced by an item of another owner. */
export function makeRoomAmong<Item>(ownerOf: (item: Item) => string) {
  return (waiting: Item[], item: Item): boolean => {
    const counts = Map.groupBy(waiting, ownerOf)
    const [greedy] = [...counts].find(([, items]) => items.length > waiting.length / 2) ?? []
    if (greedy === undefined || greedy === ownerOf(item)) return false
    waiting.splice(
      waiting.findLastIndex((other) => ownerOf(other) === greedy),
      1,
    )
    return true
  }
}
