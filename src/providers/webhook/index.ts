import { z } from 'zod'
import { channels } from '../../base/channel.ts'
import { retryAfterMs } from '../../base/http-client.ts'
import { parseJson, parseObject } from '../../base/json.ts'
import { receiptOutcomes } from '../../base/receipt.ts'
import { traceHeaders } from '../../base/traces.ts'
import {
  isSignedWebhook,
  isUsableSecret,
  mayBeSignedWebhook,
  signWebhook,
} from '../../crypto/standard-webhooks.ts'
import { defineHttpKind, type HttpAnswer } from '../http-provider.ts'
import { type SendResult, secondsLeft } from '../provider.ts'
import {
  forged,
  malformed,
  maxUnprovenBytes,
  type Reading,
  readingsIn,
  understood,
} from '../receipt-readers.ts'
import { accepted } from '../send-result.ts'

const settings = z.strictObject({
  url: z.url({ protocol: /^https?$/ }),
  /** `whsec_` and base64, or any text of 16 characters and more. */
  secret: z.string().refine(isUsableSecret, 'must be whsec_ and base64, or at least 16 characters'),
})

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
    outcome: z.enum(receiptOutcomes),
    at: z.iso
      .datetime({ offset: true })
      .transform((text) => Date.parse(text))
      .optional(),
    reason: codeOfReason,
    /** Another name of `reason`. */
    detail: codeOfReason,
  })
  .refine(({ id, noticeId }) => id !== undefined || noticeId !== undefined)

function readReceipt(report: unknown): Reading | undefined {
  const { data } = receipt.safeParse(report)
  if (!data) return undefined
  const { id: messageId, noticeId, outcome, at, detail = data.reason } = data
  return { messageId, noticeId, outcome, at, detail }
}

/**
 * Connects carriers for which Postern has no kind: it sends a signed POST to a small service of the operator, which calls
 * the carrier. Receipts are signed in the same way (src/crypto/standard-webhooks.ts).
 */
export const webhook = defineHttpKind({
  kind: 'webhook',
  channels,
  settings,

  createReceiptReader: ({ secret }) => ({
    maxBodyBytes: maxUnprovenBytes,
    mayBeGenuine: ({ headers, receivedAt }) => mayBeSignedWebhook(headers, receivedAt),
    parse({ headers, rawBody, receivedAt }) {
      if (!isSignedWebhook(secret, headers, rawBody, receivedAt)) return forged
      const readings = readingsIn(parseJson(rawBody.toString()), readReceipt)
      return readings ? understood(readings, { status: 204 }) : malformed
    },
  }),

  connect: ({ ask, clock }, { url, secret }) => ({
    async send(message, signal) {
      const { noticeId, channel, to, template, locale, subject, text, html } = message
      const { listUnsubscribe } = message
      const validForSeconds = secondsLeft(message, Number.POSITIVE_INFINITY)
      const body = JSON.stringify({
        ...{ noticeId, channel, to, template, locale, subject, text, html },
        listUnsubscribe,
        validForSeconds,
      })
      const headers = {
        'content-type': 'application/json',
        ...signWebhook(secret, noticeId, clock(), body),
        ...traceHeaders(),
      }
      const postponed = (answer: HttpAnswer) => postponedBy(answer, clock())
      const { result, answer } = await ask({ url, headers, body }, signal, postponed)
      if (result) return result
      const isTaken = answer.status >= 200 && answer.status < 300
      return isTaken ? accepted(parseObject(answer.body)?.id) : resultOfStatus(answer.status)
    },
  }),
})

/** Statuses about the message. All others are about the service. */
const aboutMessage = [400, 404, 422]

function resultOfStatus(status: number): SendResult {
  const kind = aboutMessage.includes(status) ? 'rejected' : 'unavailable'
  return { kind, detail: `webhook HTTP ${status}` }
}

/**
 * A 429 or 503 concerns the service and stops all messages. With the body `{"about": "recipient"}`, it concerns only the
 * recipient of this message. Undefined for any other answer.
 */
function postponedBy(answer: HttpAnswer, nowMs: number): SendResult | undefined {
  const { status, headers, body } = answer
  if (status !== 429 && status !== 503) return undefined
  if (parseObject(body)?.about !== 'recipient') return undefined
  const waitMs = retryAfterMs(headers, nowMs, Number.NaN)
  const detail = `webhook HTTP ${status}, about the recipient`
  return { kind: 'postponed', detail, ...(Number.isNaN(waitMs) ? {} : { retryAfterMs: waitMs }) }
}
