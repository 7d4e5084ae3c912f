/** The field reads every mobile number as the service does, in each form that people write. */
import fc from 'fast-check'
import {
  type CountryCode,
  getCountries,
  getCountryCallingCode,
  Metadata,
  type NumberType,
  parsePhoneNumberFromString,
} from 'libphonenumber-js/max'
import { expect, test } from 'vitest'
import { createPhoneReader, readAnyNumber } from '../../src/recipient/phone-number.ts'
import { grouped, toE164 } from '../../web/phone-number.ts'

interface Plan {
  type(name: string): { pattern(): string; possibleLengths(): number[] | undefined } | undefined
  possibleLengths(): number[]
}

/** The plan of a country's mobile numbers. Where these look like landlines, all of them. */
function mobilesOf(country: CountryCode) {
  const metadata = new Metadata()
  metadata.selectNumberingPlan(country)
  const plan = metadata.numberingPlan as unknown as Plan
  const type = ['MOBILE', 'FIXED_LINE'].map((name) => plan.type(name)).find((t) => t?.pattern())
  const pattern = new RegExp(`^(?:${type?.pattern()})$`)
  return { pattern, lengths: type?.possibleLengths() ?? plan.possibleLengths() }
}

const countries = getCountries().filter((country) => country !== 'TA')
const sendable: (NumberType | undefined)[] = ['MOBILE', 'FIXED_LINE_OR_MOBILE']

const read = createPhoneReader(undefined)

/** Numbers of Gabon until 2019, which had one form abroad and another inside; and short ones of South Africa. */
const isUnusual = (e164: string) => /^\+(2410|241\d{7}$|27\d{0,8}$)/.test(e164)

const made = new Map<CountryCode, ReturnType<typeof makeMobiles>>()

/** Random mobile numbers of a country, always the same ones. They are made once, because that is slow. */
function randomMobiles(country: CountryCode) {
  const mobiles = made.get(country) ?? makeMobiles(country, 20)
  made.set(country, mobiles)
  return mobiles
}

function makeMobiles(country: CountryCode, count: number) {
  const { pattern, lengths } = mobilesOf(country)
  const digits = fc.stringMatching(pattern).filter(({ length }) => lengths.includes(length))
  return (
    fc
      .sample(digits, { numRuns: count, seed: 7 })
      .map((bare) => parsePhoneNumberFromString(`+${getCountryCallingCode(country)}${bare}`))
      .filter((number) => number !== undefined)
      // Countries that share a plan have no numbers of their own.
      .filter((number) => sendable.includes(number.getType()) && !isUnusual(number.number))
  )
}

test.each(countries)('%s: random mobile numbers, in each form', (country) => {
  const numbers = randomMobiles(country)
  expect(numbers.length).toBeGreaterThan(2)
  for (const number of numbers) {
    const { number: e164, nationalNumber, countryCallingCode: code } = number
    const bare = `${code}${nationalNumber}`
    // A few numbers without their plus are another number too, and either reading is right.
    const isTwo = read(`+${code}${bare}`)?.type !== undefined
    // Countries of North America with one area code write numbers without it.
    const local = nationalNumber.slice(3)
    const hasLocal = code === '1' && readAnyNumber(local, country)?.to === e164
    const forms = [number.formatNational(), nationalNumber, ...(isTwo ? [] : [bare])]
    if (hasLocal) forms.push(local)
    for (const form of forms) {
      expect(read(toE164(form, country))?.to, `${form} in the field`).toBe(e164)
      expect(read(toE164(grouped(form, country), country))?.to, `${form}, grouped`).toBe(e164)
      expect(readAnyNumber(form, country)?.to, `${form} at the service`).toBe(e164)
    }
  }
})

/** Digits before a number: by habit, by mistake, or because the number is of another country. */
const beginnings = ['', '0', '00', '01', '011', '1', '8', '044', '06', '80', '810', '+']

test.each(countries)(
  '%s: mobile numbers after anything that people dial → the field reads no other number than the service',
  (country) => {
    const code = getCountryCallingCode(country)
    const inside = ['', code, `${code}0`, `${code}1`]
    const starts = beginnings.flatMap((beginning) => inside.map((digits) => beginning + digits))
    const mobiles = randomMobiles(country)
    for (const [index, start] of starts.entries()) {
      const form = `${start}${mobiles[index % mobiles.length]?.nationalNumber}`
      const sent = read(toE164(form, country))
      if (!sent?.type) continue
      const plain = form.replace(/^(\+|00)/, '')
      const exact = readAnyNumber(form, country)
      const bare = plain.startsWith(code) ? plain.slice(code.length) : undefined
      if (exact?.type && bare === undefined) {
        expect(sent.to, form).toBe(exact.to)
        continue
      }
      // People write a needless trunk prefix, and leave out the + of a calling code.
      const trunk = { 1: /^1/, 370: /^[08]/ }[code] ?? /^0/
      const readings = [
        form,
        form.replace(trunk, ''),
        `+${plain}`,
        `+${code}${bare?.replace(trunk, '')}`,
      ]
      const isKnown = readings.some((reading) => readAnyNumber(reading, country)?.to === sent.to)
      expect({ form, to: sent.to, isKnown }).toMatchObject({ isKnown: true })
    }
  },
)
