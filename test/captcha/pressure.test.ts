import { expect, test } from 'vitest'
import { createPressure } from '../../src/captcha/pressure.ts'

test('the work doubles above 300, 1,200 and 4,800 answers a minute, never more, for that app alone, and falls back', () => {
  let atMs = 0
  const { raise, solved } = createPressure(() => atMs)
  const changes: Record<number, number> = {}
  for (let answers = 1, last = 0; answers <= 10_000; answers++) {
    solved('shop')
    const factor = raise('shop', `visitor-${answers}`)
    if (factor !== last) changes[answers] = factor
    last = factor
  }
  expect(changes).toEqual({ 1: 1, 301: 2, 1201: 4, 4801: 8 })
  expect(raise('bank', 'a')).toBe(1)
  atMs = 60_000
  expect(raise('shop', 'a')).toBe(8)
  // A twentieth of the previous minute still counts, and then nothing of it.
  atMs = 117_000
  expect(raise('shop', 'a')).toBe(2)
  atMs = 240_000
  expect(raise('shop', 'a')).toBe(1)
})

test('a caller that fetches many challenges works more for them, and no other caller does', () => {
  const { raise } = createPressure(() => 0)
  const factors = Array.from({ length: 5_000 }, () => raise('shop', '203.0.113.1'))
  expect([factors[299], factors[300], factors[1_200], factors[4_800]]).toEqual([1, 2, 4, 8])
  expect(raise('shop', '203.0.113.2')).toBe(1)
  // For an attacker at one address, the app makes no difference.
  expect(raise('bank', '203.0.113.1')).toBe(8)
})
