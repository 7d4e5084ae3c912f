import { z } from 'zod'
import { parseJson } from '../../base/json.ts'
import type { ParsedReceipts, Receipt, ReceiptReader, ReceiptRequest } from '../../base/receipt.ts'
import { isSignedWebhook, mayBeSignedWebhook } from '../../crypto/standard-webhooks.ts'
import { receiptsIn } from '../token-receipts.ts'
import type { WebhookSettings } from './settings.ts'

/** Limit for strangers (I21), because the body is read before its signature can be checked. */
const maxUnprovenBytes = 49_152

/** Left out if it is no code, because a sentence may name the recipient. */
const codeOfReason = z
  .string()
  .regex(/^[\w.:-]{1,80}$/)
  .optional()
  .catch(undefined)

const receipt = z
  .object({
    id: z.string().min(1).max(200).optional(),
    noticeId: z.string().min(1).max(200).optional(),
    outcome: z.enum(['delivered', 'failed', 'bounced', 'complained', 'opted_out']),
    at: z.iso
      .datetime({ offset: true })
      .transform((text) => Date.parse(text))
      .optional(),
    reason: codeOfReason,
    /** Another name of `reason`. */
    detail: codeOfReason,
  })
  .refine(({ id, noticeId }) => id !== undefined || noticeId !== undefined)

export function createReceiptReader({ secret }: WebhookSettings): ReceiptReader {
  return {
    maxBodyBytes: maxUnprovenBytes,
    mayBeGenuine: ({ headers, receivedAt }) => mayBeSignedWebhook(headers, receivedAt),
    parse: (request) => parseReceipts(request, secret),
  }
}

function parseReceipts(request: ReceiptRequest, secret: string): ParsedReceipts {
  const { headers, rawBody, receivedAt } = request
  if (!isSignedWebhook(secret, headers, rawBody, receivedAt)) {
    return { ok: false, reason: 'forged' }
  }
  const receipts = receiptsIn(parseJson(rawBody.toString()), readReceipt)
  if (!receipts) return { ok: false, reason: 'malformed' }
  return { ok: true, receipts, reply: { status: 204, contentType: 'text/plain', body: '' } }
}

function readReceipt(report: unknown): Receipt | undefined {
  const { data } = receipt.safeParse(report)
  if (!data) return undefined
  const { id: messageId, noticeId, outcome, at, detail = data.reason } = data
  return { messageId, noticeId, outcome, at, detail }
}
