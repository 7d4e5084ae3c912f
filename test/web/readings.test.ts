import { expect, test } from 'vitest'
import { idTimeMs as idTimeOfServer, newId } from '../../src/base/ids.ts'
import { clockAheadMs, digitsIn, idTimeMs, lifeOfPassMs, timeLeft } from '../../web/readings.ts'

test.each([
  ['1234', '1234'],
  ['Your code: 12 34.', '1234'],
  ['１２３４', '1234'],
  ['٠١٢٣٤٥٦٧٨٩', '0123456789'],
  ['۰۱۲۳۴۵۶۷۸۹', '0123456789'],
  ['', ''],
])('digits in %j: %j', (text, digits) => expect(digitsIn(text)).toBe(digits))

test.each([
  [0, '0:00'],
  [1, '0:01'],
  [42_000, '0:42'],
  [59_001, '1:00'],
  [899_000, '14:59'],
  [11_520_000, '3:12:00'],
])('%i ms are shown as %s', (ms, text) => expect(timeLeft(ms)).toBe(text))

test('an id tells the time as the server reads it', () => {
  const id = newId(1_790_000_000_123)
  expect(idTimeMs(id)).toBe(idTimeOfServer(id))
})

test.each([
  ['made between the question and now', -500, 0],
  ['a second apart is right', 900, 0],
  ['an hour ahead', -3_600_000, 3_600_000],
  ['an hour behind', 3_600_000, -3_600_000],
])('our clock, by an id: %s', (_, madeInMs, aheadMs) => {
  const now = Date.now()
  const found = clockAheadMs(newId(now + madeInMs), now - 1_000)
  if (aheadMs === 0) expect(found).toBe(0)
  else expect(Math.abs(found - aheadMs)).toBeLessThan(1_000)
})

test('a pass says how long it is taken; what is none says nothing', () => {
  const payload = Buffer.from(JSON.stringify({ iat: 1_000, exp: 1_300, sub: '?>~' }))
  expect(lifeOfPassMs(`e30.${payload.toString('base64url')}.x`)).toBe(300_000)
  for (const other of ['', 'x', 'a.b.c', 'a.e30.c']) expect(lifeOfPassMs(other)).toBeUndefined()
})
