import { createHash, createHmac } from 'node:crypto'
import { isObject, parseObject } from '../../base/json.ts'
import type { ParsedReceipts, ReceiptReader, ReceiptRequest } from '../../base/receipt.ts'
import { isSameSecret } from '../../crypto/same-secret.ts'
import { forged, malformed, outcomesBy, readingOf, understood } from '../receipt-readers.ts'

/** Telegram repeats a report for less than a day. An older one may be a copy. */
const longestAgeMs = 86_400_000

export function createReceiptReader({ token }: { token: string }): ReceiptReader {
  const key = createHash('sha256').update(token).digest()
  return {
    // A report is an object of some 500 bytes.
    maxBodyBytes: 16_384,
    mayBeGenuine: ({ headers }) => typeof headers['x-request-signature'] === 'string',
    parse: (request) => parseReport(request, key),
  }
}

const outcomeOf = outcomesBy({
  delivered: 'delivered read',
  failed: 'expired revoked',
  notFinal: 'sent',
})

function parseReport(request: ReceiptRequest, key: Buffer): ParsedReceipts {
  if (!isSigned(request, key)) return forged
  const report = parseObject(request.rawBody.toString())
  if (typeof report?.request_id !== 'string') return malformed
  const { request_id: messageId, payload, delivery_status: delivery, is_refunded } = report
  // A report about a code that a person entered has no news of its delivery.
  if (!isObject(delivery)) return understood([])
  const { status, updated_at: seconds } = delivery
  const outcome = outcomeOf(status)
  const reading = readingOf(outcome, {
    messageId,
    noticeId: typeof payload === 'string' && payload !== '' ? payload : undefined,
    at: Number.isSafeInteger(seconds) ? Number(seconds) * 1_000 : undefined,
    detail: outcome === 'failed' ? `telegram ${status}` : undefined,
    isRefunded: is_refunded === true || undefined,
  })
  return understood([reading])
}

/** HMAC-SHA-256 of the timestamp, a line feed and the body. Its key is the SHA-256 of the token. */
function isSigned({ headers, rawBody, receivedAt }: ReceiptRequest, key: Buffer): boolean {
  const { 'x-request-timestamp': seconds, 'x-request-signature': signature } = headers
  if (typeof seconds !== 'string' || !/^\d{1,12}$/.test(seconds)) return false
  if (typeof signature !== 'string') return false
  if (Math.abs(receivedAt - Number(seconds) * 1_000) > longestAgeMs) return false
  const hmac = createHmac('sha256', key).update(`${seconds}\n`).update(rawBody).digest('hex')
  return isSameSecret(signature.toLowerCase(), hmac)
}
