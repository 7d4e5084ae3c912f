import { expect, test } from 'vitest'
import { backoffMs } from '../../src/base/backoff.ts'

test('backoff: doubles up to the longest, half of it by chance', () => {
  const least = (tries: number) => backoffMs(tries, 500, 10_000, () => 0)
  const most = (tries: number) => backoffMs(tries, 500, 10_000, () => 1)
  expect([0, 1, 2, 50, 5_000].map(most)).toEqual([500, 500, 1_000, 10_000, 10_000])
  expect([1, 2, 50].map(least)).toEqual([250, 500, 5_000])
})
