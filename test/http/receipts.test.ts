import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { signWebhook } from '../../src/base/standard-webhooks.ts'
import { noLimits, type Postern, startPostern } from '../support/postern.ts'
import { eventually } from '../support/wait.ts'

const secret = 'a secret both sides know'
const postern = await startPostern({
  roles: { api: true, worker: true },
  policyFile: {
    policies: noLimits,
    providers: {
      carrier: { kind: 'webhook', url: 'http://127.0.0.1:9/send', secret },
      plain: { kind: 'sandbox' },
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
    ['a body above 1 MB', () => postReceipts('x'.repeat(1_100_000)), 413],
  ] as const)('%s', async ([, send, status]) => {
    expect((await send()).status).toBe(status)
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
