import { createHash, createHmac } from 'node:crypto'
import { isObject, parseObject } from '../../base/json.ts'
import {
  type ParsedReceipts,
  type ReceiptReader,
  type ReceiptRequest,
  unreadable,
} from '../../base/receipt.ts'
import { isSameSecret } from '../../crypto/same-secret.ts'
import type { TelegramSettings } from './settings.ts'

/** Telegram repeats a report for less than a day. An older one may be a copy. */
const longestAgeMs = 86_400_000

export function createReceiptReader({ token }: TelegramSettings): ReceiptReader {
  const key = createHash('sha256').update(token).digest()
  return {
    // A report is an object of some 500 bytes.
    maxBodyBytes: 16_384,
    mayBeGenuine: ({ headers }) => typeof headers['x-request-signature'] === 'string',
    parse: (request) => parseReport(request, key),
  }
}

const outcomes: Readonly<Record<string, 'delivered' | 'failed' | undefined>> = {
  delivered: 'delivered',
  read: 'delivered',
  expired: 'failed',
  revoked: 'failed',
  // A final status follows.
  sent: undefined,
}

function parseReport(request: ReceiptRequest, key: Buffer): ParsedReceipts {
  if (!isSigned(request, key)) return { ok: false, reason: 'forged' }
  const report = parseObject(request.rawBody.toString())
  if (typeof report?.request_id !== 'string') return { ok: false, reason: 'malformed' }
  const { request_id: messageId, payload, delivery_status: delivery, is_refunded } = report
  const reply = { status: 200, contentType: 'text/plain', body: '' }
  // A report about a code that a person entered has no news of its delivery.
  if (!isObject(delivery)) return { ok: true, receipts: [], reply }
  const { status, updated_at: seconds } = delivery
  const isKnown = typeof status === 'string' && Object.hasOwn(outcomes, status)
  if (!isKnown) return { ok: true, receipts: [unreadable], reply }
  const outcome = outcomes[status]
  if (!outcome) return { ok: true, receipts: [], reply }
  const receipt = {
    messageId,
    outcome,
    ...(typeof payload === 'string' && payload !== '' ? { noticeId: payload } : {}),
    ...(Number.isSafeInteger(seconds) ? { at: Number(seconds) * 1_000 } : {}),
    ...(outcome === 'failed' ? { detail: `telegram ${status}` } : {}),
    ...(is_refunded === true ? { isRefunded: true as const } : {}),
  }
  return { ok: true, receipts: [receipt], reply }
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
