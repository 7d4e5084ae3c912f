import { describe, expect, it } from 'vitest'
import { isSignedWebhook, signWebhook } from '../../src/crypto/standard-webhooks.ts'
import webhook, * as given from './cases/webhook.ts'
import { forged, malformed, testVendor } from './vendor.ts'

const { secret } = given
const { message, read, send } = testVendor(given)

describe('webhook', () => {
  const sendTo = (answer: { status: number; body?: string; headers?: object }, over = {}) =>
    send(over, {}, () => ({ body: '', ...answer }) as never)

  it('posts the fields of the contract', async () => {
    const listUnsubscribe = 'https://acme.test/off'
    const over = { endsAtMs: performance.now() + 299_500, listUnsubscribe }
    const { requests } = await sendTo({ status: 202 }, over)
    expect(requests[0]?.headers['webhook-id']).toBe('n-1')
    const { variables, ...posted } = message
    const { validForSeconds, ...body } = JSON.parse(requests[0]?.body ?? '')
    expect(body).toEqual({ ...posted, listUnsubscribe })
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
    const url = (port: number) => ({ url: `http://ada:p%40ss@127.0.0.1:${port}/send?key=a%20b` })
    const { requests } = await send({}, url, () => ({ status: 204, body: '' }))
    expect(requests[0]?.headers.authorization).toBe(`Basic ${btoa('ada:p@ss')}`)
    expect(requests[0]?.query.get('key')).toBe('a b')
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
      const entry = { url: 'http://127.0.0.1/', secret: weak }
      expect(webhook.settings.safeParse(entry).success).toBe(false)
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
    const receivedAt = Date.now()
    const parse = (value: unknown, atMs = receivedAt, key = secret) => {
      const body = typeof value === 'string' ? value : JSON.stringify(value)
      return read(body, { headers: { ...signWebhook(key, 'r-1', atMs, body) }, receivedAt })
    }
    const reply = { status: 204, contentType: 'text/plain', body: '' }

    it('reads one or many', () => {
      const one = { id: 'm-1', noticeId: 'n-1', outcome: 'delivered', at: '2026-11-01T08:00:00Z' }
      const { id: messageId, at, ...members } = one
      expect(parse(one)).toEqual({
        ok: true,
        receipts: [{ messageId, ...members, at: Date.parse(at) }],
        reply,
      })
      const two = [{ id: 'm-1', outcome: 'failed', reason: 'ABSENT' }, one]
      expect(parse(two)).toMatchObject({
        receipts: [{ messageId: 'm-1', outcome: 'failed', detail: 'ABSENT' }, {}],
      })
    })

    it('reads a receipt without its reason, if that is a sentence', () => {
      const receipts = [{ messageId: 'm-1', outcome: 'failed' }]
      for (const reason of ['Absent subscriber, try later', 'x'.repeat(81), '', 7, null]) {
        expect(parse({ id: 'm-1', outcome: 'failed', reason })).toEqual({
          ok: true,
          receipts,
          reply,
        })
      }
    })

    it('reads the others of a list with one that is no receipt, which has no id', () => {
      const [good, bad] = [
        { id: 'm-1', outcome: 'delivered' },
        { id: 'm-2', outcome: 'maybe' },
      ]
      expect(parse([good, bad])).toMatchObject({
        ok: true,
        receipts: [{ messageId: 'm-1', outcome: 'delivered' }, { outcome: 'failed' }],
      })
    })

    it('takes an empty list for no receipts', () => {
      expect(parse([])).toMatchObject({ ok: true, receipts: [] })
    })

    it.each(['not json', [{ outcome: 'delivered' }], { id: 'm', outcome: 'maybe' }, null])(
      'calls %j malformed',
      (value) => expect(parse(value)).toEqual(malformed),
    )

    it('refuses another secret, another body, an old or future moment and missing headers (I12)', () => {
      const good = { id: 'm-1', outcome: 'delivered' }
      const headers = { ...signWebhook(secret, 'r-1', receivedAt, JSON.stringify(good)) }
      expect(read({ ...good, id: 'm-2' }, { headers, receivedAt })).toEqual(forged)
      expect(read(good, { receivedAt })).toEqual(forged)
      expect(parse({}, receivedAt - 301_000)).toEqual(forged)
      expect(parse({}, receivedAt + 301_000)).toEqual(forged)
      expect(parse({}, receivedAt, 'another secret entirely')).toEqual(forged)
    })

    it('takes the right one of several signatures', () => {
      const headers = signWebhook(secret, 'r', receivedAt, '{}')
      const several = { ...headers, 'webhook-signature': `v1,bad ${headers['webhook-signature']}` }
      expect(isSignedWebhook(secret, several, '{}', receivedAt)).toBe(true)
    })
  })
})
