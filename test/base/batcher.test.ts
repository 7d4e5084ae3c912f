import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate as nextTick } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { createBatcher } from '../../src/base/batcher.ts'
import { Unavailable } from '../../src/base/unavailable.ts'

/** A server that doubles numbers and records which numbers came together. */
function doubler(
  options: {
    maxItems?: number
    maxConcurrent?: number
    spacingMs?: number
    spacingPerItemMs?: number
    hasManyServers?: boolean
  } = {},
) {
  const batches: number[][] = []
  const open: (() => void)[] = []
  let underWay = 0
  let mostUnderWay = 0
  let isHeld = false
  const batch = createBatcher<number, number>({
    maxItems: 100,
    maxConcurrent: 2,
    ...options,
    async run(items) {
      batches.push([...items])
      underWay += 1
      mostUnderWay = Math.max(mostUnderWay, underWay)
      if (isHeld) await new Promise<void>((done) => open.push(done))
      else await nextTick()
      underWay -= 1
      if (items.includes(-1)) throw new Error('bad row')
      if (items.includes(-2)) throw new Unavailable('postgresql', new Error('away'))
      return items.map((item) => item * 2)
    },
  })
  return {
    batch,
    batches,
    hold: () => {
      isHeld = true
    },
    letGo: () => {
      isHeld = false
      for (const done of open.splice(0)) done()
    },
    mostUnderWay: () => mostUnderWay,
  }
}

test('batcher: all items of one tick travel in one call and come back each to its caller', async () => {
  const { batch, batches } = doubler()
  const numbers = Array.from({ length: 50 }, (_, index) => index)
  expect(await Promise.all(numbers.map(batch))).toEqual(numbers.map((number) => number * 2))
  expect(batches).toEqual([numbers])
})

test('batcher: an item of a later tick does not wait for a timer and makes a separate call', async () => {
  const { batch, batches } = doubler()
  expect(await batch(1)).toBe(2)
  expect(await batch(2)).toBe(4)
  expect(batches).toEqual([[1], [2]])
})

test('batcher: items that arrive while all calls are under way gather, in order, for the next', async () => {
  const far = doubler({ maxConcurrent: 1 })
  far.hold()
  const first = far.batch(0)
  await nextTick()
  await nextTick()
  const later: Promise<number>[] = []
  for (let number = 1; number <= 5; number += 1) {
    later.push(far.batch(number))
    await nextTick()
  }
  expect(far.batches).toEqual([[0]])
  far.letGo()
  expect(await Promise.all([first, ...later])).toEqual([0, 2, 4, 6, 8, 10])
  expect(far.batches).toEqual([[0], [1, 2, 3, 4, 5]])
})

test('batcher: never more items per call nor more calls at once than its limits', async () => {
  const far = doubler({ maxItems: 7, maxConcurrent: 3 })
  const numbers = Array.from({ length: 500 }, (_, index) => index)
  await Promise.all(numbers.map(far.batch))
  expect(far.batches.flat()).toEqual(numbers)
  expect(Math.max(...far.batches.map((items) => items.length))).toBe(7)
  expect(far.mostUnderWay()).toBe(3)
})

test('batcher: a bad item fails alone, its neighbours succeed, and later items are served', async () => {
  const { batch } = doubler()
  const settled = await Promise.allSettled([1, -1, 3].map(batch))
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(settled[2]).toMatchObject({ value: 6 })
  expect(await batch(4)).toBe(8)
})

test('batcher: when the server is away all fail at once and nothing is asked again', async () => {
  const { batch, batches } = doubler()
  const settled = await Promise.allSettled([1, -2, 3].map(batch))
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(batches).toEqual([[1, -2, 3]])
})

test('batcher: with many servers, one that is away fails only its own items', async () => {
  const { batch, batches } = doubler({ maxItems: 1, hasManyServers: true })
  const settled = await Promise.allSettled([-2, 1, 2, 3].map(batch))
  expect(settled.map(({ status }) => status)).toEqual([
    'rejected',
    ...['fulfilled', 'fulfilled', 'fulfilled'],
  ])
  expect(batches).toEqual([[-2], [1], [2], [3]])
})

test('batcher: with a spacing a lone item goes at once, and slow items after it share a call', async () => {
  const far = doubler({ maxItems: 100, maxConcurrent: 1, spacingMs: 200 })
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] })
  expect(await far.batch(1)).toBe(2)
  const dripping: Promise<number>[] = []
  for (let item = 2; item <= 5; item++) {
    dripping.push(far.batch(item))
    await new Promise((done) => setImmediate(done))
  }
  vi.advanceTimersByTime(199)
  await new Promise((done) => setImmediate(done))
  expect(far.batches).toEqual([[1]])
  vi.advanceTimersByTime(1)
  expect(await Promise.all(dripping)).toEqual([4, 6, 8, 10])
  expect(far.batches).toEqual([[1], [2, 3, 4, 5]])
  vi.useRealTimers()
})

test('batcher: after a call with few items the next one comes sooner, by a time per item', async () => {
  const far = doubler({ maxConcurrent: 1, spacingMs: 200, spacingPerItemMs: 10 })
  const turn = () => new Promise((done) => setImmediate(done))
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] })
  await far.batch(1)
  const few = [far.batch(2), far.batch(3)]
  await turn()
  vi.advanceTimersByTime(9)
  await turn()
  expect(far.batches).toEqual([[1]])
  vi.advanceTimersByTime(1)
  await Promise.all(few)
  const many = Array.from({ length: 30 }, (_, index) => far.batch(index + 4))
  await turn()
  vi.advanceTimersByTime(20)
  await Promise.all(many)
  const last = far.batch(50)
  await turn()
  vi.advanceTimersByTime(199)
  await turn()
  expect(far.batches).toHaveLength(3)
  vi.advanceTimersByTime(1)
  expect(await last).toBe(100)
  vi.useRealTimers()
})

test('batcher: a full statement does not wait for the spacing', async () => {
  const far = doubler({ maxItems: 3, maxConcurrent: 1, spacingMs: 200 })
  const turn = () => new Promise((done) => setImmediate(done))
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  await far.batch(1)
  const two = [far.batch(2), far.batch(3)]
  await turn()
  expect(far.batches).toEqual([[1]])
  const three = [...two, far.batch(4)]
  expect(await Promise.all(three)).toEqual([4, 6, 8])
  // The timer of the two items ended with their statement.
  const next = far.batch(5)
  await turn()
  vi.advanceTimersByTime(199)
  await turn()
  expect(far.batches).toEqual([[1], [2, 3, 4]])
  vi.advanceTimersByTime(1)
  expect(await next).toBe(10)
  vi.useRealTimers()
})

test('a statement of many callers runs in the async context of none of them, and each keeps its own', async () => {
  const caller = new AsyncLocalStorage<string>()
  const seen: unknown[] = []
  const batch = createBatcher<number, void>({
    maxItems: 2,
    maxConcurrent: 1,
    async run() {
      seen.push(caller.getStore())
      await nextTick()
    },
  })
  const kept = [1, 2, 3].map((item) =>
    caller.run(`caller ${item}`, async () => {
      await batch(item)
      return caller.getStore()
    }),
  )
  expect(await Promise.all(kept)).toEqual(['caller 1', 'caller 2', 'caller 3'])
  expect(seen).toEqual([undefined, undefined])
})
