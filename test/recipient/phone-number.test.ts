import fc from 'fast-check'
import { type CountryCode, getCountries, getExampleNumber } from 'libphonenumber-js/max'
import examples from 'libphonenumber-js/mobile/examples'
import { expect, test } from 'vitest'
import { readAnyNumber, readPlainNumber } from '../../src/recipient/phone-number.ts'

const mobileOf = (country: CountryCode) => getExampleNumber(country, examples)?.number as string
const countries = getCountries().filter((country) => mobileOf(country))

/** The example number of a country, with some digits drawn again, or cut, or longer. */
const nearMobile = fc
  .tuple(
    fc.constantFrom(...countries),
    fc.array(fc.tuple(fc.nat(14), fc.nat(9)), { maxLength: 6 }),
    fc.constantFrom(0, 0, 0, 0, -1, 1),
  )
  .map(([country, changes, longer]) => {
    const digits = [...mobileOf(country)]
    for (const [at, digit] of changes) {
      // The first two are the plus sign and the most frequent calling code.
      const place = 2 + (at % (digits.length - 2))
      digits[place] = String(digit)
    }
    return longer < 0 ? digits.slice(0, longer).join('') : digits.join('') + '0'.repeat(longer)
  })

test('the short way always agrees with the library', () => {
  let short = 0
  fc.assert(
    fc.property(nearMobile, (text) => {
      const plain = readPlainNumber(text)
      if (!plain) return
      short++
      expect(plain).toEqual(readAnyNumber(text))
    }),
    { numRuns: 30_000 },
  )
  expect(short).toBeGreaterThan(5_000)
})

test('most countries go the short way, those that share a calling code do not', () => {
  const plain = countries.filter((country) => readPlainNumber(mobileOf(country)))
  expect(plain).toEqual(expect.arrayContaining(['CN', 'DE', 'FR', 'IN', 'JP', 'BR', 'SG', 'HK']))
  expect(plain.length).toBeGreaterThan(150)
  expect(plain).not.toContain('US')
  expect(plain).not.toContain('GB')
})

test('a number with a national prefix inside goes the long way, which knows it', () => {
  expect(readPlainNumber('+8613800138000')).toEqual({
    to: '+8613800138000',
    country: 'CN',
    type: 'mobile',
  })
  expect(readPlainNumber('+86013800138000')).toBeUndefined()
  expect(readAnyNumber('+86013800138000')).toEqual({
    to: '+8613800138000',
    country: 'CN',
    type: 'mobile',
  })
})
