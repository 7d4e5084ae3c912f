import { createRequire } from 'node:module'
import {
  type CountryCode,
  getCountries,
  getCountryCallingCode,
  getExampleNumber,
} from 'libphonenumber-js/max'
import { describe, expect, test } from 'vitest'
import { createPhoneReader } from '../../src/recipient/phone-number.ts'
import { callingCodeIn, callingCodeOf } from '../../web/calling-codes.ts'
import {
  caretIn,
  countryOf,
  grouped,
  isInternational,
  toE164,
  withoutCallingCode,
} from '../../web/phone-number.ts'

const examples = createRequire(import.meta.url)('libphonenumber-js/examples.mobile.json')
const exampleOf = (country: CountryCode) => {
  const number = getExampleNumber(country, examples)
  if (!number) throw new Error(`no example of ${country}`)
  return number
}

describe('calling codes', () => {
  test('are the library’s of the service, for each of its countries and no other', () => {
    const countries = getCountries()
    expect(countries.length).toBeGreaterThan(200)
    for (const country of countries) {
      expect(callingCodeOf(country), country).toBe(getCountryCallingCode(country))
    }
    const known = new Set<string>(countries)
    const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
    for (const country of letters.flatMap((first) => letters.map((second) => first + second))) {
      if (!known.has(country)) expect(callingCodeOf(country), country).toBeUndefined()
    }
  })

  test('are found before a number, and nothing else is', () => {
    for (const country of getCountries()) {
      const code = getCountryCallingCode(country)
      expect(callingCodeIn(`${code}${exampleOf(country).nationalNumber}`)).toBe(code)
    }
    for (const digits of ['', '0', '999123', '8']) expect(callingCodeIn(digits)).toBeUndefined()
  })
})

describe('E.164', () => {
  test.each(getCountries())(
    '%s: a mobile number as its people write it, grouped or not',
    (country) => {
      const { number, nationalNumber } = exampleOf(country)
      const national = exampleOf(country).formatNational()
      // Argentina writes a 15 inside a number. The service knows it.
      const read = createPhoneReader(undefined)
      const sent = toE164(national, country)
      expect(country === 'AR' ? read(sent)?.to : sent).toBe(number)
      expect(toE164(nationalNumber, country)).toBe(number)
      expect(toE164(grouped(national, country), country)).toBe(sent)
      expect(toE164(grouped(number, country), country)).toBe(number)
      expect(toE164(number, 'CN')).toBe(number)
    },
  )

  test.each([
    ['a + overrides the country', '+852 9123 4567', 'CN', '+85291234567'],
    ['and so does 00', '00852 9123 4567', 'CN', '+85291234567'],
    ['no country: its digits', '138 0013 8000', '', '13800138000'],
    ['no country, with a +', '+86 138-0013-8000', '', '+8613800138000'],
    ['full-width', '＋８６１３８００１３８０００', '', '+8613800138000'],
    ['Arabic digits', '٠٥٠١٢٣٤٥٦٧', 'SA', '+966501234567'],
    ['the code is there, without its +', '8613800138000', 'CN', '+8613800138000'],
    ['the code is there, without its +, in Britain', '447400123456', 'GB', '+447400123456'],
    ['a number that begins as its code does', '861234567', 'DE', '+49861234567'],
    ['a zero in brackets', '+44 (0)7400 123456', 'GB', '+447400123456'],
    ['filled in by a browser, without its +', '491711230001', 'DE', '+491711230001'],
    ['the same for a country whose numbers may begin so', '918123456789', 'IN', '+918123456789'],
    ['which is a national number if it is short enough', '9181234567', 'IN', '+919181234567'],
    ['Burkina Faso has no trunk prefix', '07 12 34 56', 'BF', '+22607123456'],
    ['nor has Tajikistan', '053476128', 'TJ', '+992053476128'],
    ['where numbers may begin with 00', '00 123 1212', 'TJ', '+992001231212'],
    ['and abroad is behind 00 all the same', '0044 7400 123456', 'TJ', '+447400123456'],
    ['Mexico as dialled until 2019', '044 55 1234 5678', 'MX', '+525512345678'],
    ['the same from abroad, without its +', '52 1 55 1234 5678', 'MX', '+525512345678'],
    ['the same from another area', '01 415 555 2671', 'MX', '+524155552671'],
    ['a 1 that begins a number of North America', '1 415 555 2671', 'MX', '14155552671'],
    ['the same with a trunk prefix', '01 1 415 555 2671', 'MX', '+520114155552671'],
    ['Ascension has no trunk prefix', '040682', 'AC', '+247040682'],
    ['a stroke', '0171/1234501', 'DE', '+491711234501'],
    ['a link', 'tel:+49-171-1234501', 'CN', '+491711234501'],
    ['a sign that selects a shape', '138\ufe0d 0013 8000', 'CN', '+8613800138000'],
    ['Bengali digits', '০১৭১২৩৪৫৬৭৮', 'BD', '+8801712345678'],
    ['Devanagari digits', '९८७६५४३२१०', 'IN', '+919876543210'],
    ['the 8 of Belarus', '8 029 491-19-11', 'BY', '+375294911911'],
    ['the 1 of America', '1 (201) 555-0123', 'US', '+12015550123'],
    ['in Barbados, without the area code', '250 1234', 'BB', '+12462501234'],
    ['and with it', '246 250 1234', 'BB', '+12462501234'],
    ['the code of a call abroad, in America', '011 49 171 1234501', 'US', '+491711234501'],
    ['the same in Australia', '0011 47 406 12 345', 'AU', '+4740612345'],
    ['the same in Russia', '8 10 49 171 1234501', 'RU', '+491711234501'],
    ['the same in Japan', '010 49 171 1234501', 'JP', '+491711234501'],
    ['brackets around the country code', '(+49) 171 1234501', 'CN', '+491711234501'],
    ['the same in full width', '（＋４９）１７１１２３４５０１', '', '+491711234501'],
    ['a space behind the +', '+ 49 171 1234501', 'CN', '+491711234501'],
    ['a landline of Italy keeps its zero', '06 1234 5678', 'IT', '+390612345678'],
    ['copied from a contact', '\u202a+86 138 0013 8000\u202c', '', '+8613800138000'],
    ['copied from a chat', '138\u200b–0013–8000\u200e', 'CN', '+8613800138000'],
    ['a minus, and no country', '138−0013−8000\u200e', '', '13800138000'],
    ['spaces around', '  13800138000 ', 'CN', '+8613800138000'],
    ['what is no number is left to the service', 'call me', 'CN', 'call me'],
    ['two numbers too', '13800138000,13900139000', 'CN', '13800138000,13900139000'],
    ['an address', 'a@shop.example', 'CN', 'a@shop.example'],
    ['nothing', '', 'CN', ''],
    ['a country that has no numbers', '13800138000', 'QQ', '13800138000'],
  ])('%s: %j of %j is %j', (_, written, country, e164) =>
    expect(toE164(written, country)).toBe(e164),
  )
})

test.each([
  ['1', 'CN', '1'],
  ['138', 'CN', '138'],
  ['1380', 'CN', '138 0'],
  ['13800138000', 'CN', '138 0013 8000'],
  ['1380013800012', 'CN', '138 0013 800012'],
  ['138-0013-8000', 'CN', '138 0013 8000'],
  ['\u202a138\u20110013\u20118000\u202c', 'CN', '138 0013 8000'],
  ['07400123456', 'GB', '07400 123456'],
  ['7400123456', 'GB', '7400 123456'],
  ['2015550123', 'US', '201 555 0123'],
  ['91234567', 'HK', '9123 4567'],
  ['501234567', 'SA', '501 234 567'],
  ['+8613800138000', 'GB', '+86 138 0013 8000'],
  ['(+86) 13800138000', 'GB', '+86 138 0013 8000'],
  ['011 49 171', 'US', '011 49 171'],
  ['+86', 'CN', '+86'],
  ['+8', 'CN', '+8'],
  ['+', 'CN', '+'],
  ['+99912', 'CN', '+99912'],
  ['008613800138000', 'CN', '008613800138000'],
  ['', 'CN', ''],
  ['a1', 'CN', 'a1'],
  ['13800138000', '', '13800138000'],
])('%j of %j is grouped as %j', (written, country, text) => {
  expect(grouped(written, country)).toBe(text)
  // Digits that are grouped already do not change.
  expect(grouped(text, country)).toBe(text)
})

test.each([
  ['after the digits that were before it', '138 0013 8', '1380', false, 5],
  ['not after the space', '138 0013 8', '138', false, 3],
  ['with Delete, after the space', '138 0013 8', '138', true, 4],
  ['at the beginning', '138 0013', '', false, 0],
  ['a + counts as a digit does', '+86 138', '+', false, 1],
  ['and other characters do not', '+86 138', '+86-1', false, 5],
  ['full-width digits', '138 0', '１３８０', false, 5],
  ['and invisible characters do not', '138 0', '\u202a138', false, 3],
  ['a digit that went away', '138', '1380', false, 3],
])('the caret in a grouped number: %s', (_, text, before, isForward, place) =>
  expect(caretIn(text, before, isForward)).toBe(place),
)

test('the country of a number: the first of those that may be picked', () => {
  expect(countryOf('+1 201 555 0123', ['CA', 'US'])).toBe('CA')
  expect(countryOf('+852', ['CN', 'HK'])).toBe('HK')
  expect(countryOf('0085291234567', ['CN', 'HK'])).toBe('HK')
  expect(countryOf('+44', ['CN', 'HK'])).toBeUndefined()
  expect(countryOf('+', ['CN', 'HK'])).toBeUndefined()
})

test('another country is picked for an international number: its own code goes', () => {
  expect(withoutCallingCode('+852 9123 4567', 'CN')).toBe('91234567')
  expect(withoutCallingCode('00852 9123', 'CN')).toBe('9123')
  expect(withoutCallingCode('+', 'CN')).toBe('')
  expect(withoutCallingCode('138 0013', 'CN')).toBe('138 0013')
})

test('written for the whole world', () => {
  for (const text of ['+1', ' +1', '00852', '＋86', '\u202a+86', '(+86', '+ 86'])
    expect(isInternational(text, 'CN')).toBe(true)
  for (const text of ['', '138', '0138']) expect(isInternational(text, 'CN')).toBe(false)
})
