/**
 * Reads phone numbers: every spelling of a number becomes one, and only numbers that can get messages pass.
 *
 * libphonenumber accepts too much (full-width digits, trailing line breaks, markup around a number), so a strict
 * pattern comes first.
 *
 * It is also slow, because it compiles its patterns anew for every number. With cold caches that took a fifth of an
 * accepted send and a third of a check (docs/performance.md). So plain numbers go a short way, with the library's
 * patterns compiled once per calling code. Plain means E.164, a calling code of one country, and mobile by that
 * country's plan. All other numbers go through the library. Both ways give the same result;
 * test/recipient/phone-number.test.ts compares them.
 */
import {
  type CountryCode,
  getCountries,
  getCountryCallingCode,
  isSupportedCountry,
  type PhoneNumber as LibraryNumber,
  Metadata,
  parsePhoneNumberFromString,
} from 'libphonenumber-js/max'
import { createBoundedMap } from '../base/bounded-map.ts'
import { type NumberType, numberTypes } from '../base/number-types.ts'

export interface PhoneNumber {
  /** In E.164. */
  to: string
  /** ISO 3166; empty for numbers without a country. */
  country: string
  /** Undefined for numbers that get no messages: not in use, premium, shared cost, pager, satellite. */
  type: NumberType | undefined
}

/** A number that returns (after a refusal, or to check its code) is read by the library only once. */
const maxRemembered = 20_000

/** A slash stands after an area code. Behind the number it would name a second one: `4711/12`. */
const slash = String.raw`\/(?=(?:[^0-9]*[0-9]){4})`
/** Digits with the usual separators, and perhaps a country code before them. */
const numberPattern = new RegExp(`^(\\+|00)?\\(?[0-9](?:[0-9 ().-]|${slash}){4,24}$`)

/** The text without a bracket before its plus, and without a space behind it. */
const withoutExtras = (text: string) => text.replace(/^\((?=\+|00)/, '').replace(/^\+ /, '+')

/** True for a text in the form of a number, which need not be in use. */
export const isNumberText = (text: string) => numberPattern.test(withoutExtras(text))

/** True for a number without a country code. */
export function isNationalNumber(text: string): boolean {
  const parts = numberPattern.exec(text)
  return parts !== null && parts[1] === undefined
}

/**
 * `defaultCountry` is for numbers without a country code. `allowed`: beginnings of numbers that the library does not know
 * yet; these numbers count as mobile. Undefined for a text that is not a number.
 */
export function createPhoneReader(
  defaultCountry: string | undefined,
  allowed: readonly string[] = [],
) {
  const remembered = createBoundedMap<PhoneNumber | 'none'>(maxRemembered)

  return function readPhoneNumber(written: string): PhoneNumber | undefined {
    const text = withoutExtras(written)
    if (!numberPattern.test(text)) return undefined
    const plain = readPlainNumber(text)
    if (plain) return plain
    let number = remembered.get(text)
    if (!number) {
      number = readAnyNumber(text, defaultCountry, allowed) ?? 'none'
      remembered.set(text, number)
    }
    return number === 'none' ? undefined : number
  }
}

/** Reads with the library. `text` has passed the strict pattern. */
export function readAnyNumber(
  text: string,
  defaultCountry?: string,
  allowed: readonly string[] = [],
): PhoneNumber | undefined {
  const country = defaultCountry as CountryCode | undefined
  const { readings, international } = readingsOf(text, country)
  const numbers = readings.map((reading) => readWithLibrary(reading, country, allowed))
  const mobiles = numbers.filter((number) => number?.type?.includes('mobile'))
  // A mobile number as it was written comes first, then any mobile number.
  const exact = mobiles.find((number) => number?.to === international)
  return exact ?? mobiles[0] ?? numbers.find((number) => number?.type) ?? numbers.find(Boolean)
}

/**
 * The spellings that this text may stand for, the most probable first. `international`: the text as it was written, with its
 * calling code.
 */
function readingsOf(text: string, country: CountryCode | undefined) {
  const code = country && getCountryCallingCode(country)
  const digits = text.replaceAll(/\D/g, '')
  const isInternational = /^(\+|00)/.test(text)
  const international = isInternational ? `+${digits.replace(/^00/, '')}` : `+${code}${digits}`
  const written = isInternational ? international : `+${code} ${digits}`
  // 00 may be the beginning of a longer exit code, as in Australia, or of a number, as in Tajikistan.
  const asDialled = (code || !isInternational ? [text] : []).filter((own) => !own.startsWith('+'))
  const asWritten = isInternational ? [international] : []
  const isOwn = code !== undefined && international.startsWith(`+${code}`)
  const readings = [
    // Before the country's own calling code, 00 is no part of a longer exit code.
    ...(isInternational && isOwn ? [...asWritten, ...asDialled] : [...asDialled, ...asWritten]),
    // Autofill and phone books leave out the plus.
    ...(code && digits.startsWith(code) ? [`+${digits}`] : []),
    ...renumberings
      .map(([before, after]) => written.replace(before, after))
      .filter((renumbered) => renumbered !== written),
  ]
  return { readings, international }
}

/**
 * Forms of mobile numbers that are no longer in use, but still in phone books and accounts. The space stands before a number
 * that was written without its calling code.
 */
const renumberings: readonly [RegExp, string][] = [
  // Mexico until August 2020, no longer needed since August 2019: 1 from abroad, 044 and 045 from a landline, 01 from another
  // area (https://mexiconewsdaily.com/news/telephone-dialing-changes-now-in-effect). Inside, a 1 begins a number of North America.
  [/^\+52(?:1| ?01| ?04[45])(?=\d{10}$)/, '+52'],
  // Argentina: 15 inside the country stands for 9 from abroad; some write both (nationalPrefixForParsing and
  // nationalPrefixTransformRule of AR in the metadata of https://github.com/google/libphonenumber).
  [/^\+54 ?9(\d{2,4})15(?=\d{6,8}$)/, '+549$1'],
  // Benin until 30 November 2024: without 01 (https://fr.allafrica.com/stories/202411300249.html).
  [/^\+229 ?(?=\d{8}$)/, '+22901'],
]

function readWithLibrary(
  text: string,
  defaultCountry: CountryCode | undefined,
  allowed: readonly string[],
): PhoneNumber | undefined {
  const options = { extract: false, ...(defaultCountry ? { defaultCountry } : {}) }
  const number = parsePhoneNumberFromString(text, options)
  if (!number || number.ext) return undefined
  const { number: to } = number
  const libraryType = number.getType()
  if (!libraryType && number.isPossible() && allowed.some((start) => to.startsWith(start))) {
    return { to, country: number.country ?? mainCountryOf(number), type: 'mobile' }
  }
  // An invalid number has no type. Satellite numbers have a type but no country.
  const type = number.country && libraryType?.toLowerCase()
  return { to, country: number.country ?? '', type: numberTypes.find((each) => each === type) }
}

/** The first country is the main one of its calling code. */
export const mainCountryOf = (number: LibraryNumber) => number.getPossibleCountries()[0] ?? ''

/**
 * Whether a number of another country may be one of this country: some countries share their numbers, and the library
 * names the largest of them.
 */
export function mayBeOf(country: string, to: string): boolean {
  if (!isSupportedCountry(country) || !to.startsWith(`+${getCountryCallingCode(country)}`))
    return false
  const number = parsePhoneNumberFromString(to)
  if (!number) return false
  number.country = country
  return number.isValid()
}

interface Plan {
  country: CountryCode
  valid: RegExp
  mobile: RegExp
  /** A number that matches both patterns has no type in the library, so it is not plain. */
  fixedLine: RegExp | undefined
  mobileLengths: readonly number[] | undefined
  /** Digits that people dial before a number inside its country, such as 0. The library may remove them. */
  nationalPrefix: RegExp | undefined
}

const plans = new Map<string, Plan | undefined>()

/** Undefined for a number that is not plain; it may still be valid. */
export function readPlainNumber(text: string): PhoneNumber | undefined {
  if (!/^\+[1-9][0-9]{6,14}$/.test(text)) return undefined
  for (let codeEnd = 2; codeEnd <= 4; codeEnd++) {
    const code = text.slice(1, codeEnd)
    // No calling code is the beginning of another.
    const countries = countriesByCode.get(code)
    if (!countries) continue
    if (!plans.has(code)) plans.set(code, planOf(countries))
    const plan = plans.get(code)
    return plan && isMobile(plan, text.slice(codeEnd))
      ? { to: text, country: plan.country, type: 'mobile' }
      : undefined
  }
  return undefined
}

function isMobile(plan: Plan, digits: string): boolean {
  const { valid, mobile, fixedLine, mobileLengths, nationalPrefix } = plan
  return (
    mobile.test(digits) &&
    valid.test(digits) &&
    !fixedLine?.test(digits) &&
    (mobileLengths?.includes(digits.length) ?? true) &&
    !nationalPrefix?.test(digits)
  )
}

const countriesByCode = Map.groupBy(getCountries(), (country): string =>
  getCountryCallingCode(country),
)

/** Members of the library's metadata that its types omit. */
interface NumberingPlan {
  nationalNumberPattern(): string
  nationalPrefixForParsing(): string | undefined
  type(
    name: 'MOBILE' | 'FIXED_LINE',
  ): { pattern(): string; possibleLengths(): readonly number[] | undefined } | undefined
}

function planOf(countries: readonly CountryCode[]): Plan | undefined {
  const [country, ...others] = countries
  if (!country || others.length > 0) return undefined
  const metadata = new Metadata()
  metadata.selectNumberingPlan(country)
  const plan = metadata.numberingPlan as unknown as NumberingPlan
  const mobile = plan.type('MOBILE')
  // Some countries have no separate pattern for mobile numbers, because these look like landlines.
  if (!mobile?.pattern()) return undefined
  const fixedLine = plan.type('FIXED_LINE')?.pattern()
  const nationalPrefix = plan.nationalPrefixForParsing()
  return {
    country,
    valid: new RegExp(`^(?:${plan.nationalNumberPattern()})$`),
    mobile: new RegExp(`^(?:${mobile.pattern()})$`),
    fixedLine: fixedLine ? new RegExp(`^(?:${fixedLine})$`) : undefined,
    mobileLengths: mobile.possibleLengths(),
    nationalPrefix: nationalPrefix ? new RegExp(`^(?:${nationalPrefix})`) : undefined,
  }
}
