import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createAsideWriter } from '../../src/support/aside-writer.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())
/** Far longer than the pause between two turns. */
const later = () => vi.advanceTimersByTimeAsync(100)

/** A writer whose writes hang until the test answers them. */
function open() {
  const writes: { items: readonly number[]; answer: () => void; fail: (error: Error) => void }[] =
    []
  const onDropped = vi.fn()
  const writer = createAsideWriter<number>({
    ...{ everyMs: 1, maxItems: 3, makeRoom: () => false, onDropped },
    write(items) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      writes.push({ items, answer: resolve, fail: reject })
      return promise
    },
  })
  return { writer, writes, onDropped }
}

test('a write hangs → no second one begins, and what has no room meanwhile is dropped and counted', async () => {
  const { writer, writes, onDropped } = open()
  writer.add(1)
  await later()
  expect(writes).toHaveLength(1)
  expect([2, 3, 4, 5].map((item) => writer.add(item))).toEqual([true, true, true, false])
  await later()
  expect(writes.map(({ items }) => items)).toEqual([[1]])
  writes[0]?.answer()
  await later()
  expect(writes).toHaveLength(2)
  expect(writes[1]?.items).toEqual([2, 3, 4])
  writes[1]?.answer()
  await later()
  expect(onDropped.mock.calls).toEqual([[1]])
  await writer.close()
})

test('close while a write hangs → the rest is written after it, and close resolves after the last', async () => {
  const { writer, writes, onDropped } = open()
  writer.add(1)
  await later()
  expect(writes).toHaveLength(1)
  writer.add(2)
  const closed = vi.fn()
  const closing = writer.close().then(closed)
  expect(writer.add(3)).toBe(false)
  await later()
  expect([writes.length, closed.mock.calls.length]).toEqual([1, 0])
  writes[0]?.fail(new Error('away'))
  await later()
  expect(writes).toHaveLength(2)
  expect(closed).not.toHaveBeenCalled()
  expect(writes[1]?.items).toEqual([2])
  writes[1]?.answer()
  await closing
  expect(onDropped.mock.calls.flat()).toEqual([2])
  await later()
  expect(writes).toHaveLength(2)
})
