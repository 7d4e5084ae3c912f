import { randomBytes } from 'node:crypto'
import { describe, expect, inject, test, vi } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { Unavailable } from '../../src/base/problems.ts'
import { signWebhook } from '../../src/crypto/standard-webhooks.ts'
import { receiptRoute } from '../../src/http/receipts.ts'
import { isSendRoute, type RouteRequest } from '../../src/http/route.ts'
import { createMetrics } from '../../src/metrics/metrics.ts'
import { signTwilio } from '../../src/providers/twilio/signature.ts'
import { noLimits, type Postern, startPostern } from '../support/postern.ts'
import { eventually } from '../support/wait.ts'
import { rawHttp } from './raw-http.ts'

const secret = 'a secret both sides know'
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

interface Receipt {
  id?: string
  noticeId?: string
  outcome: 'delivered' | 'failed'
}

function postReceipts(body: Receipt[] | string, by = secret, to = 'carrier') {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const headers = { ...signWebhook(by, newId(), Date.now(), text) }
  return postern.post(`/v1/receipts/${to}`, text, { key: null, headers })
}

/** Rows as a worker left them: in its hands, or sent by `carrier`. */
async function insertNotices(ids: readonly string[], state: 'sending' | 'sent'): Promise<void> {
  await postern.database.pool.query(
    `INSERT INTO notice (id, app, kind, channel, recipient, recipient_hash, template, locale, state,
                         due_at, claims, provider, provider_message_id, created_at, expires_at)
     SELECT id, 'default', 'notice', 'sms', '+8613800138000', $2, 'welcome', 'en', $3,
            CASE WHEN $3 = 'sending' THEN now() + interval '1 hour' END, 1,
            CASE WHEN $3 = 'sent' THEN 'carrier' END, CASE WHEN $3 = 'sent' THEN 'm-' || id END,
            now(), now() + interval '1 hour'
     FROM unnest($1::uuid[]) AS new (id)`,
    [ids, randomBytes(16), state],
  )
}

async function statesOf(ids: readonly string[]): Promise<Map<string, string>> {
  const { rows } = await postern.database.pool.query(
    'SELECT id, state FROM notice WHERE id = ANY($1::uuid[])',
    [ids],
  )
  return new Map(rows.map(({ id, state }) => [id, state]))
}

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
    await insertNotices([id], 'sent')
    const reply = await postReceipts([{ noticeId: id, outcome: 'delivered' }])
    expect(reply.status).toBe(204)
    expect((await statesOf([id])).get(id)).toBe('delivered')
    const { body } = await postern.get(`/v1/notices/${id}`)
    expect(body).toMatchObject({ state: 'delivered', provider: 'carrier' })
  })

  test('a forged one is refused with 403, counted, and changes nothing', async () => {
    const id = newId()
    await insertNotices([id], 'sent')
    const before = await metric(postern, 'forged')
    const reply = await postReceipts(
      [{ noticeId: id, outcome: 'failed' }],
      'another secret, as long',
    )
    expect(reply.status).toBe(403)
    expect(reply.body.code).toBe('forbidden')
    expect((await statesOf([id])).get(id)).toBe('sent')
    expect(await metric(postern, 'forged')).toBe(before + 1)
  })

  test('one for an id nobody knows is taken', async () => {
    expect((await postReceipts([{ noticeId: newId(), outcome: 'failed' }])).status).toBe(204)
  })

  test.for([
    ['signed but no receipt', () => postReceipts('{"hello":"world"}'), 400],
    ['an empty body', () => postReceipts(''), 400],
    ['no such provider', () => postReceipts([], secret, 'nobody'), 404],
    ['a provider without receipts over HTTP', () => postReceipts([], secret, 'plain'), 404],
    ['a body above 48 kB', () => postReceipts('x'.repeat(50_000)), 413],
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

test('10,000 receipts shuffled, doubled, too early, contradicted by forgers: every shuffle ends in the same table (I12, F21)', async () => {
  const notices = 1_250
  const finals: string[][] = []
  for (let shuffle = 0; shuffle < 2; shuffle++) {
    const ids = Array.from({ length: notices }, () => newId())
    const early = ids.filter((_, index) => index % 5 === 0)
    await insertNotices(
      ids.filter((_, index) => index % 5 !== 0),
      'sent',
    )
    await insertNotices(early, 'sending')
    const outcomeOf = (index: number) => (index % 3 === 0 ? 'failed' : 'delivered')
    // Of every eight, six are genuine (by either id, or both) and two say the opposite.
    const calls = ids.flatMap((id, index) => {
      const outcome = outcomeOf(index)
      const genuine: Receipt[] = [
        { id: `m-${id}`, outcome },
        { noticeId: id, outcome },
        { id: `m-${id}`, noticeId: id, outcome },
      ]
      const opposite = outcome === 'failed' ? 'delivered' : 'failed'
      const forged: Receipt = { noticeId: id, outcome: opposite }
      return [...genuine, ...genuine, forged, forged].map((receipt) => ({
        receipt,
        isForged: receipt === forged,
      }))
    })
    expect(calls).toHaveLength(8 * notices)
    for (let at = calls.length - 1; at > 0; at--) {
      const other = Math.floor(Math.random() * (at + 1))
      ;[calls[at], calls[other]] = [
        calls[other] as (typeof calls)[0],
        calls[at] as (typeof calls)[0],
      ]
    }
    // Vendors send some at a time; the forgers' travel apart.
    const batches: { receipts: Receipt[]; isForged: boolean }[] = []
    for (const isForged of [false, true]) {
      const some = calls.filter((call) => call.isForged === isForged).map(({ receipt }) => receipt)
      for (let at = 0; at < some.length; at += 10) {
        batches.push({ receipts: some.slice(at, at + 10), isForged })
      }
    }
    batches.sort(() => Math.random() - 0.5)
    const halfway = Math.floor(batches.length / 2)
    const post = async (part: typeof batches) => {
      const left = [...part]
      const loop = async () => {
        for (let batch = left.pop(); batch; batch = left.pop()) {
          const reply = await postReceipts(
            batch.receipts,
            batch.isForged ? 'a forged secret, as long' : secret,
          )
          expect(reply.status).toBe(batch.isForged ? 403 : 204)
        }
      }
      await Promise.all(Array.from({ length: 16 }, loop))
    }
    await post(batches.slice(0, halfway))
    // Only now the workers write what they had sent.
    await postern.database.pool.query(
      `UPDATE notice SET state = 'sent', due_at = NULL, provider = 'carrier', provider_message_id = 'm-' || id
       WHERE id = ANY($1::uuid[])`,
      [early],
    )
    await post(batches.slice(halfway))
    const final = await eventually(
      async () => {
        const states = await statesOf(ids)
        return ![...states.values()].includes('sent') && ids.map((id) => states.get(id) as string)
      },
      { withinMs: 30_000, everyMs: 200 },
    )
    expect(final).toEqual(ids.map((_, index) => outcomeOf(index)))
    finals.push(final)
  }
  expect(finals[0]).toEqual(finals[1])
}, 120_000)

test('a receipt is answered once it is in the database, not before, and not at all when it can not be', async () => {
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
  const route = receiptRoute({
    readers: new Map([['carrier', reader]]),
    takeReceipts: take,
    metrics: createMetrics({ process: 'api' }),
  })
  const request = { params: { provider: 'carrier' }, query: {}, headers: {}, note: () => {} }
  if (isSendRoute(route)) throw new Error('receipts make no notice')
  const answer = route.run({ ...request, rawBody: Buffer.alloc(0) } as unknown as RouteRequest)
  const answered = vi.fn()
  answer.then(answered, () => {})
  await new Promise((resolve) => setImmediate(resolve))
  expect(take).toHaveBeenCalledOnce()
  expect(answered).not.toHaveBeenCalled()
  taking.reject(new Unavailable('postgresql', undefined))
  await expect(answer).rejects.toBeInstanceOf(Unavailable)
})
