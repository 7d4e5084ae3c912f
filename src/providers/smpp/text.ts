import { gsm7Septets, type SmsEncoding, smsEncodingOf, splitSms } from '../../base/sms-length.ts'

/**
 * The alphabet that an SMSC reads with data coding 0. The standard lets each SMSC choose it. With `latin1` and `ascii`,
 * the SMSC turns the text into the alphabet of phones. `ucs2`: data coding 0 is not used.
 */
export const alphabets = ['gsm', 'latin1', 'ascii', 'ucs2'] as const

type Alphabet = (typeof alphabets)[number]

/** A text, encoded as the contents of one or more submit_sm. */
export interface EncodedText {
  readonly dataCoding: number
  /** Several if the text is cut. Each part then begins with a header by which phones join them. */
  readonly contents: readonly Buffer[]
}

const dataCodings = { gsm7: 0x00, ucs2: 0x08 } as const

/** The parts of a text, as phones count them. */
export const cutText = (text: string, alphabet: Alphabet) =>
  splitSms(text, encodingOf(text, alphabet))

/** `reference` separates the parts of this text from parts of another text to the same phone. */
export function encodeSegments(text: string, reference: number, alphabet: Alphabet): EncodedText {
  const { encoding, segments } = cutText(text, alphabet)
  const contents = segments.map((segment, index) => {
    const content = encodeText(segment, encoding, alphabet)
    if (segments.length === 1) return content
    const header = Buffer.from([5, 0, 3, reference & 0xff, segments.length, index + 1])
    return Buffer.concat([header, content])
  })
  return { dataCoding: dataCodings[encoding], contents }
}

/** The uncut text, for an SMSC that cuts it. */
export function encodeWhole(text: string, alphabet: Alphabet): EncodedText {
  const encoding = encodingOf(text, alphabet)
  return { dataCoding: dataCodings[encoding], contents: [encodeText(text, encoding, alphabet)] }
}

const highestCode = { gsm: Number.POSITIVE_INFINITY, latin1: 0xff, ascii: 0x7f, ucs2: -1 } as const

/** UCS-2 for a text that phones or the SMSC's alphabet can't show otherwise. */
function encodingOf(text: string, alphabet: Alphabet): SmsEncoding {
  const isInAlphabet = [...text].every((char) => char.charCodeAt(0) <= highestCode[alphabet])
  return isInAlphabet ? smsEncodingOf(text) : 'ucs2'
}

/** GSM-7 with one septet per byte, as SMPP carries it, or one byte per character. The SMSC packs them. */
function encodeText(text: string, encoding: SmsEncoding, alphabet: Alphabet): Buffer {
  if (encoding === 'ucs2') return Buffer.from(text, 'utf16le').swap16()
  if (alphabet !== 'gsm') return Buffer.from(text, 'latin1')
  return Buffer.from([...text].flatMap((char) => gsm7Septets(char) ?? []))
}
