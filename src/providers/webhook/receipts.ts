import { z } from 'zod'
import { parseJson } from '../../base/json.ts'
import type { ParsedReceipts, ReceiptReader, ReceiptRequest } from '../../base/receipt.ts'
import { isSignedWebhook, mayBeSignedWebhook } from '../../crypto/standard-webhooks.ts'
import type { WebhookSettings } from './settings.ts'

/** Limit for strangers (I21), because the body is read before its signature can be checked. */
const maxUnprovenBytes = 49_152

const receipt = z
  .object({
    id: z.string().min(1).max(200).optional(),
    noticeId: z.string().min(1).max(200).optional(),
    outcome: z.enum(['delivered', 'failed']),
    at: z.iso
      .datetime({ offset: true })
      .transform((text) => Date.parse(text))
      .optional(),
    reason: z
      .string()
      .regex(/^[\w.:-]{1,80}$/)
      .optional(),
  })
  .refine(({ id, noticeId }) => id !== undefined || noticeId !== undefined)

/** One receipt or a list of receipts. */
const receipts = z.union([z.array(receipt).max(1_000), receipt.transform((one) => [one])])

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
  const parsed = receipts.safeParse(parseJson(rawBody.toString()))
  if (!parsed.success) return { ok: false, reason: 'malformed' }
  return {
    ok: true,
    receipts: parsed.data.map(({ id: messageId, noticeId, outcome, at, reason: detail }) => {
      return { messageId, noticeId, outcome, at, detail }
    }),
    reply: { status: 204, contentType: 'text/plain', body: '' },
  }
}
