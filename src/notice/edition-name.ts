/**
 * The name of an edition: its locale, and the country if it is for numbers of one country (`en`, `en.IN`). Files are called
 * `<channel>.<edition>.<txt|html>`.
 */
import { isCountry } from '../base/by-country.ts'
import { type Channel, channels } from '../base/channel.ts'
import { canonicalLocale } from '../base/nearest-locale.ts'
import { addressKindOf, isChannel } from '../recipient/channels.ts'

export function partsOf(edition: string): { locale: string; country: string | undefined } {
  const [locale = '', country] = edition.split('.')
  return { locale, country }
}

/** The parts of a file's name, or the problem in it. */
export function readFileName(
  file: string,
): { channel: Channel; edition: string; ending: string } | { problem: string } {
  const [, channel = '', edition = '', ending = ''] =
    /^(\w+)\.([\w-]+(?:\.[A-Z]{2})?)\.(txt|html)$/.exec(file) ?? []
  const { locale, country } = partsOf(edition)
  if (!isChannel(channel) || canonicalLocale(locale) === undefined) {
    const names = channels.join('|')
    return { problem: `is not named <${names}>.<locale>.<txt|html>, or <locale>.<country>` }
  }
  if (country === undefined) return { channel, edition, ending }
  if (!isCountry(country)) {
    return { problem: `is for ${country}, which is not the code of a country` }
  }
  return addressKindOf(channel).hasCountries
    ? { channel, edition, ending }
    : { problem: `is for ${country}, and ${channel} has no countries` }
}
