/**
 * Many items per call: rows per statement, jobs per command.
 *
 * A round trip per item costs more than the item, so callers add their items one by one. All items of one event-loop
 * tick become one statement. While statements are under way, the next items gather. No timer is needed: at low load an
 * item travels alone at once, and under load batches grow.
 *
 * Each caller awaits its item until the statement has committed. If a statement fails because of its data, its items
 * run again one by one, so a bad row fails alone. If the server is away, all items fail, also the waiting ones:
 * another statement would only make their callers wait again.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Unavailable } from './unavailable.ts'

export interface BatcherOptions<Item, Result> {
  /** Runs one statement for all items. Returns a result per item, in the same order, or nothing for `void`. */
  run(items: readonly Item[]): Promise<readonly Result[] | (Result extends void ? Result : never)>
  /** Rows per statement at most. */
  maxItems: number
  /** Statements under way at most; each uses one connection. */
  maxConcurrent: number
  /**
   * Statements start at least this far apart, unless `maxItems` are waiting. Meant for work that no API caller waits for:
   * a lone item still goes at once, but items that arrive slowly share a statement.
   */
  spacingMs?: number
  /** Items can be for different servers: if one is away, only the items of the failed statement fail. */
  hasManyServers?: boolean
  /** A shorter distance after a statement with few items, so that an item waits only while others gather. */
  spacingPerItemMs?: number
}

export interface Batcher<Item, Result> {
  (item: Item): Promise<Result>
  /** Runs one statement without items, so that its first item finds it prepared. */
  warmUp(): Promise<unknown>
}

interface Waiting<Item, Result> {
  item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

export function createBatcher<Item, Result>(
  options: BatcherOptions<Item, Result>,
): Batcher<Item, Result> {
  let waiting: Waiting<Item, Result>[] = []
  let running = 0
  let isScheduled = false
  let timer: NodeJS.Timeout | undefined
  let startedAtMs = Number.NEGATIVE_INFINITY
  let lastItems = 1
  /** A statement works for many callers, so it belongs to the trace of none of them. */
  const inNoTrace = AsyncLocalStorage.snapshot()
  const { spacingMs = 0, spacingPerItemMs = Number.POSITIVE_INFINITY } = options

  function schedule() {
    if (waiting.length === 0 || running >= options.maxConcurrent) return
    const isFull = waiting.length >= options.maxItems
    if (isScheduled && !(isFull && timer)) return
    clearTimeout(timer)
    timer = undefined
    isScheduled = true
    const apartMs = isFull ? 0 : Math.min(spacingMs, lastItems * spacingPerItemMs)
    const earlyMs = spacingMs > 0 ? startedAtMs + apartMs - performance.now() : 0
    if (earlyMs > 0) timer = setTimeout(inNoTrace, earlyMs, start)
    else setImmediate(inNoTrace, start)
  }

  function start() {
    isScheduled = false
    timer = undefined
    if (spacingMs > 0) startedAtMs = performance.now()
    while (waiting.length > 0 && running < options.maxConcurrent) {
      const batch = waiting.slice(0, options.maxItems)
      waiting = waiting.slice(options.maxItems)
      lastItems = batch.length
      running++
      void runBatch(batch).finally(() => {
        running--
        schedule()
      })
    }
  }

  async function runBatch(batch: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await options.run(batch.map(({ item }) => item))
      batch.forEach(({ resolve }, index) => {
        resolve(results?.[index] as Result)
      })
    } catch (error) {
      if (error instanceof Unavailable) {
        const failed = options.hasManyServers ? batch : [...batch, ...waiting.splice(0)]
        for (const { reject } of failed) reject(error)
      } else if (batch.length > 1) {
        for (const one of batch) await runBatch([one])
      } else batch[0]?.reject(error)
    }
  }

  const add = (item: Item) =>
    new Promise<Result>((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      schedule()
    })
  return Object.assign(add, { warmUp: async () => options.run([]) })
}
