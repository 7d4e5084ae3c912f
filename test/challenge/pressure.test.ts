import { expect, test } from 'vitest'
import { createPressure } from '../../src/challenge/pressure.ts'

test('the work doubles at 300, 1,200 and 4,800 a minute, never more, for that app alone, and falls back', () => {
  let atMs = 0
  const raise = createPressure(() => atMs)
  const changes: Record<number, number> = {}
  for (let asked = 1, last = 0; asked <= 20_000; asked++) {
    const factor = raise('shop')
    if (factor !== last) changes[asked] = factor
    last = factor
  }
  expect(changes).toEqual({ 1: 1, 301: 2, 1201: 4, 4801: 8 })
  expect(raise('bank')).toBe(1)
  atMs = 60_000
  expect(raise('shop')).toBe(8)
  // Half of the minute before still counts, then none of it.
  atMs = 118_500
  expect(raise('shop')).toBe(2)
  atMs = 240_000
  expect(raise('shop')).toBe(1)
})
