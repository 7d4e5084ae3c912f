/**
 * A recipient as it was copied: contacts, chats and pages add invisible characters, spaces at the ends, and the scheme of
 * a link. None of them belongs to a number or address.
 */
export function plainText(text: string, scheme: 'tel' | 'mailto'): string {
  const visible = text.replaceAll(/[\p{Cf}\p{Variation_Selector}]/gu, '').trim()
  return visible.toLowerCase().startsWith(`${scheme}:`) ? visible.slice(scheme.length + 1) : visible
}

/** Removes what can hide an address in a text: invisible characters, spaces, other forms of letters. */
export function foldedText(text: string): string {
  const seen = text.normalize('NFKC').replaceAll(/[\s\p{Cf}]/gu, '')
  return seen.toLowerCase().normalize('NFKC').replaceAll('。', '.')
}

/** The digits of a text. Digits of other scripts become ASCII. */
export function asciiDigitsOf(text: string): string {
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
