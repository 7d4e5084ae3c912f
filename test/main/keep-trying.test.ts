import { expect, test, vi } from 'vitest'
import { createClosers } from '../../src/base/closers.ts'
import type { Log } from '../../src/base/log.ts'
import { keepTrying } from '../../src/main/keep-trying.ts'

test('what is needed at start: a try under way at the close is the last one', async () => {
  vi.useFakeTimers()
  const closers = createClosers()
  const log = { backgroundFailed: () => {} } as unknown as Log
  const failures: (() => void)[] = []
  const work = vi.fn(
    () => new Promise<void>((_, reject) => failures.push(() => reject(new Error('away')))),
  )
  const first = keepTrying(closers, log, work)
  failures[0]?.()
  await first
  await vi.advanceTimersByTimeAsync(1_000)
  expect(work).toHaveBeenCalledTimes(2)

  await closers.close()
  failures[1]?.()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(work).toHaveBeenCalledTimes(2)
  expect(vi.getTimerCount()).toBe(0)
})
