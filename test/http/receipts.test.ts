import { describe, expect, inject, test, vi } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { Unavailable } from '../../src/base/unavailable.ts'
import { receiptRoutes } from '../../src/http/receipts.ts'
import type { RouteRequest } from '../../src/http/route.ts'
import { signTwilio } from '../providers/far-ends/twilio.ts'
import { testMetrics } from '../tools/metrics.ts'
import { noLimits, type Postern, startPostern } from '../tools/postern.ts'
import { rawHttp } from './raw-http.ts'
import { insertSends, postReceipts, secret, shuffleReceipts, statesOf } from './receipt-calls.ts'

const receiptToken = 'a token in the address'
const statusCallback = 'https://postern.example/v1/receipts/twilio'
const postern = await startPostern({
  roles: { api: true, worker: true },
  policyFile: {
    policies: noLimits,
    providers: {
      carrier: { kind: 'webhook', url: 'http://127.0.0.1:9/send', secret },
      plain: { kind: 'sandbox' },
      aliyun: {
        kind: 'aliyun',
        accessKeyId: 'id',
        accessKeySecret: 'secret',
        signName: 'Acme',
        templates: {},
        receiptToken,
      },
      vonage: { kind: 'vonage', apiKey: 'k', apiSecret: 'secret', from: 'Acme', receiptToken },
      twilio: {
        kind: 'twilio',
        accountSid: `AC${'0'.repeat(32)}`,
        authToken: 'token',
        from: '+15005550006',
        statusCallback,
      },
    },
    routes: { sms: [{ use: ['carrier'] }], email: [{ use: ['plain'] }] },
  },
})

const metric = async (of: Postern, result: string) => {
  const text = await (await fetch(`${of.adminUrl}/metrics`)).text()
  const pattern = new RegExp(
    `postern_receipts_total\\{provider="carrier",result="${result}"[^}]*\\} (\\d+)`,
  )
  return Number(pattern.exec(text)?.[1] ?? 0)
}

describe('POST /v1/receipts/{provider}', () => {
  test('a signed receipt moves the notice, and the answer is what the vendor expects', async () => {
    const id = newId()
    await insertSends(postern, [id], 'sent')
    const reply = await postReceipts(postern, [{ noticeId: id, outcome: 'delivered' }])
    expect(reply.status).toBe(204)
    expect((await statesOf(postern, [id])).get(id)).toBe('delivered')
    const { body } = await postern.get(`/v1/notices/${id}`)
    expect(body).toMatchObject({ state: 'delivered', provider: 'carrier' })
  })

  test('a forged one is refused with 403, counted, and changes nothing', async () => {
    const id = newId()
    await insertSends(postern, [id], 'sent')
    const before = await metric(postern, 'forged')
    const reply = await postReceipts(
      postern,
      [{ noticeId: id, outcome: 'failed' }],
      'another secret, as long',
    )
    expect(reply.status).toBe(403)
    expect(reply.body.code).toBe('forbidden')
    expect((await statesOf(postern, [id])).get(id)).toBe('sent')
    expect(await metric(postern, 'forged')).toBe(before + 1)
  })

  test('a receipt for an unknown id is accepted', async () => {
    expect((await postReceipts(postern, [{ noticeId: newId(), outcome: 'failed' }])).status).toBe(
      204,
    )
  })

  test.for([
    ['signed but no receipt', () => postReceipts(postern, '{"hello":"world"}'), 400],
    ['an empty body', () => postReceipts(postern, ''), 400],
    ['no such provider', () => postReceipts(postern, [], secret, 'nobody'), 404],
    [
      'a provider without receipts over HTTP',
      () => postReceipts(postern, [], secret, 'plain'),
      404,
    ],
    ['a body above 48 kB', () => postReceipts(postern, 'x'.repeat(50_000)), 413],
  ] as const)('%s', async ([, send, status]) => {
    expect((await send()).status).toBe(status)
  })
})

describe('before a byte of the body is read', () => {
  const now = () => String(Math.floor(Date.now() / 1_000))
  const signedLike = (timestamp: string) =>
    `webhook-id: ${newId()}\r\nwebhook-timestamp: ${timestamp}\r\nwebhook-signature: v1,${'A'.repeat(43)}=\r\n`

  test.for([
    ['no such provider', 'nobody', '', 404],
    ['a provider without receipts over HTTP', 'plain', '', 404],
    ['webhook without a signature', 'carrier', '', 403],
    ['webhook with a signature of long ago', 'carrier', signedLike('1000000000'), 403],
    ['webhook with a signature of now, announcing 1 MB', 'carrier', signedLike(now()), 413],
    ['aliyun without its token', 'aliyun', '', 403],
    ['aliyun with another token', `aliyun?token=${'x'.repeat(receiptToken.length)}`, '', 403],
    ['twilio without a signature', 'twilio', '', 403],
    ['twilio with one, announcing 1 MB', 'twilio', 'x-twilio-signature: AAAA\r\n', 413],
  ] as const)('%s', async ([, path, headers, status]) => {
    const head = `POST ${inject('mountAt')}/v1/receipts/${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n`
    const announced = `${head}${headers}Content-Length: 1000000\r\n\r\n`
    expect((await rawHttp(postern.url, announced)).status).toBe(status)
  })

  test('with its token a vendor may send a batch of 500 kB', async () => {
    const reports = JSON.stringify(
      Array.from({ length: 5_000 }, (_, index) => ({
        success: true,
        biz_id: 'one',
        err_code: `E${index}`,
        report_time: '2026-11-01 08:00:00',
        phone_number: '13800138000',
      })),
    )
    expect(reports.length).toBeGreaterThan(500_000)
    const path = `/v1/receipts/aliyun?token=${encodeURIComponent(receiptToken)}`
    expect((await postern.post(path, reports, { key: null })).status).toBe(200)
  })
})

describe('twilio forms', () => {
  async function postForm(fields: number) {
    const form = new URLSearchParams({ MessageSid: `SM${newId()}`, MessageStatus: 'sent' })
    for (let index = 2; index < fields; index++) form.append(`F${index}`, '')
    const signature = signTwilio('token', statusCallback, form)
    const headers = { 'x-twilio-signature': signature }
    return postern.post('/v1/receipts/twilio', form.toString(), { key: null, headers })
  }

  test('with more fields than Twilio ever sends: 400, before anything is signed', async () => {
    expect((await postForm(200)).status).toBe(204)
    expect(await postForm(201)).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  })

  test('above 16 kB: 413', async () => {
    expect((await postForm(40_000)).status).toBe(413)
  })
})

test('a receipt in a query: GET stores it, HEAD is 405 and stores nothing', async () => {
  const id = newId()
  await insertSends(postern, [id], 'sent')
  const { pool } = postern.database
  await pool.query(`UPDATE notice SET provider = 'vonage' WHERE id = $1`, [id])
  const fields = {
    messageId: `m-${id}`,
    status: 'delivered',
    'client-ref': id,
    token: receiptToken,
  }
  const path = `/v1/receipts/vonage?${new URLSearchParams(fields)}`
  const head = await fetch(`${postern.url}${path}`, { method: 'HEAD' })
  expect([head.status, head.headers.get('allow')]).toEqual([405, 'POST, GET'])
  expect((await statesOf(postern, [id])).get(id)).toBe('sent')
  expect((await postern.get(path, { key: null })).status).toBe(200)
  expect((await statesOf(postern, [id])).get(id)).toBe('delivered')
})

test(
  '1,000 receipts shuffled, doubled, too early, contradicted by forgers: every shuffle ends in the same table (I12, F21)',
  () => shuffleReceipts(postern, 125),
  60_000,
)

test('a receipt is answered once it is in the database, not before, and not at all when it cannot be', async () => {
  const reader = {
    maxBodyBytes: 1_000,
    mayBeGenuine: () => true,
    parse: () => ({
      ok: true as const,
      receipts: [],
      reply: { status: 200, contentType: 'text/plain', body: 'ok' },
    }),
  }
  const taking = Promise.withResolvers<void>()
  const take = vi.fn(() => taking.promise)
  const [route] = receiptRoutes({
    readers: new Map([['carrier', reader]]),
    takeReceipts: take,
    takeOptOut: async () => {},
    metrics: testMetrics(),
  })
  const request = { params: { provider: 'carrier' }, query: {}, headers: {}, note() {}, admit() {} }
  const answer = route.run({ ...request, rawBody: Buffer.alloc(0) } as unknown as RouteRequest)
  const answered = vi.fn()
  answer.then(answered, () => {})
  await new Promise((resolve) => setImmediate(resolve))
  expect(take).toHaveBeenCalledOnce()
  expect(answered).not.toHaveBeenCalled()
  taking.reject(new Unavailable('postgresql', undefined))
  await expect(answer).rejects.toBeInstanceOf(Unavailable)
})
