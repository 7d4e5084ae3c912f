import { domainToUnicode } from 'node:url'
import { parsePhoneNumberFromString } from 'libphonenumber-js/max'
import type { Channel } from '../base/channel.ts'

/** True if a text contains a recipient in any spelling. `spellings`: the normal form and other known forms. */
export function isNamedIn(text: string, channel: Channel, spellings: readonly string[]): boolean {
  if (channel === 'email') {
    const folded = fold(text)
    return spellings
      .flatMap((address) => [address, inUnicode(address)])
      .some((address) => folded.includes(fold(address)))
  }
  const digits = asciiDigitsOf(text)
  return spellings.some((number) => digits.includes(tellingDigitsOf(number)))
}

/**
 * The last eight digits, because people often leave out the country code. A national number can be shorter: seven
 * digits in Iceland, five on the Falkland Islands.
 */
function tellingDigitsOf(number: string): string {
  const national = parsePhoneNumberFromString(number)?.nationalNumber
  return (national ?? asciiDigitsOf(number)).slice(-8)
}

/** Removes invisible characters and spaces, which can hide an address. */
function fold(text: string): string {
  const seen = text.normalize('NFKC').replaceAll(/[\s\p{Cf}]/gu, '')
  return seen.toLowerCase().normalize('NFKC').replaceAll('。', '.')
}

function inUnicode(address: string): string {
  const at = address.lastIndexOf('@') + 1
  return address.slice(0, at) + domainToUnicode(address.slice(at))
}

function asciiDigitsOf(text: string): string {
  return text
    .normalize('NFKC')
    .replaceAll(/\P{Nd}/gu, '')
    .replaceAll(/\p{Nd}/gu, asciiDigitOf)
}

/** The ten digits of a script are consecutive in Unicode. */
function asciiDigitOf(digit: string): string {
  const point = digit.codePointAt(0) ?? 0
  let zero = point
  while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero -= 1
  return String((point - zero) % 10)
}
