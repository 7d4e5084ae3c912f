/** Settings by country: one text for all countries, or texts by country. `false` is for countries that have none. */
import { isSupportedCountry } from 'libphonenumber-js/max'
import { isObject } from './json.ts'

export type ByCountry = string | Readonly<Record<string, string | false>>

/** True for the code of a country with numbers, e.g. `GB`. */
export const isCountry = (code: string): boolean => isSupportedCountry(code)

/** The text for a country; undefined if there is none. `country` is empty if none is known. */
export function textFor(given: ByCountry, country: string): string | undefined {
  if (typeof given === 'string') return given
  const own = Object.hasOwn(given, country) ? given[country] : given.default
  return own === false ? undefined : own
}

export function isByCountry(value: unknown): value is ByCountry {
  if (typeof value === 'string') return true
  return (
    isObject(value) &&
    Object.entries(value).every(
      ([key, text]) =>
        (key === 'default' || isCountry(key)) && (text === false || typeof text === 'string'),
    )
  )
}

export const textsOf = (given: ByCountry): string[] =>
  (typeof given === 'string' ? [given] : Object.values(given)).filter((text) => text !== false)
