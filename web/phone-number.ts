/**
 * Phone numbers as people write them, read for sending and grouped for reading. Whether a number exists is for
 * the service to say; nothing is refused here.
 */
import { callingCodeIn, callingCodeOf } from './calling-codes.ts'
import { asciiDigits, digitsIn } from './readings.ts'

/** What a person dials before a number within the country and leaves out from abroad; `0` where nothing is named. */
const trunkPrefixes: Readonly<Record<string, RegExp>> = {
  1: /^1/,
  7: /^8/,
  36: /^06/,
  370: /^[08]/,
  375: /^(80?|0)/,
  993: /^8/,
  // Here a number keeps its zero from abroad.
  39: /^(?!)/,
  225: /^(?!)/,
  229: /^(?!)/,
  241: /^(?!)/,
  242: /^(?!)/,
  378: /^(?!)/,
}
const usualTrunkPrefix = /^0/

/** Sizes of the groups of a mobile number, where they are usual; what is left over joins the last group. */
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

/** What people write a number with; anything else is sent as it is, and the service answers it. */
const isNumberLike = (text: string) => /^\+?[\d\s().-]*$/.test(text)

/** Written for the whole world, with `+` or `00`. */
export const isInternational = (text: string) => /^\s*(\+|00)/.test(asciiDigits(text))

/**
 * In E.164 where the country is known, by the number's own `+` or by `country` (ISO 3166, or empty). Else as it
 * was written: the service may have a country of its own.
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

/** A number that has its calling code already, only without the `+`. */
function withoutOwnCode(digits: string, code: string): string {
  const length = groupSizes[code]?.reduce((sum, size) => sum + size)
  const hasCode = digits.startsWith(code) && digits.length === code.length + (length ?? Infinity)
  return hasCode ? digits.slice(code.length) : digits
}

/** As it is easy to read. What is no number stays as it was written. */
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

/** The first of `among` that has the calling code of an international number. */
export function countryOf(written: string, among: readonly string[]): string | undefined {
  const code = callingCodeIn(internationalDigits(written))
  return among.find((country) => callingCodeOf(country) === code)
}

/** An international number without its calling code, for another country to be chosen. */
export function withoutCallingCode(written: string): string {
  if (!isInternational(written)) return written
  const digits = internationalDigits(written)
  return digits.slice(callingCodeIn(digits)?.length ?? 0)
}

const internationalDigits = (written: string) => toE164(written, '').slice(1)
