import type { Receipt } from '../../base/receipt.ts'
import { type Delivered, decodeText, tlv } from './pdu.ts'

/**
 * A delivery receipt inside deliver_sm. SMPP 3.4 left its text to each vendor and added two optional parameters later.
 * This function reads the parameters if they exist, otherwise the usual text (`id:… sub:… dlvrd:… submit date:… done
 * date:… stat:DELIVRD err:000 text:…`, appendix B).
 */
export type ReceiptIdFormat = 'same' | 'hex' | 'decimal'

const outcomes: Readonly<Record<string, Receipt['outcome']>> = {
  DELIVRD: 'delivered',
  EXPIRED: 'failed',
  DELETED: 'failed',
  UNDELIV: 'failed',
  REJECTD: 'failed',
}

/** Texts of message_state by number. Other states are not final. */
const states = ['', 'ENROUTE', 'DELIVRD', 'EXPIRED', 'DELETED', 'UNDELIV', 'ACCEPTD', '', 'REJECTD']

/** Undefined for ordinary messages, states that are not final, and receipts without an id. */
export function readReceipt(delivered: Delivered, format: ReceiptIdFormat): Receipt | undefined {
  // Bits 2 to 5 of esm_class: 1 is a delivery receipt.
  if ((delivered.esmClass & 0x3c) !== 0x04) return undefined
  const { tlvs } = delivered
  const text = (tlvs.get(tlv.messagePayload) ?? delivered.content).toString('latin1')
  const idTlv = tlvs.get(tlv.receiptedMessageId)
  const id = idTlv ? decodeText(idTlv) : /\bid:\s*(\S+)/i.exec(text)?.[1]
  const state = states[tlvs.get(tlv.messageState)?.[0] ?? 0] || stateOf(text)
  const outcome = Object.hasOwn(outcomes, state) ? outcomes[state] : undefined
  if (!id || !outcome) return undefined
  const code = /\berr:\s*([0-9a-z]{1,8})\b/i.exec(text)?.[1]
  return {
    messageId: canonicalId(id, format === 'hex' ? 16 : format === 'decimal' ? 10 : undefined),
    outcome,
    detail: code && outcome === 'failed' ? `${state} ${code}` : state,
  }
}

function stateOf(text: string): string {
  return (/\bstat:\s*([A-Z]+)/i.exec(text)?.[1] ?? '').toUpperCase().slice(0, 7)
}

/**
 * Some SMSCs answer a submit with a decimal id and write receipts in hexadecimal, or the reverse. With the setting
 * `receiptIds`, both ids are stored in decimal. An id that is not a number stays unchanged.
 */
export function canonicalId(id: string, base: 10 | 16 | undefined): string {
  // No SMSC has such long numbers, and the time to read one grows faster than its length.
  if (base === undefined || id.length > 64) return id
  const digits = base === 16 ? /^[0-9a-f]+$/i : /^[0-9]+$/
  return digits.test(id) ? BigInt(base === 16 ? `0x${id}` : id).toString() : id
}
