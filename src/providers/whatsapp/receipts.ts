import { createHmac } from 'node:crypto'
import { isForeignId } from '../../base/ids.ts'
import { isObject, objectsIn, parseObject } from '../../base/json.ts'
import {
  type ParsedReceipts,
  type ReceiptHead,
  type ReceiptReader,
  type ReceiptRequest,
  unreadable,
} from '../../base/receipt.ts'
import { isSameSecret } from '../../crypto/same-secret.ts'
import {
  forged,
  malformed,
  maxUnprovenBytes,
  outcomesBy,
  type Reading,
  readingOf,
  understood,
} from '../receipt-readers.ts'

interface Settings {
  readonly phoneNumberId: string
  readonly appSecret?: string | undefined
  readonly verifyToken?: string | undefined
}

/**
 * Meta's webhook for one app: receipts, messages of people, and news of the account. A receipt is found by the id of its
 * message. It need not name the number: since 2026 a person can hide it.
 */
export function createReceiptReader(settings: Settings): ReceiptReader {
  return {
    // When the address is entered, Meta asks for a repeat of a text by GET.
    readsQuery: true,
    maxBodyBytes: maxUnprovenBytes,
    mayBeGenuine: (head) =>
      typeof head.headers['x-hub-signature-256'] === 'string' || isHandshake(head),
    parse: (request) => parseWebhook(request, settings),
  }
}

const isHandshake = ({ query }: ReceiptHead) => query['hub.mode'] === 'subscribe'

function parseWebhook(request: ReceiptRequest, settings: Settings): ParsedReceipts {
  const { headers, query, rawBody } = request
  if (rawBody.length === 0 && isHandshake(request)) return answerHandshake(query, settings)
  if (!isSigned(rawBody, headers['x-hub-signature-256'], settings.appSecret)) return forged
  const webhook = parseObject(rawBody.toString())
  if (!webhook || !Array.isArray(webhook.entry)) return malformed
  const values = objectsIn(webhook.entry)
    .flatMap(({ changes }) => objectsIn(changes))
    .flatMap(({ value }) => (isObject(value) ? [value] : []))
  // An app can have several numbers, and all of them call the same address.
  const own = values.filter(({ metadata }) => isOf(settings.phoneNumberId, metadata))
  return understood(own.flatMap(({ statuses }) => objectsIn(statuses)).map(readStatus))
}

function isOf(phoneNumberId: string, metadata: unknown): boolean {
  const named = isObject(metadata) ? metadata.phone_number_id : undefined
  return named === undefined || named === phoneNumberId
}

function answerHandshake(
  { 'hub.verify_token': token, 'hub.challenge': challenge }: ReceiptHead['query'],
  { verifyToken }: Settings,
): ParsedReceipts {
  const isMeta = verifyToken && typeof token === 'string' && isSameSecret(token, verifyToken)
  if (!isMeta) return forged
  return isForeignId(challenge) ? understood([], { body: challenge }) : malformed
}

function isSigned(body: Buffer, signature: unknown, appSecret: string | undefined): boolean {
  if (!appSecret || typeof signature !== 'string') return false
  const hmac = createHmac('sha256', appSecret).update(body).digest('hex')
  return isSameSecret(signature, `sha256=${hmac}`)
}

const outcomeOf = outcomesBy({
  delivered: 'delivered read played',
  failed: 'failed',
  notFinal: 'sent',
})

function readStatus(status: Record<string, unknown>): Reading {
  const { id, status: name, timestamp, biz_opaque_callback_data: reference, errors } = status
  if (typeof id !== 'string') return unreadable
  const code = Number(objectsIn(errors)[0]?.code)
  const seconds = Number(timestamp)
  return readingOf(outcomeOf(name), {
    messageId: id,
    noticeId: typeof reference === 'string' ? reference : undefined,
    at: Number.isSafeInteger(seconds) ? seconds * 1_000 : undefined,
    detail: Number.isSafeInteger(code) ? `whatsapp ${code}` : undefined,
  })
}
