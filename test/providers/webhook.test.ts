import { afterEach, describe, expect, it } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import type { ReceiptRequest } from '../../src/base/receipt.ts'
import { isSignedWebhook, signWebhook } from '../../src/crypto/standard-webhooks.ts'
import webhook, * as given from './cases/webhook.ts'
import { startHttpFarEnd } from './far-ends/http.ts'
import { testConformance } from './test-conformance.ts'

const { secret } = given
const { message } = given.conformance

testConformance(given)

describe('webhook', () => {
  const never = new AbortController().signal
  let close: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const end of close.reverse()) await end()
    close = []
  })

  async function sendTo(answer: { status: number; body?: string; headers?: object }, over = {}) {
    const farEnd = await startHttpFarEnd(() => ({ body: '', ...answer }) as never)
    const settings = webhook.settings.parse({ url: `http://127.0.0.1:${farEnd.port}/`, secret })
    const provider = webhook.create('hook', settings, {
      timeoutMs: 20_000,
      concurrency: 100,
      clock: Date.now,
    })
    close.push(farEnd.close, provider.close)
    const result = await provider.send({ ...message, ...over, noticeId: newId() }, never)
    return { result, farEnd }
  }

  it('posts the fields of the contract', async () => {
    const { farEnd } = await sendTo(
      { status: 202 },
      {
        endsAtMs: performance.now() + 299_500,
        listUnsubscribe: 'https://acme.test/off',
      },
    )
    const { variables, ...posted } = message
    const { validForSeconds, ...body } = JSON.parse(farEnd.requests[0]?.body ?? '')
    expect(body).toEqual({
      noticeId: farEnd.requests[0]?.headers['webhook-id'],
      ...posted,
      listUnsubscribe: 'https://acme.test/off',
    })
    expect(validForSeconds).toSatisfy(Number.isInteger)
    expect(validForSeconds).toBeLessThanOrEqual(299)
    expect(validForSeconds).toBeGreaterThan(280)
  })

  it.each([
    [200, '{"id":"m-1"}', { kind: 'accepted', messageId: 'm-1' }],
    [204, '', { kind: 'accepted' }],
    [200, 'not json', { kind: 'accepted' }],
    [400, '', { kind: 'rejected', detail: 'webhook HTTP 400' }],
    [404, '', { kind: 'rejected', detail: 'webhook HTTP 404' }],
    [401, '', { kind: 'unavailable', detail: 'webhook HTTP 401' }],
    [302, '', { kind: 'unavailable', detail: 'webhook HTTP 302' }],
    [500, '', { kind: 'unavailable', detail: 'webhook HTTP 500' }],
    [504, '', { kind: 'unknown', detail: 'webhook HTTP 504' }],
    [524, '', { kind: 'unknown', detail: 'webhook HTTP 524' }],
    [410, '', { kind: 'unavailable', detail: 'webhook HTTP 410' }],
  ])('takes %i %s as what it means', async (status, body, expected) => {
    expect((await sendTo({ status, body })).result).toEqual(expected)
  })

  it('a login in the address → Authorization: Basic, and the address keeps its query', async () => {
    const farEnd = await startHttpFarEnd(() => ({ status: 204, body: '' }))
    const url = `http://ada:p%40ss@127.0.0.1:${farEnd.port}/send?key=a%20b`
    const provider = webhook.create('hook', webhook.settings.parse({ url, secret }), {
      timeoutMs: 20_000,
      concurrency: 100,
      clock: Date.now,
    })
    close.push(farEnd.close, provider.close)
    await provider.send({ ...message, noticeId: newId() }, never)
    expect(farEnd.requests[0]?.headers.authorization).toBe(`Basic ${btoa('ada:p@ss')}`)
    expect(farEnd.requests[0]?.query.get('key')).toBe('a b')
  })

  it.each([`v1,${secret}`, ` ${secret}`])(
    'the secret %j is refused, because its bytes would be another key',
    (wrong) => {
      const entry = { url: 'https://hook.acme.test', secret: wrong }
      expect(webhook.settings.safeParse(entry).success).toBe(false)
    },
  )

  it('waits as long as Retry-After says, in seconds or as a date (F17)', async () => {
    const seconds = await sendTo({ status: 429, headers: { 'retry-after': '7' } })
    expect(seconds.result).toMatchObject({ kind: 'throttled', retryAfterMs: 7_000 })
    const date = new Date(Date.now() + 60_000).toUTCString()
    const { result } = await sendTo({ status: 429, headers: { 'retry-after': date } })
    const { retryAfterMs } = result as { retryAfterMs: number }
    expect(retryAfterMs).toBeGreaterThan(57_000)
    expect(retryAfterMs).toBeLessThanOrEqual(60_000)
  })

  it.each([
    [429, { 'retry-after': '7' }, { kind: 'postponed', retryAfterMs: 7_000 }],
    [429, {}, { kind: 'postponed' }],
    [503, {}, { kind: 'postponed' }],
    [500, {}, { kind: 'unavailable' }],
    [422, {}, { kind: 'rejected' }],
  ])('takes %i with %j, about the recipient, for %j', async (status, headers, expected) => {
    const body = '{"about":"recipient"}'
    const { kind, retryAfterMs } = (await sendTo({ status, body, headers })).result as {
      kind: string
      retryAfterMs?: number
    }
    expect({ kind, ...(retryAfterMs ? { retryAfterMs } : {}) }).toEqual(expected)
  })

  it('does not read an answer without end', async () => {
    const { result } = await sendTo({ status: 200, body: 'x'.repeat(1_000_000) })
    expect(result).toEqual({ kind: 'unknown', detail: 'webhook answer too large' })
  })

  it.each(['', 'short', 'whsec_', 'whsec_????????????????????????', 'whsec_c2hvcnQ='])(
    'refuses the secret %j',
    (weak) => {
      expect(webhook.settings.safeParse({ url: 'http://127.0.0.1/', secret: weak }).success).toBe(
        false,
      )
    },
  )

  it('signs as the specification shows', () => {
    // The example of the Standard Webhooks specification.
    const headers = signWebhook(
      'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      'msg_p5jXN8AQM9LWM0D4loKWxJek',
      1_614_265_330_000,
      '{"test": 2432232314}',
    )
    expect(headers['webhook-signature']).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
  })

  describe('receipts', () => {
    const settings = webhook.settings.parse({ url: 'http://127.0.0.1/', secret })
    const receivedAt = Date.now()
    const parse = (request: ReceiptRequest) =>
      webhook.createReceiptReader?.(settings).parse(request)

    function request(value: unknown, atMs = receivedAt, key = secret): ReceiptRequest {
      const rawBody = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
      const headers = { ...signWebhook(key, 'r-1', atMs, rawBody) }
      return {
        headers,
        rawBody,
        query: {},
        receivedAt,
      }
    }

    it('reads one or many', () => {
      const one = { id: 'm-1', noticeId: 'n-1', outcome: 'delivered', at: '2026-11-01T08:00:00Z' }
      expect(parse(request(one))).toEqual({
        ok: true,
        receipts: [
          {
            messageId: 'm-1',
            noticeId: 'n-1',
            outcome: 'delivered',
            at: Date.parse('2026-11-01T08:00:00Z'),
          },
        ],
        reply: { status: 204, contentType: 'text/plain', body: '' },
      })
      const two = [{ id: 'm-1', outcome: 'failed', reason: 'ABSENT' }, one]
      expect(parse(request(two))).toMatchObject({
        receipts: [{ messageId: 'm-1', outcome: 'failed', detail: 'ABSENT' }, {}],
      })
    })

    it('reads a receipt without its reason, if that is a sentence', () => {
      const failed = { id: 'm-1', outcome: 'failed' }
      for (const reason of ['Absent subscriber, try later', 'x'.repeat(81), '', 7, null]) {
        expect(parse(request({ ...failed, reason }))).toEqual({
          ok: true,
          receipts: [{ messageId: 'm-1', outcome: 'failed' }],
          reply: { status: 204, contentType: 'text/plain', body: '' },
        })
      }
    })

    it('reads the others of a list with one that is no receipt, which has no id', () => {
      const list = [
        { id: 'm-1', outcome: 'delivered' },
        { id: 'm-2', outcome: 'maybe' },
      ]
      expect(parse(request(list))).toMatchObject({
        ok: true,
        receipts: [{ messageId: 'm-1', outcome: 'delivered' }, { outcome: 'failed' }],
      })
    })

    it('takes an empty list for no receipts', () => {
      expect(parse(request([]))).toMatchObject({ ok: true, receipts: [] })
    })

    it.each(['not json', [{ outcome: 'delivered' }], { id: 'm', outcome: 'maybe' }, null])(
      'calls %j malformed',
      (value) => {
        expect(parse(request(value))).toEqual({ ok: false, reason: 'malformed' })
      },
    )

    it('refuses another secret, another body, an old or future moment and missing headers (I12)', () => {
      const good = request({ id: 'm-1', outcome: 'delivered' })
      const forged = { ok: false, reason: 'forged' }
      expect(
        parse({ ...good, rawBody: Buffer.from('{"id":"m-2","outcome":"delivered"}') }),
      ).toEqual(forged)
      expect(parse({ ...good, headers: {} })).toEqual(forged)
      expect(parse(request({}, receivedAt - 301_000))).toEqual(forged)
      expect(parse(request({}, receivedAt + 301_000))).toEqual(forged)
      expect(parse(request({}, receivedAt, 'another secret entirely'))).toEqual(forged)
    })

    it('takes the right one of several signatures', () => {
      const headers = signWebhook(secret, 'r', receivedAt, '{}')
      const several = { ...headers, 'webhook-signature': `v1,bad ${headers['webhook-signature']}` }
      expect(isSignedWebhook(secret, several, '{}', receivedAt)).toBe(true)
    })
  })
})
