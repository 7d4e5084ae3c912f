import { randomInt } from 'node:crypto'
import { expect, test } from 'vitest'
import { drawCode } from '../../src/captcha/code-sends.ts'

const draws = 1_000_000
// The 99.9th percentile for 9,999 degrees of freedom (Wilson and Hilferty).
const degrees = 9_999
const spread = 2 / (9 * degrees)
const critical = degrees * (1 - spread + 3.0902 * Math.sqrt(spread)) ** 3

/** Sum over all codes of four digits of (seen − expected)² / expected. */
function chiSquareOf(draw: () => string): number {
  const seen = new Float64Array(10_000)
  for (let count = 0; count < draws; count += 1) {
    const index = Number(draw())
    seen[index] = (seen[index] as number) + 1
  }
  const expected = draws / seen.length
  return seen.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
}

test('drawCode: 1,000,000 codes are uniform, leading zeros included (I18, chi-square p > 0.001)', () => {
  // A fair source passes the mark once in a thousand runs. So only a second time in a row counts as a fault.
  const isFair = [1, 2].some(() => chiSquareOf(() => drawCode(4)) < critical)
  expect(isFair).toBe(true)
})

test('the measure of I18 notices digits drawn as byte % 10', () => {
  // 256 is six more than a multiple of ten. So without care, the digits 0 to 5 are a fortieth likelier than 6 to 9.
  const digit = () => randomInt(256) % 10
  expect(chiSquareOf(() => `${digit()}${digit()}${digit()}${digit()}`)).toBeGreaterThan(critical)
})

test.each([4, 6, 10])('drawCode: a code of %i digits has that many, zeros kept', (length) => {
  const codes = Array.from({ length: 2_000 }, () => drawCode(length))
  expect(codes.every((code) => new RegExp(`^[0-9]{${length}}$`).test(code))).toBe(true)
  expect(codes.some((code) => code.startsWith('0'))).toBe(true)
})
