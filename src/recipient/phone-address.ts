/** Phone numbers as a kind of address. */
import {
  type CountryCode,
  getCountries,
  getCountryCallingCode,
  parsePhoneNumberFromString,
} from 'libphonenumber-js/max'
import type { AddressKind, InvalidBecause, Place, ReadAddress } from './address-kind.ts'
import {
  createPhoneReader,
  isNationalNumber,
  isNumberText,
  mainCountryOf,
  mayBeOf,
  readAnyNumber,
  readPlainNumber,
} from './phone-number.ts'
import { asciiDigitsOf, plainText } from './plain-text.ts'

export const phoneNumber: AddressKind = {
  insteadOf: 'is_number',

  isWritten: (text) => isNumberText(plainText(text, 'tel')),

  createReader(rules, typesByDefault) {
    const readPhoneNumber = createPhoneReader(rules.defaultCountry, rules.allow)
    const countries = rules.countries && new Set(rules.countries)
    const isAllowedIn = (country: string, to: string) =>
      !countries || countries.has(country) || [...countries].some((each) => mayBeOf(each, to))
    const types: ReadonlySet<string> = new Set(rules.types ?? typesByDefault)

    function problemOf({ to, country, type }: NonNullable<ReturnType<typeof readPhoneNumber>>) {
      // Not a refusal by the operator's settings: such a number can't get messages.
      if (type === undefined) return { kind: 'invalid', because: 'no_number' } as const
      if (!rules.types && !types.has(type)) return { kind: 'invalid', because: 'type' } as const
      if (!isAllowedIn(country, to)) return { kind: 'not_allowed', because: 'country' } as const
      return types.has(type) ? undefined : ({ kind: 'not_allowed', because: 'type' } as const)
    }

    return function readNumber(written): ReadAddress | InvalidBecause {
      const text = plainText(written, 'tel')
      const number = readPhoneNumber(text)
      if (!number) {
        return !rules.defaultCountry && isNationalNumber(text) ? 'no_country' : 'no_number'
      }
      const { to, country } = number
      const problem = problemOf(number)
      return problem ? { to, country, problem } : { to, country }
    }
  },

  /** At least four digits are hidden, even in a short number. */
  mask(to) {
    const head = Math.min(5, Math.max(2, to.length - 8))
    const tail = Math.min(4, Math.max(0, to.length - head - 4))
    return `${to.slice(0, head)}****${to.slice(to.length - tail)}`
  },
  maskSql: (column) =>
    `left(${column}, least(5, greatest(2, length(${column}) - 8))) || '****' || right(${column}, least(4, greatest(0, length(${column}) - 6)))`,

  hasCountries: true,
  placeOf,
  prefixOf,
  mailboxOf: (to) => to,
  blockOf: prefixOf,

  isNamedIn(text, spellings) {
    const digits = asciiDigitsOf(text)
    return spellings.some((number) => digits.includes(tellingDigitsOf(number)))
  },
  isNamedInSql: (text, column) =>
    `strpos(regexp_replace(${text}, '[^0-9]', '', 'g'), right(${column}, 8)) > 0`,
}

/** The country is the one that the reader finds. */
function placeOf(to: string): Place {
  const plain = readPlainNumber(to)
  if (plain) {
    const code = getCountryCallingCode(plain.country as CountryCode)
    return { country: plain.country, nationalNumber: to.slice(1 + code.length) }
  }
  const number = parsePhoneNumberFromString(to)
  if (!number) return { country: '' }
  const { nationalNumber } = number
  return { country: number.country ?? mainCountryOf(number), nationalNumber }
}

function prefixOf(to: string): string {
  return to.slice(0, -4)
}

/**
 * The last eight digits, because people often leave out the country code. A national number can be shorter: seven
 * digits in Iceland, five on the Falkland Islands.
 */
function tellingDigitsOf(number: string): string {
  const national = parsePhoneNumberFromString(number)?.nationalNumber
  return (national ?? asciiDigitsOf(number)).slice(-8)
}

/** Every calling code of the world. */
const callingCodes = [...new Set(getCountries().map((country) => getCountryCallingCode(country)))]

/**
 * The numbers in E.164 that an SMSC may mean: the digits with their country code first, then with each country code before
 * them. `isFirstSure`: the first one is a number that gets messages.
 */
export function numbersMeantBy(written: string): { numbers: string[]; isFirstSure: boolean } {
  const digits = written.replaceAll(/\D/g, '')
  const international = `+${digits.replace(/^00/, '')}`
  const national = written.startsWith('+') ? '' : digits.replace(/^0+/, '')
  const others = national === '' ? [] : callingCodes.map((code) => `+${code}${national}`)
  return {
    numbers: [international, ...others].filter((to) => to.length >= 8 && to.length <= 16),
    isFirstSure: readAnyNumber(international)?.type !== undefined,
  }
}
