import { createHmac } from 'node:crypto'
import { isObject, parseObject } from '../../base/json.ts'
import {
  type ParsedReceipts,
  type Receipt,
  type ReceiptHead,
  type ReceiptReader,
  type ReceiptRequest,
  unreadable,
} from '../../base/receipt.ts'
import { isSameSecret } from '../../crypto/same-secret.ts'
import type { WhatsappSettings } from './settings.ts'

/**
 * Meta's webhook for one app: receipts, messages of people, and news of the account. A receipt is found by the id of its
 * message. It need not name the number: since 2026 a person can hide it.
 */
export function createReceiptReader(settings: WhatsappSettings): ReceiptReader {
  return {
    // When the address is entered, Meta asks for a repeat of a text by GET.
    readsQuery: true,
    // A limit for strangers (I21): the signature covers the whole body.
    maxBodyBytes: 49_152,
    mayBeGenuine: (head) =>
      typeof head.headers['x-hub-signature-256'] === 'string' || isHandshake(head),
    parse: (request) => parseWebhook(request, settings),
  }
}

const isHandshake = ({ query }: ReceiptHead) => query['hub.mode'] === 'subscribe'

function parseWebhook(request: ReceiptRequest, settings: WhatsappSettings): ParsedReceipts {
  const { headers, query, rawBody } = request
  if (rawBody.length === 0 && isHandshake(request)) return answerHandshake(query, settings)
  if (!isSigned(rawBody, headers['x-hub-signature-256'], settings.appSecret)) {
    return { ok: false, reason: 'forged' }
  }
  const webhook = parseObject(rawBody.toString())
  if (!webhook || !Array.isArray(webhook.entry)) return { ok: false, reason: 'malformed' }
  const values = itemsIn(webhook.entry)
    .flatMap(({ changes }) => itemsIn(changes))
    .flatMap(({ value }) => (isObject(value) ? [value] : []))
  // An app can have several numbers, and all of them call the same address.
  const own = values.filter(({ metadata }) => isOf(settings.phoneNumberId, metadata))
  const receipts = own.flatMap(({ statuses }) => itemsIn(statuses)).flatMap(readStatus)
  return { ok: true, receipts, reply: { status: 200, contentType: 'text/plain', body: '' } }
}

const itemsIn = (list: unknown): Record<string, unknown>[] =>
  Array.isArray(list) ? list.filter(isObject) : []

function isOf(phoneNumberId: string, metadata: unknown): boolean {
  const named = isObject(metadata) ? metadata.phone_number_id : undefined
  return named === undefined || named === phoneNumberId
}

function answerHandshake(
  { 'hub.verify_token': token, 'hub.challenge': challenge }: ReceiptHead['query'],
  { verifyToken }: WhatsappSettings,
): ParsedReceipts {
  const isMeta = verifyToken && typeof token === 'string' && isSameSecret(token, verifyToken)
  if (!isMeta) return { ok: false, reason: 'forged' }
  if (typeof challenge !== 'string' || !/^[\x20-\x7e]{1,200}$/.test(challenge)) {
    return { ok: false, reason: 'malformed' }
  }
  const reply = { status: 200, contentType: 'text/plain', body: challenge }
  return { ok: true, receipts: [], reply }
}

function isSigned(body: Buffer, signature: unknown, appSecret: string | undefined): boolean {
  if (!appSecret || typeof signature !== 'string') return false
  const hmac = createHmac('sha256', appSecret).update(body).digest('hex')
  return isSameSecret(signature, `sha256=${hmac}`)
}

const outcomes: Readonly<Record<string, 'delivered' | 'failed' | undefined>> = {
  delivered: 'delivered',
  read: 'delivered',
  played: 'delivered',
  failed: 'failed',
  // A final status follows.
  sent: undefined,
}

function readStatus(status: Record<string, unknown>): Receipt[] {
  const { id, status: name, timestamp, biz_opaque_callback_data: reference, errors } = status
  if (typeof id !== 'string' || typeof name !== 'string' || !Object.hasOwn(outcomes, name)) {
    // Counted. Meta does not correct it, so it gets no error.
    return [unreadable]
  }
  const outcome = outcomes[name]
  if (!outcome) return []
  const [error] = itemsIn(errors)
  const code = Number(error?.code)
  const seconds = Number(timestamp)
  return [
    {
      messageId: id,
      outcome,
      ...(typeof reference === 'string' ? { noticeId: reference } : {}),
      ...(Number.isSafeInteger(seconds) ? { at: seconds * 1_000 } : {}),
      ...(Number.isSafeInteger(code) ? { detail: `whatsapp ${code}` } : {}),
    },
  ]
}
