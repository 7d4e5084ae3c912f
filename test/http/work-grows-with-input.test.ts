/**
 * Parsers of input that strangers control: those before the key check, and those that a page's key reaches. Four
 * times the input is at most four times the work. It is measured in processor time, so a busy machine changes
 * nothing.
 */
import express from 'express'
import { describe, expect, test } from 'vitest'
import { parseDurationMs } from '../../src/base/durations.ts'
import { limitableAddress } from '../../src/base/limitable-address.ts'
import { preferredLanguage } from '../../src/base/preferred-language.ts'
import { isSignedWebhook } from '../../src/crypto/standard-webhooks.ts'
import { checkCaptchaBody, sendCaptchaBody } from '../../src/http/captcha-bodies.ts'
import { acquireBody, attemptBody } from '../../src/http/limits.ts'
import { searchNoticesBody } from '../../src/http/notice-reads.ts'
import { sendNoticeBody } from '../../src/http/notices.ts'
import { sandboxQuery } from '../../src/http/sandbox.ts'
import { aliyun } from '../../src/providers/aliyun/index.ts'
import { tencent } from '../../src/providers/tencent/index.ts'
import { twilio } from '../../src/providers/twilio/index.ts'
import { isSignedByTwilio } from '../../src/providers/twilio/signature.ts'
import { webhook } from '../../src/providers/webhook/index.ts'
import { createRecipientNormaliser } from '../../src/recipient/normalise-recipient.ts'

const smallBytes = 4_096
const largeBytes = 4 * smallBytes

/** Quadratic work grows sixteenfold; twice the fourfold is room for garbage and first runs. */
const mostGrowth = 8
/** Below this time the growth does no harm: 16 kB may cost 32 ms (I21). */
const nothingMs = 4

/** Texts that are repeated to make a hostile input, each the worst case of some pattern. */
const units = [
  ' ', '\t', ',', ';', '=', '.', '-', '_', ':', '%', '&', '+', '@', '/', '"', '[', '{', '0', '1', 'a', 'A',
  'a&', 'a=1&', 'a,', ', ', '; ', ' ;', ';q', ';q=', '; q=1', 'zh', 'zh ', 'zh,', 'zh-', 'zh;', 'en;q=0 ',
  'a-', 'a.', '1.', '1:', '::', '%25', '%%', '1 ', '(1', '::ffff:', 'v1,', 'é', '１', '\u202e',
] // biome-ignore format: a table

const beginnings = [
  '',
  'zh',
  'zh ',
  'zh;',
  'Bearer ',
  'application/json;',
  '+86',
  'a@',
  '::ffff:1',
  '1',
]
const ends = ['', 'x', ' x', '!', '@a', '\u0000']

const inputs = (bytes: number, beginning: string, unit: string, end: string) =>
  beginning + unit.repeat(Math.ceil(bytes / unit.length)) + end

/** Fields with many names. The second half repeats the names. */
function distinctFields(bytes: number): string {
  const count = Math.ceil(bytes / 8)
  return Array.from({ length: count }, (_, index) => `f${index % (count / 2)}=${index}`).join('&')
}

const normalise = createRecipientNormaliser({ defaultCountry: 'CN' })
const receiptHead = { headers: {}, query: {}, rawBody: Buffer.alloc(0), receivedAt: Date.now() }
const webhookSettings = webhook.settings.parse({ url: 'http://a.test', secret: 'x'.repeat(20) })
const twilioSettings = twilio.settings.parse({
  accountSid: `AC${'0'.repeat(32)}`,
  authToken: 'token',
  from: '+15005550006',
  statusCallback: 'https://a.test/receipts',
})
const vendor = { templates: {}, receiptToken: 'x'.repeat(20) }
const aliyunSettings = aliyun.settings.parse({
  ...vendor, accessKeyId: 'a', accessKeySecret: 'b', signName: 'c',
}) // biome-ignore format: short
const tencentSettings = tencent.settings.parse({
  ...vendor, secretId: 'a', secretKey: 'b', sdkAppId: 'c',
}) // biome-ignore format: short
const signedHead = (signature: string) => ({
  'webhook-id': signature,
  'webhook-timestamp': String(Math.floor(Date.now() / 1_000)),
  'webhook-signature': signature,
})
const app = express().set('trust proxy', 10)
const forwarded = (text: string) =>
  Object.assign(Object.create(app.request), {
    app,
    headers: { 'x-forwarded-for': text },
    socket: { remoteAddress: '127.0.0.1' },
  })

const parsers: [string, (text: string) => unknown][] = [
  ['Accept-Language', preferredLanguage],
  ['X-Forwarded-For', (text) => forwarded(text).ip],
  ['an address', limitableAddress],
  ['a duration', parseDurationMs],
  ['a phone number', (text) => normalise('sms', text)],
  ['a mail address', (text) => normalise('email', text)],
  ['webhook signatures', (text) => isSignedWebhook('secret', signedHead(text), text, Date.now())],
  [
    'a webhook receipt',
    (text) =>
      webhook.createReceiptReader?.(webhookSettings).parse({ ...receiptHead, headers: signedHead(text), rawBody: Buffer.from(text) }),
  ],
  [
    'a twilio form and its query',
    (text) =>
      twilio.createReceiptReader?.(twilioSettings).parse({
          ...receiptHead,
          headers: { 'x-twilio-signature': text },
          query: { noticeId: text },
          rawBody: Buffer.from(text),
        }),
  ],
  [
    'an aliyun batch',
    (text) =>
      aliyun.createReceiptReader?.(aliyunSettings).parse({ ...receiptHead, query: { token: vendor.receiptToken }, rawBody: Buffer.from(text) }),
  ],
  [
    'a tencent token',
    (text) => tencent.createReceiptReader?.(tencentSettings).parse({ ...receiptHead, query: { token: text } }),
  ],
  ['bodies of sends', (text) => [sendCaptchaBody, sendNoticeBody].map((body) => body.safeParse(filled(text)))],
  ['bodies of checks and searches', (text) => [checkCaptchaBody, searchNoticesBody].map((body) => body.safeParse(filled(text)))],
  ['bodies of limits', (text) => [acquireBody, attemptBody, sandboxQuery].map((body) => body.safeParse(filled(text)))],
] // biome-ignore format: short

/** Every text of every body. */
const filled = (text: string) => ({
  channel: 'sms',
  to: text,
  scene: text,
  template: text,
  params: { [text]: text },
  fields: { [text]: text },
  locale: text,
  ip: text,
  code: text,
  id: text,
  ttl: text,
  sendAt: text,
  cursor: text,
  policy: text,
  subject: text,
  limit: text,
})

/** Processor time of this thread alone, because garbage collection and compiling are not the parser's work. */
function cpuMs(work: () => unknown): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}

/** Undefined if one run of `mostRuns` shows no such growth: a busy machine only adds time to a run. */
function growthOf(parse: (text: string) => unknown, large: string, small: string, mostRuns = 10) {
  let leastLargeMs = Number.POSITIVE_INFINITY
  let leastSmallMs = Number.POSITIVE_INFINITY
  for (let run = 0; run < mostRuns; run++) {
    leastLargeMs = Math.min(
      leastLargeMs,
      cpuMs(() => parse(large)),
    )
    if (leastLargeMs < nothingMs) return undefined
    leastSmallMs = Math.min(
      leastSmallMs,
      cpuMs(() => parse(small)),
    )
    if (leastLargeMs <= mostGrowth * leastSmallMs) return undefined
  }
  return `${leastSmallMs.toFixed(2)} → ${leastLargeMs.toFixed(2)} ms`
}

describe('four times the input is about four times the work (I21)', () => {
  test.each(parsers)('%s', (_, parse) => {
    const grown: string[] = []
    const note = (what: string, growth: string | undefined) => {
      if (growth) grown.push(`${what}: ${growth}`)
    }
    note('distinct fields', growthOf(parse, distinctFields(largeBytes), distinctFields(smallBytes)))
    for (const unit of units) {
      for (const beginning of beginnings) {
        for (const end of ends) {
          const [large, small] = [largeBytes, smallBytes].map((bytes) =>
            inputs(bytes, beginning, unit, end),
          ) as [string, string]
          note(JSON.stringify(`${beginning}${unit}…${end}`), growthOf(parse, large, small))
        }
      }
      if (grown.length > 3) break
    }
    expect(grown).toEqual([])
  })

  test('a form of 40,000 fields, 300 kB: its signature is checked within what its bytes may cost', () => {
    const form = new URLSearchParams(distinctFields(300_000))
    expect(form.size).toBeGreaterThan(37_000)
    const check = () => isSignedByTwilio('token', 'https://a.test', form, 'forged')
    expect(cpuMs(check)).toBeLessThan(600)
  })

  test('a quadratic one is noticed', () => {
    const pattern = /^\s*(en|zh)?\s*$/
    const text = inputs(largeBytes, '', ' ', 'x')
    const grown = growthOf((given) => pattern.test(given), text, text.slice(smallBytes * 3), 3)
    expect(grown).toMatch(/ → /)
  })
})
