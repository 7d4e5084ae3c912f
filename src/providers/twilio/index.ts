import { z } from 'zod'
import { createHttpClient } from '../../base/http-client.ts'
import type { ParsedReceipts, ReceiptRequest } from '../../base/receipt.ts'
import { parseObject } from '../json.ts'
import type { Message, Provider, SendResult } from '../provider.ts'
import type { ProviderDeps, ProviderKind } from '../provider-kind.ts'
import { accepted, resultOfTransport } from '../result.ts'
import { resultOfError } from './errors.ts'
import { isSignedByTwilio } from './signature.ts'

/**
 * SMS by Twilio's Messages API. It has no field for a reference of ours and drops no repeats; the
 * notice id travels in the address Twilio calls with receipts, so set `statusCallback`.
 */
const settings = z
  .strictObject({
    accountSid: z.string().regex(/^AC[0-9a-fA-F]{32}$/, 'begins AC, then 32 hexadecimal digits'),
    authToken: z.string().min(1),
    /** A number in E.164, a short code or an alphanumeric sender. */
    from: z.string().min(1).optional(),
    messagingServiceSid: z
      .string()
      .regex(/^MG[0-9a-fA-F]{32}$/, 'begins MG, then 32 hexadecimal digits')
      .optional(),
    /** Where Twilio reaches our receipts from outside, exactly as it must call it. */
    statusCallback: z.url({ protocol: /^https?$/ }).optional(),
    endpoint: z.url({ protocol: /^https?$/ }).default('https://api.twilio.com'),
  })
  .refine(
    ({ from, messagingServiceSid }) => (from === undefined) !== (messagingServiceSid === undefined),
    {
      message: 'needs one of from and messagingServiceSid',
    },
  )

type TwilioSettings = z.infer<typeof settings>

export const twilio: ProviderKind<TwilioSettings> = {
  kind: 'twilio',
  channels: ['sms'],
  settings,
  create: createTwilio,
  createReceiptReader: (settings) => ({
    // A call of Twilio's is one form of a dozen fields.
    maxBodyBytes: 16_384,
    mayBeGenuine: ({ headers }) => typeof headers['x-twilio-signature'] === 'string',
    parse: (request) => parseReceipts(request, settings),
  }),
}

const maxFields = 200

function createTwilio(name: string, settings: TwilioSettings, deps: ProviderDeps): Provider {
  const client = createHttpClient(deps.timeoutMs, deps.concurrency)
  const { accountSid, authToken, from, messagingServiceSid } = settings
  const url = new URL(`/2010-04-01/Accounts/${accountSid}/Messages.json`, settings.endpoint).href
  const credentials = Buffer.from(`${accountSid}:${authToken}`).toString('base64')
  const headers = {
    authorization: `Basic ${credentials}`,
    'content-type': 'application/x-www-form-urlencoded',
    accept: 'application/json',
  }

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    const callback = callbackUrl(settings, message.noticeId)
    const form = new URLSearchParams({
      To: message.to,
      Body: message.text,
      ...(from === undefined ? {} : { From: from }),
      ...(messagingServiceSid === undefined ? {} : { MessagingServiceSid: messagingServiceSid }),
      ...(callback === undefined ? {} : { StatusCallback: callback }),
    })
    const call = { method: 'POST', url, headers, body: form.toString() } as const
    const outcome = await client.call(call, signal)
    const transport = resultOfTransport(outcome, 'twilio', deps.clock())
    if (transport || outcome.kind !== 'answered') {
      return transport ?? { kind: 'unknown', detail: 'twilio' }
    }
    const answer = parseObject(outcome.body)
    if (outcome.status < 200 || outcome.status >= 300) {
      return resultOfError(answer?.code, outcome.status)
    }
    if (typeof answer?.sid !== 'string') {
      return { kind: 'unknown', detail: 'twilio: answer not understood' }
    }
    if (answer.status === 'failed' || answer.status === 'undelivered') {
      return resultOfError(answer.error_code, outcome.status)
    }
    return accepted(answer.sid)
  }

  return {
    name,
    kind: twilio.kind,
    channels: twilio.channels,
    slots: deps.concurrency,
    send,
    async close() {
      client.close()
    },
  }
}

const outcomes: Readonly<Record<string, 'delivered' | 'failed'>> = {
  delivered: 'delivered',
  read: 'delivered',
  failed: 'failed',
  undelivered: 'failed',
  canceled: 'failed',
}

/**
 * The signature is checked against the address from the settings, not the one that reached us: behind
 * a proxy we can't know how Twilio was told to call.
 */
function parseReceipts(request: ReceiptRequest, settings: TwilioSettings): ParsedReceipts {
  const { noticeId } = request.query
  const reference = typeof noticeId === 'string' && noticeId !== '' ? noticeId : undefined
  const url = callbackUrl(settings, reference)
  const form = new URLSearchParams(request.rawBody.toString())
  if (form.size > maxFields) return { ok: false, reason: 'malformed' }
  const signature = request.headers['x-twilio-signature']
  if (!url || !isSignedByTwilio(settings.authToken, url, form, signature)) {
    return { ok: false, reason: 'forged' }
  }
  const messageId = form.get('MessageSid')
  const status = form.get('MessageStatus')
  if (!messageId || !status) return { ok: false, reason: 'malformed' }
  const outcome = Object.hasOwn(outcomes, status) ? outcomes[status] : undefined
  const code = form.get('ErrorCode')
  const receipt = outcome && {
    messageId,
    ...(reference === undefined ? {} : { noticeId: reference }),
    outcome,
    ...(code && /^\d{1,6}$/.test(code) ? { detail: `twilio ${code}` } : {}),
  }
  return {
    ok: true,
    receipts: receipt ? [receipt] : [],
    reply: { status: 204, contentType: 'text/plain', body: '' },
  }
}

function callbackUrl(settings: TwilioSettings, noticeId: string | undefined): string | undefined {
  const { statusCallback } = settings
  if (statusCallback === undefined || noticeId === undefined) return statusCallback
  const separator = statusCallback.includes('?') ? '&' : '?'
  return `${statusCallback}${separator}noticeId=${encodeURIComponent(noticeId)}`
}
