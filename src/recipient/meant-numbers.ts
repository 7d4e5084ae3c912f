import { getCountries, getCountryCallingCode } from 'libphonenumber-js/max'
import { readAnyNumber } from './phone-number.ts'

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
