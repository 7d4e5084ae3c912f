import fc from 'fast-check'
import {
  type CountryCode,
  getCountries,
  getExampleNumber,
  parsePhoneNumberFromString,
} from 'libphonenumber-js/max'
import examples from 'libphonenumber-js/mobile/examples'
import { expect, test } from 'vitest'
import { phoneNumber } from '../../src/recipient/phone-address.ts'
import {
  createPhoneReader,
  readAnyNumber,
  readPlainNumber,
} from '../../src/recipient/phone-number.ts'

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
      const { country = '', nationalNumber } = parsePhoneNumberFromString(plain.to) ?? {}
      expect(phoneNumber.placeOf(plain.to)).toEqual({ country, nationalNumber })
    }),
    { numRuns: 30_000 },
  )
  expect(short).toBeGreaterThan(5_000)
})

test('the place of a number: its country, also for an allowed one that the library does not know', () => {
  const read = createPhoneReader(undefined, ['+447700900'])
  for (const [to, country, nationalNumber] of [
    ['+8613800138000', 'CN', '13800138000'],
    ['+447700900123', 'GB', '7700900123'],
    ['+12125550123', 'US', '2125550123'],
    ['+393331234567', 'IT', '3331234567'],
  ]) {
    expect(phoneNumber.placeOf(String(to))).toEqual({ country, nationalNumber })
    expect(read(String(to))?.country).toBe(country)
  }
  expect(phoneNumber.placeOf('+870773111632').country).toBe('')
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

test.each([
  ['Mexico from abroad, until 2019', '+52 1 55 1234 5678', undefined, '+525512345678'],
  ['the same from a landline', '044 55 1234 5678', 'MX', '+525512345678'],
  ['the same from another area', '045 33 1234 5678', 'MX', '+523312345678'],
  ['Argentina inside, with its 15', '011 15-2345-6789', 'AR', '+5491123456789'],
  ['with 9 and 15', '+54 9 11 15 2345 6789', undefined, '+5491123456789'],
  ['Benin until 2024', '+229 97 00 00 00', undefined, '+2290197000000'],
  ['the same inside', '97 00 00 00', 'BJ', '+2290197000000'],
  ['an area code before a slash', '0171/1234501', 'DE', '+491711234501'],
  ['filled in without its plus', '4915740056687', 'DE', '+4915740056687'],
  ['brackets around the country code', '(+49) 171 1234501', undefined, '+491711234501'],
  ['the same without a +', '(0049) 171 1234501', undefined, '+491711234501'],
  ['a space behind the +', '+ 49 171 1234501', undefined, '+491711234501'],
  [
    'abroad from Australia, where 00 is not the whole code',
    '0011 65 9123 4567',
    'AU',
    '+6591234567',
  ],
  ['abroad from there as elsewhere', '0047 406 12345', 'AU', '+4740612345'],
  [
    'Korea by its own calling code, not Egypt behind 008',
    '0082 010 1234 5678',
    'KR',
    '+821012345678',
  ],
  [
    'Thailand by its own calling code, not Malaysia behind 006',
    '0066 081 234 5678',
    'TH',
    '+66812345678',
  ],
  ['Tajikistan, where a number may begin with 00', '00 123 1212', 'TJ', '+992001231212'],
])('%s: %j is read', (_, text, country, to) => {
  expect(createPhoneReader(country)(text)).toMatchObject({ to, type: expect.any(String) })
})

test('ten digits after a 1, which people in Mexico dialled only from abroad: no Mexican number, because Americans write theirs so', () => {
  const read = createPhoneReader('MX')
  for (const text of ['1 415 555 2671', '14155552671', '1-551-234-5678']) {
    expect(read(text)?.type).toBeUndefined()
  }
  for (const text of [
    '+52 1 415 555 2671',
    '0052 1 415 555 2671',
    '01 415 555 2671',
    '415 555 2671',
  ]) {
    expect(read(text)).toMatchObject({ to: '+524155552671', country: 'MX' })
  }
})

test('a range that the plans do not know: mobile once it is allowed, in the main country of its code', () => {
  const [plain, allowing] = [createPhoneReader('US'), createPhoneReader('US', ['+1861', '+4919'])]
  for (const text of ['+1 861 555 0100', '(861) 555-0100', '18615550100']) {
    expect(plain(text)?.type).toBeUndefined()
    expect(allowing(text)).toEqual({ to: '+18615550100', country: 'US', type: 'mobile' })
  }
  expect(allowing('+1 862 555 01')?.type).toBeUndefined()
  expect(allowing('+1 861 555')?.type).toBeUndefined()
})

test('an allowed beginning changes no type that the plans know', () => {
  expect(createPhoneReader(undefined, ['+1900'])('+19002345678')?.type).toBeUndefined()
  expect(createPhoneReader(undefined, ['+4420'])('+442071234567')?.type).toBe('fixed_line')
})
