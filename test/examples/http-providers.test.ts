/** The entries of examples/http-providers, each against a vendor made from the pages that its file names. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { parse } from 'yaml'
import type { ReceiptReader } from '../../src/base/receipt.ts'
import { createSectionChecks } from '../../src/main/load-config.ts'
import { createReceiptReader, createServes, type ProviderSetUp } from '../../src/providers/kinds.ts'
import type { Message } from '../../src/providers/provider.ts'
import { json, startHttpFarEnd, type VendorRequest } from '../providers/far-ends/http.ts'
import { findFiles, repositoryRoot } from '../tools/source-files.ts'

const token = 'a-receipt-token-of-length'
const noticeId = '0193a1b2-0000-7000-8000-000000000000'
const text = 'Your code is 4711.'
const never = new AbortController().signal

const message: Message = {
  noticeId,
  channel: 'sms',
  to: '+447700900123',
  country: 'GB',
  nationalNumber: '7700900123',
  template: 'captcha',
  locale: 'en',
  variables: { code: '4711' },
  text,
}

interface Vendor {
  readonly host: string
  readonly to?: Partial<Message>
  /** The path of the request, its login or token, and its body, by the vendor's pages. */
  readonly path: string
  readonly authorization?: string
  readonly body: unknown
  readonly accepted: readonly [status: number, body: unknown]
  readonly messageId: string
  readonly refused: readonly (readonly [status: number, body: unknown, kind: string])[]
  /** Bodies of receipts: JSON, or the fields of a form. */
  readonly delivered: object | Record<string, string>
  readonly failed: object
  readonly onTheWay: object
  readonly isForm?: true
  readonly reply?: string
}

const basic = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
const receiptUrl = (name: string) => `https://codes.example/v1/receipts/${name}?token=${token}`
const env: Record<string, string> = {
  PLIVO_AUTH_ID: 'MAXXXXXXXXXXXXXXXXXX',
  PLIVO_AUTH_TOKEN: 'plivo-secret',
  TELNYX_API_KEY: 'telnyx-secret',
  SINCH_SERVICE_PLAN_ID: 'plan-1',
  SINCH_API_TOKEN: 'sinch-secret',
  INFOBIP_BASE_URL: 'xyz.api.infobip.com',
  INFOBIP_API_KEY: 'infobip-secret',
  YUNPIAN_APIKEY: 'yunpian-secret',
  SMS_GATE_USER: 'phone',
  SMS_GATE_PASSWORD: 'phone-secret',
  ...Object.fromEntries(
    ['PLIVO', 'TELNYX', 'SINCH', 'INFOBIP', 'YUNPIAN', 'SMS_GATE'].map((name) => [
      `${name}_RECEIPT_TOKEN`,
      token,
    ]),
  ),
}

const telnyxEvent = (event_type: string, status: string) => ({
  data: {
    event_type,
    id: 'event-1',
    payload: { id: 'm-1', to: [{ phone_number: message.to, status }] },
    record_type: 'event',
  },
  meta: { attempt: 1 },
})
const infobipReport = (groupName: string) => ({
  results: [{ bulkId: 'b-1', messageId: noticeId, to: '447700900123', status: { groupName } }],
})
const infobipAnswer = (groupName: string, name: string) => ({
  bulkId: 'b-1',
  messages: [{ messageId: noticeId, status: { groupName, name }, destination: '447700900123' }],
})
const yunpianReport = (report_status: string) => ({
  sms_status: JSON.stringify([
    { error_detail: '', sid: 9527, uid: null, error_msg: '', mobile: '13800138000', report_status },
  ]),
})
const sinchReport = (status: string) => ({
  type: 'recipient_delivery_report_sms',
  batch_id: '01FC66621XXXXX119Z8PMV1QPQ',
  recipient: '447700900123',
  code: 0,
  status,
})
const phoneEvent = (event: string) => ({
  deviceId: 'd-1',
  event,
  id: 'e-1',
  payload: { messageId: noticeId, phoneNumber: message.to },
  webhookId: 'w-1',
})

const vendors: Record<string, Vendor> = {
  plivo: {
    host: 'api.plivo.com',
    path: '/v1/Account/MAXXXXXXXXXXXXXXXXXX/Message/',
    authorization: basic('MAXXXXXXXXXXXXXXXXXX', 'plivo-secret'),
    body: { src: '14155550100', dst: '447700900123', text, log: false, url: receiptUrl('plivo') },
    accepted: [202, { message: 'message(s) queued', message_uuid: ['m-1'], api_id: 'a-1' }],
    messageId: 'm-1',
    refused: [
      [400, { api_id: 'a-1', error: 'no text' }, 'rejected'],
      [401, {}, 'unavailable'],
    ],
    isForm: true,
    delivered: { MessageUUID: 'm-1', Status: 'delivered', To: '447700900123' },
    failed: { MessageUUID: 'm-1', Status: 'undelivered', ErrorCode: '300' },
    onTheWay: { MessageUUID: 'm-1', Status: 'sent' },
  },
  telnyx: {
    host: 'api.telnyx.com',
    path: '/v2/messages',
    authorization: 'Bearer telnyx-secret',
    body: { from: '+15551234567', to: message.to, text, webhook_url: receiptUrl('telnyx') },
    accepted: [200, { data: { record_type: 'message', id: 'm-1', to: [{ status: 'queued' }] } }],
    messageId: 'm-1',
    refused: [
      [422, { errors: [{ code: '40310' }] }, 'rejected'],
      [401, { errors: [] }, 'unavailable'],
      [429, { errors: [] }, 'throttled'],
    ],
    delivered: telnyxEvent('message.finalized', 'delivered'),
    failed: telnyxEvent('message.finalized', 'delivery_failed'),
    onTheWay: telnyxEvent('message.sent', 'sent'),
  },
  sinch: {
    host: 'us.sms.api.sinch.com',
    path: '/xms/v1/plan-1/batches',
    authorization: 'Bearer sinch-secret',
    body: {
      from: '+12025550100',
      to: [message.to],
      body: text,
      type: 'mt_text',
      delivery_report: 'per_recipient',
      client_reference: noticeId,
    },
    accepted: [201, { id: '01FC66621XXXXX119Z8PMV1QPQ', to: ['447700900123'], type: 'mt_text' }],
    messageId: '01FC66621XXXXX119Z8PMV1QPQ',
    refused: [
      [400, { code: 'syntax_invalid_json' }, 'rejected'],
      [401, {}, 'unavailable'],
    ],
    delivered: sinchReport('Delivered'),
    failed: sinchReport('Rejected'),
    onTheWay: sinchReport('Dispatched'),
  },
  infobip: {
    host: 'xyz.api.infobip.com',
    path: '/sms/3/messages',
    authorization: 'App infobip-secret',
    body: {
      messages: [
        {
          sender: 'ACME',
          destinations: [{ to: '447700900123', messageId: noticeId }],
          content: { text },
        },
      ],
    },
    accepted: [200, infobipAnswer('PENDING', 'PENDING_ACCEPTED')],
    messageId: noticeId,
    refused: [
      [200, infobipAnswer('REJECTED', 'REJECTED_NETWORK'), 'rejected'],
      [200, infobipAnswer('REJECTED', 'REJECTED_NOT_ENOUGH_CREDITS'), 'unavailable'],
      [401, {}, 'unavailable'],
    ],
    delivered: infobipReport('DELIVERED'),
    failed: infobipReport('UNDELIVERABLE'),
    onTheWay: infobipReport('PENDING'),
  },
  yunpian: {
    host: 'sms.yunpian.com',
    to: {
      to: '+8613800138000',
      country: 'CN',
      nationalNumber: '13800138000',
      text: '【安可美】您的验证码是4711',
    },
    path: '/v2/sms/single_send.json',
    body: {
      apikey: 'yunpian-secret',
      mobile: '13800138000',
      text: '【安可美】您的验证码是4711',
      uid: noticeId,
      callback_url: receiptUrl('yunpian'),
    },
    accepted: [200, { code: 0, msg: '发送成功', count: 1, fee: 0.05, unit: 'RMB', sid: 9527 }],
    messageId: '9527',
    refused: [
      [400, { http_status_code: 400, code: 3, msg: '账户余额不足' }, 'unavailable'],
      [400, { http_status_code: 400, code: -1, msg: '非法的apikey' }, 'unavailable'],
      [400, { http_status_code: 400, code: 5, msg: '' }, 'rejected'],
    ],
    isForm: true,
    delivered: yunpianReport('SUCCESS'),
    failed: yunpianReport('FAIL'),
    onTheWay: yunpianReport('UNKNOWN'),
    reply: 'SUCCESS',
  },
  android: {
    host: 'api.sms-gate.app',
    path: '/3rdparty/v1/messages',
    authorization: basic('phone', 'phone-secret'),
    body: {
      id: noticeId,
      textMessage: { text },
      phoneNumbers: [message.to],
      withDeliveryReport: true,
      priority: 100,
    },
    accepted: [202, { id: noticeId, state: 'Pending' }],
    messageId: noticeId,
    refused: [
      [400, { message: 'no number' }, 'rejected'],
      [401, {}, 'unavailable'],
    ],
    delivered: phoneEvent('sms:delivered'),
    failed: phoneEvent('sms:failed'),
    onTheWay: phoneEvent('sms:sent'),
  },
}

/** The entry of a file as a start reads it, with the address of a far end in place of the vendor's. */
function readEntry(file: string, port = 1): { name: string; setUp: ProviderSetUp; host: string } {
  const written = readFileSync(`${repositoryRoot}${file}`, 'utf8').replaceAll(
    /\$\{(\w+)\}/g,
    (_, variable) => env[variable] ?? expect.unreachable(`${file} needs ${variable}`),
  )
  const [[name, entry]] = Object.entries(parse(written).providers) as [
    [string, Record<string, unknown>],
  ]
  const { kind, pace, ...settings } = entry
  const { host } = new URL(String(settings.url))
  const near = `http://127.0.0.1:${port}`
  settings.url = String(settings.url).replace(`https://${host}`, near)
  const checks = createSectionChecks()
  const found = checks.provider(
    name,
    {
      ...{ kind: String(kind), pace: pace as string | undefined, quotas: undefined },
      ...{ disabled: false, settings },
    },
    'postern.yaml',
  )
  expect(found).toEqual([])
  const setUp = checks.found().providers.get(name) as ProviderSetUp
  return { name, setUp, host }
}

const bodyOf = ({ headers, body }: VendorRequest) =>
  String(headers['content-type']).startsWith('application/json')
    ? JSON.parse(body)
    : Object.fromEntries(new URLSearchParams(body))

const files = findFiles('examples/http-providers/*.yaml')

test('examples/http-providers: six vendors, each with its pages, the day, and that no account was used', () => {
  expect(files.map((file) => basename(file, '.yaml')).sort()).toEqual([
    'android-phone',
    ...['infobip', 'plivo', 'sinch', 'telnyx', 'yunpian'],
  ])
  const readme = readFileSync(`${repositoryRoot}examples/http-providers/README.md`, 'utf8')
  for (const file of files) {
    const source = readFileSync(`${repositoryRoot}${file}`, 'utf8')
    const head = source.slice(0, source.indexOf('providers:')).replaceAll('\n# ', ' ')
    expect(head).toMatch(/documentation on 20\d\d-\d\d-\d\d, not tried with an? (account|phone)/)
    expect(head).toMatch(/https:\/\//)
    expect(readme).toContain(basename(file))
  }
})

describe.each(files)('%s', (file) => {
  const { name, host, setUp } = readEntry(file)
  const vendor = vendors[name] as Vendor
  const sent = { ...message, ...vendor.to }

  /** Sends a message to the vendor with this answer. */
  async function send([status, body]: readonly [number, unknown, ...unknown[]]) {
    const farEnd = await startHttpFarEnd(() => json(status, body))
    const near = readEntry(file, farEnd.port).setUp
    const deps = { timeoutMs: 60_000, concurrency: 1, clock: Date.now }
    const provider = near.kind.create(name, near.settings, deps)
    const result = await provider.send(sent, never)
    await provider.close()
    await farEnd.close()
    return { result, request: farEnd.requests[0] as VendorRequest }
  }

  it("sends the vendor's request, and reads its answers", async () => {
    expect(host).toBe(vendor.host)
    const { result, request } = await send(vendor.accepted)
    expect(result).toEqual({ kind: 'accepted', messageId: vendor.messageId })
    expect(request).toMatchObject({ method: 'POST', path: vendor.path })
    expect(request.headers.authorization).toBe(vendor.authorization)
    expect(bodyOf(request)).toEqual(vendor.body)
    for (const refused of vendor.refused) {
      expect([refused, (await send(refused)).result.kind]).toEqual([refused, refused[2]])
    }
  })

  it("reads the vendor's receipts", () => {
    const reader = createReceiptReader(name, setUp) as ReceiptReader
    const parsed = (report: object) => {
      const body = vendor.isForm
        ? new URLSearchParams(report as Record<string, string>).toString()
        : JSON.stringify(report)
      const type = vendor.isForm ? 'application/x-www-form-urlencoded' : 'application/json'
      const headers = { 'content-type': type }
      return reader.parse({ headers, query: { token }, rawBody: Buffer.from(body), receivedAt: 0 })
    }
    const { messageId } = vendor
    expect(parsed(vendor.delivered)).toMatchObject({
      receipts: [{ messageId, outcome: 'delivered' }],
      reply: { status: 200, body: vendor.reply ?? '{}' },
    })
    expect(parsed(vendor.failed)).toMatchObject({ receipts: [{ messageId, outcome: 'failed' }] })
    expect(parsed(vendor.onTheWay)).toMatchObject({ ok: true, receipts: [] })
  })

  it('serves the country of its message', () => {
    const serves = createServes(new Map([[name, setUp]]))
    expect(serves(name, sent.country ?? '')).toBe(true)
    expect(serves(name, 'US')).toBe(name !== 'yunpian')
  })
})
