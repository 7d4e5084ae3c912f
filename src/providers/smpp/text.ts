import { gsm7Septets, type SmsEncoding, splitSms } from '../../base/sms-length.ts'

/** A text, encoded as the contents of one or more submit_sm. */
export interface EncodedText {
  readonly dataCoding: number
  /** Several if the text is cut. Each part then begins with a header by which phones join them. */
  readonly contents: readonly Buffer[]
}

const dataCodings = { gsm7: 0x00, ucs2: 0x08 } as const

/** `reference` separates the parts of this text from parts of another text to the same phone. */
export function encodeSegments(text: string, reference: number): EncodedText {
  const { encoding, segments } = splitSms(text)
  const contents = segments.map((segment, index) => {
    const content = encodeText(segment, encoding)
    if (segments.length === 1) return content
    const header = Buffer.from([5, 0, 3, reference & 0xff, segments.length, index + 1])
    return Buffer.concat([header, content])
  })
  return { dataCoding: dataCodings[encoding], contents }
}

/** The uncut text, for an SMSC that cuts it. */
export function encodeWhole(text: string): EncodedText {
  const { encoding } = splitSms(text)
  return { dataCoding: dataCodings[encoding], contents: [encodeText(text, encoding)] }
}

/** GSM-7 with one septet per byte, as SMPP carries it. The SMSC packs them. */
function encodeText(text: string, encoding: SmsEncoding): Buffer {
  if (encoding === 'gsm7') return Buffer.from([...text].flatMap((char) => gsm7Septets(char) ?? []))
  return Buffer.from(text, 'utf16le').swap16()
}
