import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createUntilAnswered } from '../../src/base/until-answered.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const bounds = { maxAgeMs: 60_000, maxEntries: 10 }
const away = () => Promise.reject(new Error('away'))

test('a server that is away is asked again until it answers, and once more some seconds later', async () => {
  const { add } = createUntilAnswered(bounds)
  const work = vi
    .fn(async () => {})
    .mockImplementationOnce(away)
    .mockImplementationOnce(away)
  add('one', work)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(work).toHaveBeenCalledTimes(3)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(work).toHaveBeenCalledTimes(4)
})

test('once is enough: what was done is not done again', async () => {
  const { add } = createUntilAnswered({ ...bounds, isOnceEnough: true })
  const work = vi.fn(async () => {}).mockImplementationOnce(away)
  add('one', work)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(work).toHaveBeenCalledTimes(2)
  expect(vi.getTimerCount()).toBe(0)
})

test('no longer than its time, and no more than there is room for', async () => {
  const { add } = createUntilAnswered({ ...bounds, maxEntries: 1 })
  const [first, second] = [vi.fn(away), vi.fn(away)]
  add('one', first)
  add('two', second)
  await vi.advanceTimersByTimeAsync(61_000)
  expect(first).not.toHaveBeenCalled()
  expect(second.mock.calls.length).toBeGreaterThan(200)
  expect(vi.getTimerCount()).toBe(0)
})

test('work for one server that is away does not delay the work for others', async () => {
  const { add } = createUntilAnswered({ ...bounds, maxEntries: 300, isOnceEnough: true })
  const [healthy, dead] = [vi.fn(async () => {}), vi.fn(away)]
  for (let at = 0; at < 250; at++) add(String(at), at % 100 === 0 ? dead : healthy)
  await vi.advanceTimersByTimeAsync(250)
  expect(healthy).toHaveBeenCalledTimes(247)
  // None answers: one pass tries a hundred pieces, not all.
  const none = createUntilAnswered({ ...bounds, maxEntries: 300 })
  const allDead = vi.fn(away)
  for (let at = 0; at < 250; at++) none.add(String(at), allDead)
  await vi.advanceTimersByTimeAsync(250)
  expect(allDead).toHaveBeenCalledTimes(100)
})

test('a try under way at the close is the last one', async () => {
  const { add, close } = createUntilAnswered({ ...bounds, maxAgeMs: Number.POSITIVE_INFINITY })
  const failures: (() => void)[] = []
  const work = vi.fn(
    () => new Promise<void>((_, reject) => failures.push(() => reject(new Error('away')))),
  )
  add('one', work)
  await vi.advanceTimersByTimeAsync(200)
  close()
  failures[0]?.()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(work).toHaveBeenCalledTimes(1)
  expect(vi.getTimerCount()).toBe(0)
})
