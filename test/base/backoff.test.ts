import { expect, test, vi } from 'vitest'
import { backoffMs } from '../../src/base/backoff.ts'

test('backoff: doubles up to the longest, half of it by chance', () => {
  const pause = (tries: number) => backoffMs(tries, 500, 10_000)
  const random = vi.spyOn(Math, 'random').mockReturnValue(1)
  expect([0, 1, 2, 50, 5_000].map(pause)).toEqual([500, 500, 1_000, 10_000, 10_000])
  random.mockReturnValue(0)
  expect([1, 2, 50].map(pause)).toEqual([250, 500, 5_000])
})
