/**
 * Reads phone numbers as people write them, and groups their digits. The service decides whether a number is valid; this
 * module refuses nothing.
 */
import { callingCodeIn, callingCodeOf } from './calling-codes.ts'
import { asciiDigits, digitsIn } from './readings.ts'

/** Trunk prefix: dialled within a country, left out from abroad. `0` for countries that are not listed. */
const trunkPrefixes: Readonly<Record<string, RegExp>> = {
  1: /^1/,
  7: /^8/,
  36: /^06/,
  370: /^[08]/,
  375: /^(80?|0)/,
  993: /^8/,
  // Italian numbers keep their zero from abroad.
  39: /^(?!)/,
  225: /^(?!)/,
  229: /^(?!)/,
  241: /^(?!)/,
  242: /^(?!)/,
  378: /^(?!)/,
}
const usualTrunkPrefix = /^0/

/** Usual sizes of the groups of a mobile number. Remaining digits join the last group. */
const groupSizes: Readonly<Record<string, readonly number[]>> = {
  1: [3, 3, 4],
  7: [3, 3, 2, 2],
  33: [1, 2, 2, 2, 2],
  44: [4, 6],
  45: [2, 2, 2, 2],
  55: [2, 5, 4],
  65: [4, 4],
  81: [2, 4, 4],
  82: [2, 4, 4],
  86: [3, 4, 4],
  91: [5, 5],
  852: [4, 4],
  853: [4, 4],
}
const usualGroupSizes = [3, 3, 3]

/** Whether a text has only characters of phone numbers. Other texts are sent unchanged, and the service refuses them. */
const isNumberLike = (text: string) => /^\+?[\d\s().-]*$/.test(text)

/** Whether a number has its calling code, after `+` or `00`. */
export const isInternational = (text: string) => /^\s*(\+|00)/.test(asciiDigits(text))

/**
 * The number in E.164 if its country is known from its `+` or from `country` (ISO 3166, or empty). Otherwise the number
 * unchanged: the service may have a default country.
 */
export function toE164(written: string, country: string): string {
  const text = asciiDigits(written).trim().replace('(0)', '')
  if (!isNumberLike(text)) return text
  const digits = digitsIn(text)
  if (text.startsWith('+')) return `+${digits}`
  if (text.startsWith('00')) return `+${digits.slice(2)}`
  const code = callingCodeOf(country)
  if (!code || digits === '') return text
  return `+${code}${withoutOwnCode(digits, code).replace(trunkPrefixOf(code), '')}`
}

/** Removes a calling code that was typed without `+`. */
function withoutOwnCode(digits: string, code: string): string {
  const length = groupSizes[code]?.reduce((sum, size) => sum + size)
  const hasCode = digits.startsWith(code) && digits.length === code.length + (length ?? Infinity)
  return hasCode ? digits.slice(code.length) : digits
}

/** The number in groups that are easy to read. A text that is not a number stays unchanged. */
export function grouped(written: string, country: string): string {
  const text = asciiDigits(written)
  if (!isNumberLike(text)) return written
  const digits = digitsIn(text)
  if (text.startsWith('+')) {
    const code = callingCodeIn(digits)
    if (!code) return `+${digits}`
    return `+${[code, ...groupsOf(digits.slice(code.length), code)].join(' ')}`
  }
  const code = callingCodeOf(country)
  if (!code || text.startsWith('00')) return written
  const [trunk = ''] = trunkPrefixOf(code).exec(digits) ?? []
  const [first = '', ...rest] = groupsOf(digits.slice(trunk.length), code)
  return [trunk + first, ...rest].join(' ')
}

function groupsOf(digits: string, code: string): string[] {
  const sizes = groupSizes[code] ?? usualGroupSizes
  const groups: string[] = []
  let start = 0
  for (const [index, size] of sizes.entries()) {
    const end = index === sizes.length - 1 ? digits.length : start + size
    if (start < digits.length) groups.push(digits.slice(start, end))
    start = end
  }
  return groups
}

const trunkPrefixOf = (code: string) => trunkPrefixes[code] ?? usualTrunkPrefix

/** The first country of `among` with the calling code of this international number. */
export function countryOf(written: string, among: readonly string[]): string | undefined {
  const code = callingCodeIn(internationalDigits(written))
  return among.find((country) => callingCodeOf(country) === code)
}

/** An international number without its calling code, for a change of the country. */
export function withoutCallingCode(written: string): string {
  if (!isInternational(written)) return written
  const digits = internationalDigits(written)
  return digits.slice(callingCodeIn(digits)?.length ?? 0)
}

const internationalDigits = (written: string) => toE164(written, '').slice(1)
