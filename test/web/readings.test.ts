import { expect, test, vi } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import {
  claimsOf,
  clockAheadMs,
  clockTime,
  codeIn,
  digitsIn,
  idTimeMs,
  timeLeft,
} from '../../web/readings.ts'

test.each([
  ['1234', '1234'],
  ['Your code: 12 34.', '1234'],
  ['１２３４', '1234'],
  ['٠١٢٣٤٥٦٧٨٩', '0123456789'],
  ['۰۱۲۳۴۵۶۷۸۹', '0123456789'],
  ['၀၁၂၃၄၅၆၇၈၉', '0123456789'],
  ['๐๑๒๓๔๕๖๗๘๙', '0123456789'],
  ['𞥐𞥑𞥒𞥓', '0123'],
  ['138\ufe0d0013', '1380013'],
  ['\u202d138\u200b0013\u2011\u00ad8000\u202c', '13800138000'],
  ['', ''],
])('digits in %j: %j', (text, digits) => expect(digitsIn(text)).toBe(digits))

test.each([
  ['1234', '1234'],
  ['12', '12'],
  ['', ''],
  ['12 34', '1234'],
  ['12-3', '123'],
  ['12–34', '1234'],
  ['\u200e12\u200b34\u202c', '1234'],
  ['\u200e12', '12'],
  ['１２３４', '1234'],
  ['১২৩৪', '1234'],
  ['आपका कोड १२३४', '1234'],
  ['Your code: 1 2 3 4.', '1234'],
  ['Acme24: your code is 8629', '8629'],
  ['8629 is your code, valid for 5 minutes.\n@acme24.example #8629', '8629'],
  ['Acme24: your code is 86 29', '8629'],
  ['8629 or 1234', undefined],
  ['8629, 12 34', '8629'],
  ['12345', undefined],
  ['Acme24', undefined],
  ['1a', undefined],
  ['no code', undefined],
])('the code of 4 digits in %j: %j', (written, code) => expect(codeIn(written, 4)).toBe(code))

test('a message about a code of 6 digits, and a number in it', () => {
  expect(codeIn('Acme 2024: 123 456 is your code. Call 13800138000.', 6)).toBe('123456')
})

test('a clock shows the next full minute, with its day when that is another one', () => {
  vi.useFakeTimers({ now: new Date(2026, 10, 23, 14, 20, 1) })
  expect(clockTime(14 * 60_000 + 59_000, 'en-GB')).toBe('14:35')
  expect(clockTime(14 * 60_000 + 58_000, 'zh-CN')).toBe('14:35')
  expect(clockTime(15 * 60_000, 'en-US')).toMatch(/^2:36\sPM$/)
  expect(clockTime(24 * 3_600_000, 'en-GB')).toBe('Tue 24 Nov, 14:21')
})

test.each([
  [0, '0:00'],
  [999, '0:01'],
  [1_000, '0:01'],
  [1_001, '0:02'],
  [1, '0:01'],
  [42_000, '0:42'],
  [59_001, '1:00'],
  [899_000, '14:59'],
  [11_520_000, '3:12:00'],
])('%i ms are shown as %s', (ms, text) => expect(timeLeft(ms)).toBe(text))

test.each([0, 1, 1_790_000_000_123, 2 ** 48 - 1])('an id made at %i ms has that time', (nowMs) => {
  expect(idTimeMs(newId(nowMs))).toBe(nowMs)
})

test.each([
  ['made between the question and now', -500, 0],
  ['a second apart is right', 900, 0],
  ['an hour ahead', -3_600_000, 3_600_000],
  ['an hour behind', 3_600_000, -3_600_000],
])('the clock of the page, by an id: %s', (_, madeInMs, aheadMs) => {
  const now = Date.now()
  const found = clockAheadMs(newId(now + madeInMs), now - 1_000)
  if (aheadMs === 0) expect(found).toBe(0)
  else expect(Math.abs(found - aheadMs)).toBeLessThan(1_000)
})

test('a pass has the time until its end, and its channel; what is none has nothing', () => {
  const claims = { iat: 1_000, exp: 1_300, channel: 'email', sub: '?>~' }
  const payload = Buffer.from(JSON.stringify(claims)).toString('base64url')
  expect(claimsOf(`e30.${payload}.x`)).toEqual({ lifeMs: 300_000, channel: 'email' })
  for (const other of ['', 'x', 'a.b.c', 'a.e30.c']) {
    expect(claimsOf(other)).toEqual({ lifeMs: Infinity })
  }
})
