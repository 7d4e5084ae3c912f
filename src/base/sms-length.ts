/**
 * The length of a text on the phone network, and the places where it is cut.
 *
 * A text in the GSM 7-bit alphabet (3GPP TS 23.038) has room for 160 characters in one message. One character outside
 * it makes the whole text UCS-2, with room for 70. A longer text is sent in segments with headers: 153 and 67. A
 * character of two units (`€`, an emoji) is never cut in half, so a segment may stay one unit short.
 */
export type SmsEncoding = 'gsm7' | 'ucs2'

export interface SmsLength {
  readonly encoding: SmsEncoding
  /** Septets of GSM-7, or 16-bit units of UCS-2. */
  readonly units: number
  /** The number that the carrier bills. */
  readonly segments: number
}

export const segmentUnits = {
  gsm7: { single: 160, joined: 153 },
  ucs2: { single: 70, joined: 67 },
} as const

const basicAlphabet =
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\u001bÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?' +
  '¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà'

const extensionAlphabet: Readonly<Record<number, string>> = {
  10: '\f',
  20: '^',
  40: '{',
  41: '}',
  47: '\\',
  60: '[',
  61: '~',
  62: ']',
  64: '|',
  101: '€',
}

const escapeCode = 0x1b

const septetsOf: ReadonlyMap<string, readonly number[]> = buildAlphabet()

function buildAlphabet(): Map<string, readonly number[]> {
  const septets = new Map<string, readonly number[]>()
  for (const [code, char] of [...basicAlphabet].entries()) septets.set(char, [code])
  septets.delete('\u001b')
  for (const [code, char] of Object.entries(extensionAlphabet)) {
    septets.set(char, [escapeCode, Number(code)])
  }
  return septets
}

/** The one or two septets of a character; undefined for a character outside the alphabet. */
export function gsm7Septets(char: string): readonly number[] | undefined {
  return septetsOf.get(char)
}

/** The different characters of a text that are outside the alphabet. */
export const notInGsm7 = (text: string): string[] => [
  ...new Set([...text].filter((char) => !septetsOf.has(char))),
]

export function measureSms(text: string): SmsLength {
  const { encoding, segments } = splitSms(text)
  let units = 0
  for (const char of text) units += unitsOf(char, encoding)
  return { encoding, units, segments: segments.length }
}

/** The encoding of a text on the phone network. */
export const smsEncodingOf = (text: string): SmsEncoding =>
  [...text].every((char) => septetsOf.has(char)) ? 'gsm7' : 'ucs2'

/** Cuts a text into segments of one message each. An empty text is one empty segment. */
export function splitSms(
  text: string,
  encoding = smsEncodingOf(text),
): { encoding: SmsEncoding; segments: readonly string[] } {
  const { single, joined } = segmentUnits[encoding]
  const whole = cut(text, encoding, single)
  return { encoding, segments: whole.length === 1 ? whole : cut(text, encoding, joined) }
}

function cut(text: string, encoding: SmsEncoding, room: number): string[] {
  const segments: string[] = []
  let segment = ''
  let used = 0
  for (const char of text) {
    const units = unitsOf(char, encoding)
    if (used + units > room) {
      segments.push(segment)
      segment = ''
      used = 0
    }
    segment += char
    used += units
  }
  segments.push(segment)
  return segments
}

function unitsOf(char: string, encoding: SmsEncoding): number {
  return encoding === 'gsm7' ? (septetsOf.get(char)?.length ?? 0) : char.length
}
