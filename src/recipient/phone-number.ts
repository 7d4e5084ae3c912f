/**
 * Reads phone numbers: every spelling of one becomes one, and only those that can take a message pass.
 *
 * libphonenumber alone is too kind (full-width digits, trailing line breaks, markup around a number),
 * so a strict pattern comes first. It is also slow at the door: it compiles its patterns anew for every
 * number, which between two requests, with cold caches, took a fifth of an accepted send and a third
 * of a check (docs/performance.md). So a number that needs no reading goes a short way, over the
 * library's own patterns compiled once per calling code: written as E.164, of a code that one country
 * has for itself, and mobile by that country's plan. What does not fit there goes the library's way,
 * and what fits comes out as the library has it: test/recipient/phone-number.test.ts holds the two together.
 */
import {
  type CountryCode,
  getCountries,
  getCountryCallingCode,
  Metadata,
  parsePhoneNumberFromString,
} from 'libphonenumber-js/max'
import { createBoundedMap } from '../base/bounded-map.ts'
import { type NumberType, numberTypes } from '../base/number-types.ts'

export interface PhoneNumber {
  /** E.164. */
  to: string
  /** ISO 3166; empty where the number is of none. */
  country: string
  /** Undefined where no message can go: not in use, premium, shared cost, pager, satellite. */
  type: NumberType | undefined
}

/** Reading goes the long way once for a number that comes again: refused, or to check its code. */
const maxRemembered = 20_000

/** Digits with the usual separators, and maybe the code of a country before them. */
const numberPattern = /^(\+|00)?\(?[0-9][0-9 ().-]{4,24}$/

/** Written as within a country, without the country's code. */
export function isNationalNumber(text: string): boolean {
  const parts = numberPattern.exec(text)
  return parts !== null && parts[1] === undefined
}

/** `defaultCountry` is for numbers written without a country code. Undefined: it is no number at all. */
export function createPhoneReader(defaultCountry: string | undefined) {
  const remembered = createBoundedMap<PhoneNumber | 'none'>(maxRemembered)

  return function readPhoneNumber(text: string): PhoneNumber | undefined {
    if (!numberPattern.test(text)) return undefined
    const plain = readPlainNumber(text)
    if (plain) return plain
    let number = remembered.get(text)
    if (!number) {
      number = readAnyNumber(text, defaultCountry) ?? 'none'
      remembered.set(text, number)
    }
    return number === 'none' ? undefined : number
  }
}

/** By the library; `text` has passed the strict pattern. */
export function readAnyNumber(text: string, defaultCountry?: string): PhoneNumber | undefined {
  const international = text.startsWith('00') ? `+${text.slice(2)}` : text
  const number = parsePhoneNumberFromString(international, {
    ...(defaultCountry ? { defaultCountry: defaultCountry as CountryCode } : {}),
    extract: false,
  })
  if (!number || number.ext) return undefined
  // A number that is not valid has no type. Those of satellites have one, but no country.
  const type = number.country && number.getType()?.toLowerCase()
  return {
    to: number.number,
    country: number.country ?? '',
    type: numberTypes.find((each) => each === type),
  }
}

interface Plan {
  country: CountryCode
  valid: RegExp
  mobile: RegExp
  /** What looks like both is neither for the library. */
  fixedLine: RegExp | undefined
  mobileLengths: readonly number[] | undefined
  /** Digits dialled before a number within the country; the library may cut them off. */
  nationalPrefix: RegExp | undefined
}

const plans = new Map<string, Plan | undefined>()

/** Undefined says nothing about the number, only that it is not as plain as that. */
export function readPlainNumber(text: string): PhoneNumber | undefined {
  if (!/^\+[1-9][0-9]{6,14}$/.test(text)) return undefined
  for (let codeEnd = 2; codeEnd <= 4; codeEnd++) {
    const code = text.slice(1, codeEnd)
    // No code begins with another one.
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

/** What the library's metadata answers beside what its types say. */
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
  // Where mobile numbers look like landlines they have no pattern of their own.
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
