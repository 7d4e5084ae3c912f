import { z } from 'zod'
import { isForeignId } from '../../base/ids.ts'
import { isObject, objectsIn, parseObject } from '../../base/json.ts'
import { measureSms } from '../../base/sms-length.ts'
import { defineHttpKind, formOf } from '../http-provider.ts'
import { type SendResult, secondsLeft } from '../provider.ts'
import { defineReportReader, outcomesBy, readingOf } from '../receipt-readers.ts'
import { accepted, type Refusal, refused } from '../send-result.ts'
import { senderByCountry } from '../sender.ts'

const settings = z.strictObject({
  apiKey: z.string().min(1),
  apiSecret: z.string().min(1),
  /** A number, or a name of up to 11 letters and digits. */
  from: senderByCountry(
    z
      .string()
      .regex(
        /^(\+?\d{3,15}|[A-Za-z0-9]{1,11})$/,
        'must be a number, or up to 11 letters and digits',
      ),
  ),
  /** Give Vonage a receipt address with this value as `?token=`. Without it, receipts are refused. */
  receiptToken: z.string().min(16).optional(),
  endpoint: z.url({ protocol: /^https?$/ }).default('https://rest.nexmo.com'),
})

/** The bounds of `ttl`, in seconds. */
const shortestValidSeconds = 20
const longestValidSeconds = 604_800

const outcomeOf = outcomesBy({
  delivered: 'delivered',
  failed: 'expired failed rejected',
  notFinal: 'accepted buffered unknown',
})

function readReport(report: unknown) {
  if (!isObject(report) || !isForeignId(report.messageId)) return undefined
  const { messageId, status, 'client-ref': noticeId, 'err-code': code } = report
  return readingOf(outcomeOf(status), {
    messageId,
    noticeId: isForeignId(noticeId) ? noticeId : undefined,
    detail: /^\d{1,4}$/.test(String(code)) ? `vonage ${code}` : undefined,
  })
}

/** SMS by Vonage's SMS API. Receipts repeat the notice id, sent as client-ref. The API does not detect repeats. */
export const vonage = defineHttpKind({
  kind: 'vonage',
  channels: ['sms'],
  settings,
  senderOf: ({ from }) => from,
  /** By the settings of the account, Vonage sends receipts as JSON, as a form or as the query of a GET. */
  createReceiptReader: defineReportReader(readReport, { thanks: {}, readsQuery: true }),

  connect({ ask, notUnderstood }, { apiKey, apiSecret, endpoint }) {
    const url = new URL('/sms/json', endpoint).href
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    return {
      async send(message, signal, sender = '') {
        const validSeconds = secondsLeft(message, longestValidSeconds, shortestValidSeconds)
        const body = formOf({
          api_key: apiKey,
          api_secret: apiSecret,
          from: sender.replace(/^\+/, ''),
          to: message.to.slice(1),
          text: message.text,
          type: measureSms(message.text).encoding === 'gsm7' ? 'text' : 'unicode',
          'client-ref': message.noticeId,
          ttl: validSeconds && validSeconds * 1_000,
        })
        const { result, answer } = await ask({ url, headers, body }, signal)
        if (result) return result
        // A long text is sent in parts, and each has its status.
        const parts = objectsIn(parseObject(answer.body)?.messages)
        const sent = parts.find(({ status }) => String(status) === '0')
        if (sent) return accepted(sent['message-id'])
        return resultOfStatus(parts[0]?.status) ?? notUnderstood(answer)
      },
    }
  },
})

/**
 * Maps the statuses of Vonage's SMS API to results. They arrive as text in HTTP 200. Every status but 0 is an error
 * (https://developer.vonage.com/en/messaging/sms/guides/troubleshooting-sms), so a message with another one is not sent.
 */
const kinds: ReadonlyMap<string, Refusal | 'barred'> = new Map([
  ['1', 'throttled'], // more calls per second than the account may make
  ['2', 'rejected'], // a parameter is missing
  ['3', 'rejected'], // a parameter is wrong
  ['4', 'unavailable'], // wrong credentials
  ['5', 'unavailable'], // internal error
  ['6', 'barred'], // Vonage knows no route for the number
  ['7', 'barred'], // the number is on Vonage's list
  ['8', 'unavailable'], // the account is suspended
  ['9', 'unavailable'], // no credit
  ['10', 'throttled'], // too many connections
  ['11', 'unavailable'], // the account has no SMS API
  ['12', 'rejected'], // too long
  ['14', 'unavailable'], // wrong signature
  ['15', 'rejected'], // this sender is not allowed
  ['29', 'barred'], // a trial account, which sends only to listed numbers
  ['32', 'unavailable'], // the account wants signed calls
  ['33', 'barred'], // the number is out of use
])

/** Undefined for a value that is no status. */
export function resultOfStatus(status: unknown): SendResult | undefined {
  if (!/^\d{1,4}$/.test(String(status))) return undefined
  return refused(kinds.get(String(status)) ?? 'rejected', `vonage ${status}`)
}
