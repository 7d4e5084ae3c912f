import { z } from 'zod'
import { channels } from '../../base/channel.ts'
import { createHttpClient, type HttpOutcome } from '../../base/http-client.ts'
import type { ParsedReceipts, ReceiptRequest } from '../../base/receipt.ts'
import {
  isSignedWebhook,
  isUsableSecret,
  mayBeSignedWebhook,
  signWebhook,
} from '../../crypto/standard-webhooks.ts'
import { parseJson, parseObject } from '../json.ts'
import type { Message, Provider, SendResult } from '../provider.ts'
import { maxUnprovenBytes, type ProviderDeps, type ProviderKind } from '../provider-kind.ts'
import { accepted, resultOfTransport } from '../result.ts'

/**
 * The way to any carrier we have no kind for: a small service of the operator's own takes a signed
 * POST and does the rest. Receipts come back signed the same way.
 */
const settings = z.strictObject({
  url: z.url({ protocol: /^https?$/ }),
  /** `whsec_` and base64, or any text of 16 characters and more. */
  secret: z.string().refine(isUsableSecret, 'not whsec_ and base64, nor 16 characters or more'),
})

type WebhookSettings = z.infer<typeof settings>

export const webhook: ProviderKind<WebhookSettings> = {
  kind: 'webhook',
  channels,
  settings,
  create: createWebhook,
  createReceiptReader: (settings) => ({
    maxBodyBytes: maxUnprovenBytes,
    mayBeGenuine: ({ headers, receivedAt }) => mayBeSignedWebhook(headers, receivedAt),
    parse: (request) => parseReceipts(request, settings),
  }),
}

function createWebhook(name: string, settings: WebhookSettings, deps: ProviderDeps): Provider {
  const client = createHttpClient(deps.timeoutMs, deps.concurrency)

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    const { noticeId, channel, to, template, locale, subject, text, html } = message
    const body = JSON.stringify({ noticeId, channel, to, template, locale, subject, text, html })
    const headers = {
      'content-type': 'application/json',
      ...signWebhook(settings.secret, noticeId, deps.clock(), body),
    }
    const call = { method: 'POST', url: settings.url, headers, body } as const
    return resultOf(await client.call(call, signal), deps.clock())
  }

  return {
    name,
    kind: webhook.kind,
    channels: webhook.channels,
    slots: deps.concurrency,
    send,
    async close() {
      client.close()
    },
  }
}

function resultOf(outcome: HttpOutcome, nowMs: number): SendResult {
  const transport = resultOfTransport(outcome, 'webhook', nowMs)
  if (transport || outcome.kind !== 'answered') {
    return transport ?? { kind: 'unknown', detail: 'webhook' }
  }
  const { status } = outcome
  if (status >= 200 && status < 300) {
    return accepted(parseObject(outcome.body)?.id)
  }
  const kind = [400, 404, 422].includes(status) ? 'rejected' : 'unavailable'
  return { kind, detail: `webhook HTTP ${status}` }
}

const receipt = z
  .object({
    id: z.string().min(1).max(200).optional(),
    noticeId: z.string().min(1).max(200).optional(),
    outcome: z.enum(['delivered', 'failed']),
    at: z.iso.datetime({ offset: true }).optional(),
    reason: z
      .string()
      .regex(/^[\w.:-]{1,80}$/)
      .optional(),
  })
  .refine(({ id, noticeId }) => id !== undefined || noticeId !== undefined)

/** One receipt or a list of them. */
const receipts = z.union([z.array(receipt).max(1_000), receipt.transform((one) => [one])])

function parseReceipts(request: ReceiptRequest, settings: WebhookSettings): ParsedReceipts {
  const { headers, rawBody, receivedAt } = request
  if (!isSignedWebhook(settings.secret, headers, rawBody, receivedAt)) {
    return { ok: false, reason: 'forged' }
  }
  const parsed = receipts.safeParse(parseJson(rawBody.toString()))
  if (!parsed.success) return { ok: false, reason: 'malformed' }
  return {
    ok: true,
    receipts: parsed.data.map(({ id, noticeId, outcome, at, reason }) => ({
      ...(id === undefined ? {} : { messageId: id }),
      ...(noticeId === undefined ? {} : { noticeId }),
      outcome,
      ...(at === undefined ? {} : { at: Date.parse(at) }),
      ...(reason === undefined ? {} : { detail: reason }),
    })),
    reply: { status: 204, contentType: 'text/plain', body: '' },
  }
}
