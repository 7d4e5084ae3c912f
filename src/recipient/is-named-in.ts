import { domainToUnicode } from 'node:url'
import type { Channel } from '../base/channel.ts'

/** Whether a text holds a recipient in words, however it is spelled there. `spellings`: the normal form, and others known. */
export function isNamedIn(text: string, channel: Channel, spellings: readonly string[]): boolean {
  if (channel === 'email') {
    const folded = fold(text)
    return spellings
      .flatMap((address) => [address, inUnicode(address)])
      .some((address) => folded.includes(fold(address)))
  }
  const digits = asciiDigitsOf(text)
  // Without the country's code, as people write it down.
  return spellings.some((number) => digits.includes(asciiDigitsOf(number).slice(-8)))
}

/** Without what is not seen, or stands between the parts of an address that is not to be found. */
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

/** The ten digits of a script follow each other in Unicode. */
function asciiDigitOf(digit: string): string {
  const point = digit.codePointAt(0) ?? 0
  let zero = point
  while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero -= 1
  return String((point - zero) % 10)
}
