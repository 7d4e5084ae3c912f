import { type ByCountry, textsOf } from '../../base/by-country.ts'
import { type OptOut, optOutIn } from '../../base/opt-out.ts'
import { type Receipt, unreadable } from '../../base/receipt.ts'
import { type Delivered, decodeText, tlv } from './pdu.ts'

/**
 * A delivery receipt inside deliver_sm or data_sm. SMPP 3.4 left its text to each vendor and added two optional parameters
 * later. The parameters count if they have a value, otherwise the usual text (`id:… sub:… dlvrd:… submit date:… done
 * date:… stat:DELIVRD err:000 text:…`, appendix B).
 */
export interface ReceiptForm {
  /** The base of ids in receipts, if it differs from the base in answers. */
  readonly receiptIds: 'same' | 'hex' | 'decimal'
  /** The sender of the messages, whose number is no recipient. */
  readonly from: ByCountry
}

/** States by the first letters of their names, which vendors shorten or write in full. Null: not final. */
const states: readonly (readonly [RegExp, Receipt['outcome'] | null])[] = [
  [/^DELIV/, 'delivered'],
  [/^(EXPIR|DELET|UNDEL|REJEC|FAIL)/, 'failed'],
  [/^(ENROUTE|ACCEP|UNKNOWN|SCHED|SKIP)/, null],
]

/** Texts of message_state by number (5.2.28, and 5.0 for 0 and 9). */
const stateNames = [
  ...['SCHEDULED', 'ENROUTE', 'DELIVRD', 'EXPIRED', 'DELETED'],
  ...['UNDELIV', 'ACCEPTD', 'UNKNOWN', 'REJECTD', 'SKIPPED'],
]

/** Undefined for messages of phones and for states that are not final. */
export function readReceipt(delivered: Delivered, form: ReceiptForm): Receipt | undefined {
  const text = textOf(delivered)
  const id = idOf(delivered, text)
  if (!isReceipt(delivered, id, text)) return undefined
  const named = [stateNames[delivered.tlvs.get(tlv.messageState)?.[0] ?? -1], stateIn(text)]
  const read = named.flatMap((name = '') => {
    const known = states.find(([form]) => form.test(name))
    return known ? [{ name, outcome: known[1] }] : []
  })
  const final = read.find(({ outcome }) => outcome !== null)
  if (!final?.outcome) return read.length > 0 ? undefined : unreadable
  const recipients = recipientsOf(delivered, form)
  if (!id || (isUnmarked(delivered) && !recipients)) return unreadable
  const code = /\berr:\s*([0-9a-z]{1,8})\b/i.exec(text)?.[1]
  const { name, outcome } = final
  return {
    ...idsOf(id, form.receiptIds),
    ...(recipients ? { recipients } : {}),
    outcome,
    detail: code && outcome === 'failed' ? `${name} ${code}` : name,
  }
}

/** The opt-out of a phone that answers a message, such as STOP. */
export function readOptOut(delivered: Delivered): OptOut | undefined {
  const [number = ''] = delivered.addresses
  return isUnmarked(delivered) ? optOutIn(number, textOf(delivered)) : undefined
}

/**
 * Bits 2 to 5 of esm_class: 1 is a delivery receipt. Some SMSCs set none. Such a packet is a receipt if it has the form of
 * one. A person can write a text of that form, so it counts only for the number that it names.
 */
function isReceipt(delivered: Delivered, id: string | undefined, text: string): boolean {
  const hasState = delivered.tlvs.has(tlv.messageState) || stateIn(text) !== undefined
  return (delivered.esmClass & 0x3c) === 0x04 || (isUnmarked(delivered) && !!id && hasState)
}

const isUnmarked = ({ esmClass }: Delivered) => (esmClass & 0x3c) === 0

function textOf({ tlvs, content, dataCoding }: Delivered): string {
  const bytes = tlvs.get(tlv.messagePayload) ?? content
  const ucs2 = 0x08
  // The zero byte shows UCS-2 with a wrong data coding.
  const isUcs2 = dataCoding === ucs2 || (bytes.length > 1 && bytes[0] === 0)
  if (!isUcs2) return bytes.toString('latin1')
  return Buffer.from(bytes.subarray(0, bytes.length & ~1))
    .swap16()
    .toString('utf16le')
}

function idOf({ tlvs }: Delivered, text: string): string | undefined {
  const ofParameter = decodeText(tlvs.get(tlv.receiptedMessageId) ?? Buffer.alloc(0)).trim()
  return ofParameter || /\bid:\s*(\S+?)(?=\s|sub:|$)/i.exec(text)?.[1]
}

const stateIn = (text: string) => /\bstat:\s*([A-Z]{1,20})/i.exec(text)?.[1]?.toUpperCase()

/**
 * The id by the settings, and another form: some SMSCs write some of their receipts in the base of their answers. With
 * one base, the other form is the id as written, which workers of earlier builds stored.
 */
function idsOf(id: string, receiptIds: ReceiptForm['receiptIds']) {
  const messageId = canonicalId(id, baseOf[receiptIds])
  const asAnswer = receiptIds === 'same' ? id : canonicalId(id, answerBaseOf[receiptIds])
  return asAnswer === messageId ? { messageId } : { messageId, otherMessageId: asAnswer }
}

/** Numbers of the receipt that can be the recipient's: complete ones, except the sender's. */
function recipientsOf({ addresses }: Delivered, { from }: ReceiptForm) {
  const senders = textsOf(from).map(withoutZeros)
  const numbers = addresses
    .map(withoutZeros)
    .filter((digits) => /^\d{6,20}$/.test(digits) && !senders.includes(digits))
  return numbers.length > 0 ? [...new Set(numbers)] : undefined
}

const withoutZeros = (number: string) => number.replace(/^\+?0*/, '')

const baseOf = { same: undefined, hex: 16, decimal: 10 } as const
const answerBaseOf = { same: undefined, hex: 10, decimal: 16 } as const

/** The id of an answer, in the form in which receipts are matched. */
export const answerId = (id: string, receiptIds: ReceiptForm['receiptIds']) =>
  canonicalId(id, answerBaseOf[receiptIds])

/**
 * One form for all spellings of an id: without the zeros before it, and in small letters. With the setting `receiptIds`,
 * numbers are in decimal.
 */
function canonicalId(id: string, base: 10 | 16 | undefined): string {
  const spelled = id.toLowerCase().replace(/^0+(?=.)/, '')
  // No SMSC has such long numbers, and the time to read one grows faster than its length.
  if (base === undefined || id.length > 64) return spelled
  const digits = base === 16 ? /^[0-9a-f]+$/ : /^[0-9]+$/
  return digits.test(spelled) ? BigInt(base === 16 ? `0x${spelled}` : spelled).toString() : spelled
}
