/**
 * Reads phone numbers as people write them, and groups their digits. The service decides whether a number is valid; this
 * module refuses nothing.
 */
import { callingCodeIn, callingCodeOf } from './calling-codes.ts'
import { asciiDigits, digitsIn } from './readings.ts'

/**
 * Trunk prefix: digits that people dial inside a country and leave out from abroad. For countries that are not listed,
 * it is `0`. Empty: every digit belongs to the number. A test compares these tables with the metadata of the service.
 */
const trunkPrefixes: Readonly<Record<string, string>> = {
  1: '1',
  7: '8',
  36: '06',
  // Prefixes of mobile numbers in Mexico until 2019. People and phone books still have them.
  52: '(01|04[45]|1)(?=.{10}$)',
  370: '[08]',
  375: '80?|0',
  692: '1',
  993: '8',
  39: '',
  225: '',
  226: '',
  229: '',
  241: '',
  242: '',
  247: '',
  378: '',
  992: '',
}

/**
 * Calling codes of countries whose mobile numbers may begin with that code, by the greatest length of such a number. In
 * other countries, digits that begin with the calling code are an international number without its `+`.
 */
const beginWithOwnCode: readonly string[] = [
  '683',
  '247 500',
  '298 299 376 508',
  '220 241 680 960',
  '45 47 53 95 216 222 377 502 503 506 855 965 968 976',
  '27 66 84 233 963 992 994 996 998',
  '7 39 91',
  '55',
]
const shortestOwn = 4

/** In these countries, a number of this length that begins with `00` is a national one. */
const doubleZeros: Readonly<Record<string, number>> = { 992: 9 }

/** Digits that people dial before an international number, where they are not `00`. */
const exitCodes: Readonly<Record<string, string>> = {
  1: '011',
  7: '810',
  61: '0011',
  81: '010',
  375: '810',
  992: '810',
  993: '810',
}

/** Countries of calling code 1 with one area code, which people leave out. */
const areaCodes =
  'AG268AI264AS684BB246BM441BS242DM767GD473GU671KN869KY345LC758MP670MS664SX721TC649TT868VC784VG284VI340'

/** Usual sizes of the groups of a mobile number. Remaining digits join the last group. */
const groupSizes: Readonly<Record<string, string>> = {
  1: '334',
  7: '3322',
  33: '12222',
  44: '46',
  45: '2222',
  55: '254',
  65: '44',
  81: '244',
  82: '244',
  86: '344',
  91: '55',
  852: '44',
  853: '44',
}

/** Whether a text has only characters of phone numbers. Other texts are sent unchanged, and the service refuses them. */
const isNumberLike = (text: string) =>
  // A slash stands after an area code. Behind the number it would name a second one.
  /^\+?([\d\s().-]|\/(?=(\D*\d){4}))*$/.test(text)

/** Whether a number has its calling code, after `+`, `00` or the exit code of the country. */
export function isInternational(written: string, country: string): boolean {
  const text = plainNumber(written)
  const digits = digitsIn(text)
  const isNational = doubleZeros[callingCodeOf(country) ?? ''] === digits.length
  return text.startsWith('+') || (exitCodeOf(country).test(digits) && !isNational)
}

const exitCodeOf = (country: string) =>
  new RegExp(`^(${exitCodes[callingCodeOf(country) ?? ''] ?? '00'}|00)`)

/** Contacts and links of pages write `tel:` before a number, and letterheads brackets around the calling code. */
const plainNumber = (written: string) =>
  asciiDigits(written)
    .trim()
    .replace(/^tel:/i, '')
    .replace(/^\((?=\+|00)/, '')
    .replace(/^\+ /, '+')

/**
 * The number in E.164 if its country is known from its `+` or from `country` (ISO 3166, or empty). Otherwise its
 * digits: it may be a number of the default country of the service. A text that is not a number stays unchanged.
 */
export function toE164(written: string, country: string): string {
  const text = plainNumber(written).replace('(0)', '')
  if (!isNumberLike(text)) return text
  const digits = digitsIn(text)
  if (text.startsWith('+')) return `+${digits}`
  if (isInternational(text, country)) return `+${digits.replace(exitCodeOf(country), '')}`
  const code = callingCodeOf(country)
  if (!code || digits === '') return digits
  // A number of North America. Before it, Mexicans would write 00.
  if (code === '52' && /^1\d{10}$/.test(digits)) return digits
  const [, area = ''] = digits.length === 7 ? areaCodes.split(country) : []
  return `+${code}${area.slice(0, 3)}${withoutOwnCode(digits, code).replace(trunkPrefixOf(code), '')}`
}

/** Removes a calling code that was typed or filled in without `+`. */
function withoutOwnCode(digits: string, code: string): string {
  const index = beginWithOwnCode.findIndex((codes) => codes.split(' ').includes(code))
  const longest = index < 0 ? 0 : index + shortestOwn
  return digits.startsWith(code) && digits.length > longest ? digits.slice(code.length) : digits
}

/** The number in groups that are easy to read. A text that is not a number stays unchanged. */
export function grouped(written: string, country: string): string {
  const text = plainNumber(written)
  if (!isNumberLike(text)) return written
  const digits = digitsIn(text)
  if (text.startsWith('+')) {
    const code = callingCodeIn(digits)
    if (!code) return `+${digits}`
    return `+${[code, ...groupsOf(digits.slice(code.length), code)].join(' ')}`
  }
  const code = callingCodeOf(country)
  if (!code || isInternational(text, country)) return written
  const [trunk = ''] = trunkPrefixOf(code).exec(digits) ?? []
  const [first = '', ...rest] = groupsOf(digits.slice(trunk.length), code)
  return [trunk + first, ...rest].join(' ')
}

/**
 * The place of the caret in a number that was grouped anew: after the digits that were before it. `isForward`: also after
 * the space, so that Delete reaches the digit behind it.
 */
export function caretIn(text: string, before: string, isForward: boolean): number {
  const { length } = asciiDigits(before).replace(/[^+\d]/g, '')
  const start = new RegExp(`^([^+\\d]*[+\\d]){${length}}${isForward ? ' ?' : ''}`)
  return start.exec(text)?.[0].length ?? text.length
}

function groupsOf(digits: string, code: string): string[] {
  const sizes = [...(groupSizes[code] ?? '333')]
  const groups = sizes.map((size, index) => (sizes[index + 1] ? `(.{0,${size}})` : '(.*)'))
  return new RegExp(groups.join('')).exec(digits)?.slice(1).filter(Boolean) ?? []
}

const trunkPrefixOf = (code: string) => new RegExp(`^(${trunkPrefixes[code] ?? '0'})`)

/** The first country of `among` with the calling code of this international number. */
export function countryOf(written: string, among: readonly string[]): string | undefined {
  const code = callingCodeIn(internationalDigits(written, among[0]))
  return among.find((country) => callingCodeOf(country) === code)
}

/** An international number without its calling code, for a change of the country. */
export function withoutCallingCode(written: string, country: string): string {
  if (!isInternational(written, country)) return written
  const digits = internationalDigits(written, country)
  return digits.slice(callingCodeIn(digits)?.length ?? 0)
}

const internationalDigits = (written: string, country = '') => toE164(written, country).slice(1)
