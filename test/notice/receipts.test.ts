import { describe, expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import type { Receipt } from '../../src/base/receipt.ts'
import { createReceipts } from '../../src/notice/receipts.ts'
import { createNoticeStore } from '../../src/notice/store.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { testMetrics } from '../tools/metrics.ts'
import { newWelcome } from '../tools/notices.ts'
import { eventually } from '../tools/wait.ts'

const { url, pool } = await testDatabase()
const database = databaseAt(url, 4)
const store = createNoticeStore(database, { claimTtlMs: 10_000 })
const metrics = testMetrics()
const receipts = createReceipts(database, metrics)

async function claimed(recipient = '+8613800138000', messageId?: string) {
  const id = newId()
  await store.insert(newWelcome({ id, recipient }))
  const { claims } = (await store.claim({ id, claims: 0 })) ?? { claims: 0 }
  const writeSent = (provider = 'a') =>
    store.record({
      id,
      claims,
      state: 'sent',
      attempts: [],
      provider,
      providerMessageId: messageId ?? `m-${id}`,
    })
  return { id, writeSent }
}

async function sent(provider?: string): Promise<string> {
  const { id, writeSent } = await claimed()
  await writeSent(provider)
  return id
}

async function stateOf(id: string) {
  const { rows } = await pool.query('SELECT state, error FROM notice WHERE id = $1', [id])
  return rows[0]
}

async function countOf(result: string): Promise<number> {
  const { values } = await metrics.receipts.get()
  return values.find(({ labels }) => labels.result === result)?.value ?? 0
}

describe('a receipt for a sent notice', () => {
  test.for([
    ['by message id', (id: string): Receipt => ({ messageId: `m-${id}`, outcome: 'delivered' })],
    ['by notice id', (id: string): Receipt => ({ noticeId: id, outcome: 'delivered' })],
    [
      'by both',
      (id: string): Receipt => ({ messageId: `m-${id}`, noticeId: id, outcome: 'delivered' }),
    ],
  ] as const)('%s: delivered', async ([, receiptOf]) => {
    const id = await sent()
    await receipts.take('a', [receiptOf(id)])
    expect(await stateOf(id)).toEqual({ state: 'delivered', error: null })
    // A stored receipt would be tried again, and counted as a repeat.
    const { rows } = await pool.query('SELECT * FROM early_receipt WHERE reference LIKE $1', [
      `%${id}`,
    ])
    expect(rows).toEqual([])
  })

  test('failed: with the reason of the far end', async () => {
    const id = await sent()
    await receipts.take('a', [{ noticeId: id, outcome: 'failed', detail: 'twilio 30003' }])
    expect(await stateOf(id)).toEqual({ state: 'failed', error: 'not_delivered (twilio 30003)' })
  })

  test.each(['sms +86 138-0013-8000 blocked', 'invalid: 13800138000'])(
    'failed, with a reason that names the recipient (%s): without it',
    async (detail) => {
      const id = await sent()
      await receipts.take('a', [{ noticeId: id, outcome: 'failed', detail }])
      expect(await stateOf(id)).toEqual({ state: 'failed', error: 'not_delivered' })
    },
  )

  test('the first word stands: what comes after it changes nothing', async () => {
    const id = await sent()
    await receipts.take('a', [{ noticeId: id, outcome: 'delivered' }])
    await receipts.take('a', [
      { noticeId: id, outcome: 'failed' },
      { noticeId: id, outcome: 'delivered' },
    ])
    expect((await stateOf(id)).state).toBe('delivered')
    await receipts.sweep()
    expect((await stateOf(id)).state).toBe('delivered')
  })

  test.for([
    ['delivered', 'failed'],
    ['failed', 'delivered'],
  ] as const)(
    'two words in one batch, %s and then %s: the first stands',
    async ([first, second]) => {
      const id = await sent()
      await receipts.take('a', [
        { noticeId: id, outcome: first },
        { noticeId: id, outcome: second },
        { messageId: `m-${id}`, outcome: second },
      ])
      expect((await stateOf(id)).state).toBe(first)
    },
  )

  test("another provider's word, or one about another message, changes nothing", async () => {
    const id = await sent('a')
    await receipts.take('b', [{ noticeId: id, outcome: 'failed' }])
    await receipts.take('a', [{ noticeId: id, messageId: 'm-other', outcome: 'failed' }])
    await receipts.sweep()
    expect((await stateOf(id)).state).toBe('sent')
  })

  test('of a further part of a long text, with a separate id: a repeat, not kept as early', async () => {
    const id = await sent()
    const before = await countOf('repeated')
    await receipts.take('a', [
      { noticeId: id, messageId: `m-${id}`, outcome: 'delivered' },
      { noticeId: id, messageId: 'm-part-2', outcome: 'delivered' },
    ])
    expect((await stateOf(id)).state).toBe('delivered')
    expect(await countOf('repeated')).toBe(before + 1)
    expect(await receipts.find(id)).toBeUndefined()
  })
})

test('a receipt that comes before Postern’s `sent` is kept and applied afterwards, once', async () => {
  const { id, writeSent } = await claimed()
  const receipt = { messageId: `m-${id}`, noticeId: id, outcome: 'delivered' } as const
  await receipts.take('a', [receipt, receipt])
  expect((await stateOf(id)).state).toBe('sending')
  expect(await receipts.find(id)).toMatchObject({ provider: 'a', messageId: `m-${id}` })
  await writeSent()
  const before = await countOf('delivered')
  await eventually(async () => {
    await receipts.sweep()
    return (await stateOf(id)).state === 'delivered'
  })
  expect(await receipts.find(id)).toBeUndefined()
  expect(await countOf('delivered')).toBe(before + 1)
})

test.for([
  ['delivered', 'failed'],
  ['failed', 'delivered'],
] as const)(
  'two that came before Postern’s `sent`, %s and then %s: the first stands',
  async ([first, second]) => {
    const { id, writeSent } = await claimed()
    await receipts.take('a', [{ noticeId: id, outcome: first }])
    await receipts.take('a', [{ messageId: `m-${id}`, noticeId: id, outcome: second }])
    await writeSent()
    await pool.query(
      `UPDATE early_receipt SET look_at = now() - interval '1 s' - interval '1 minute' * (reference LIKE 'm-%')::int
       WHERE notice_id = $1`,
      [id],
    )
    await receipts.sweep()
    expect((await stateOf(id)).state).toBe(first)
    expect(await receipts.find(id)).toBeUndefined()
  },
)

test('a refund in a receipt that came before Postern’s `sent` is counted once the notice is sent, and once', async () => {
  const refunds = async () =>
    (await metrics.refunds.get()).values.find(({ labels }) => labels.provider === 'a')?.value ?? 0
  const before = await refunds()
  const { id, writeSent } = await claimed()
  const receipt: Receipt = { messageId: `m-${id}`, outcome: 'failed', isRefunded: true }
  await receipts.take('a', [receipt])
  expect(await refunds()).toBe(before)
  await writeSent()
  await pool.query(`UPDATE early_receipt SET look_at = now() WHERE message_id = $1`, [`m-${id}`])
  await receipts.sweep()
  await receipts.take('a', [receipt])
  expect((await stateOf(id)).state).toBe('failed')
  expect(await refunds()).toBe(before + 1)
})

test('a bounce that follows another receipt before Postern’s `sent` begins its suppression too', async () => {
  const { id, writeSent } = await claimed()
  await receipts.take('a', [{ messageId: `m-${id}`, outcome: 'delivered' }])
  await receipts.take('a', [{ messageId: `m-${id}`, outcome: 'bounced' }])
  await writeSent()
  await pool.query(
    `UPDATE early_receipt SET look_at = now() - interval '1 s' WHERE message_id = $1`,
    [`m-${id}`],
  )
  await receipts.sweep()
  const { rows } = await pool.query(
    `SELECT reason FROM suppression NATURAL JOIN (SELECT recipient_hash FROM notice WHERE id = $1) AS n`,
    [id],
  )
  expect(rows).toEqual([{ reason: 'bounced' }])
  const left = await pool.query('SELECT FROM early_receipt WHERE message_id = $1', [`m-${id}`])
  expect(left.rows).toEqual([])
})

test('early receipts are tried less and less often, and for the last time when their hour has ended', async () => {
  const { id } = await claimed()
  await receipts.take('a', [{ noticeId: id, outcome: 'delivered' }])
  const nextLookAfter = async (age: string) => {
    await pool.query(
      `UPDATE early_receipt SET received_at = now() - $2::interval, look_at = now() - interval '1 s' WHERE notice_id = $1`,
      [id, age],
    )
    await receipts.sweep()
    const { rows } = await pool.query(
      `SELECT extract(epoch FROM look_at - received_at)::float8 / 60 AS "atMinutes"
       FROM early_receipt WHERE notice_id = $1`,
      [id],
    )
    return rows[0]?.atMinutes
  }
  expect(await nextLookAfter('10 minutes')).toBeCloseTo(20, 0)
  expect(await nextLookAfter('40 minutes')).toBeCloseTo(60, 0)
  expect(await nextLookAfter('61 minutes')).toBeUndefined()
})

test('an early receipt does not wait for a thousand of another system that uses the same account', async () => {
  const { id, writeSent } = await claimed()
  await receipts.take('a', [{ messageId: `m-${id}`, outcome: 'delivered' }])
  await writeSent()
  await pool.query(`
    INSERT INTO early_receipt (provider, reference, message_id, outcome, look_at)
    SELECT 'a', 'foreign ' || n, 'foreign ' || n, 'delivered', now() - interval '1 minute'
    FROM generate_series(1, 1000) AS n`)
  await pool.query(`UPDATE early_receipt SET look_at = now() WHERE message_id = $1`, [`m-${id}`])
  await receipts.sweep()
  expect((await stateOf(id)).state).toBe('delivered')
  await pool.query(`DELETE FROM early_receipt WHERE reference LIKE 'foreign %'`)
})

test('a receipt that fits nothing is counted and dropped after an hour', async () => {
  await receipts.take('a', [{ messageId: 'of-somebody-else', outcome: 'delivered' }])
  await receipts.sweep()
  await pool.query(
    `UPDATE early_receipt SET received_at = received_at - interval '61 minutes', look_at = now() - interval '1 s'
     WHERE reference = 'of-somebody-else'`,
  )
  const before = await countOf('unmatched')
  await receipts.sweep()
  await receipts.sweep()
  expect(await countOf('unmatched')).toBe(before + 1)
  const { rows } = await pool.query(
    "SELECT 1 FROM early_receipt WHERE reference = 'of-somebody-else'",
  )
  expect(rows).toHaveLength(0)
})

test('ids no notice can have are counted as malformed and fail no other receipt', async () => {
  const id = await sent()
  await receipts.take('a', [
    { noticeId: "'; DROP TABLE notice", outcome: 'failed' },
    { messageId: 'a\u0000b', outcome: 'failed' },
    { outcome: 'failed' },
    { noticeId: id, outcome: 'delivered', detail: 'fine\u0000' },
  ])
  expect(await countOf('malformed')).toBe(3)
  expect((await stateOf(id)).state).toBe('delivered')
})

describe('a message id that a provider has used twice', () => {
  const fail = (messageId: string, recipients: string[]): Receipt => ({
    ...{ messageId, recipients },
    outcome: 'failed',
  })
  async function twoMessages(messageId: string) {
    const [first, second] = [
      await claimed('+447700900111', messageId),
      await claimed('+3546111234', messageId),
    ]
    await first.writeSent()
    await second.writeSent()
    return [first.id, second.id] as const
  }

  test.each([['447700900111'], ['7700900111'], ['12345678', '447700900111']])(
    'a receipt for %s → the message to this number',
    async (...numbers) => {
      const messageId = newId()
      const [first, second] = await twoMessages(messageId)
      await receipts.take('a', [fail(messageId, numbers)])
      expect((await stateOf(first)).state).toBe('failed')
      expect((await stateOf(second)).state).toBe('sent')
    },
  )

  test('a short national number → its message', async () => {
    const messageId = newId()
    const [first, second] = await twoMessages(messageId)
    await receipts.take('a', [fail(messageId, ['6111234'])])
    expect([(await stateOf(first)).state, (await stateOf(second)).state]).toEqual([
      'sent',
      'failed',
    ])
  })

  test('a receipt for a third number → changes nothing, is counted and reported, and waits for its message', async () => {
    const messageId = newId()
    const ids = await twoMessages(messageId)
    const unused: string[] = []
    const own = createReceipts(database, metrics, [], (...facts) => unused.push(facts.join(' ')))
    const before = await countOf('other_recipient')
    await own.take('a', [fail(messageId, ['447700900999'])])
    expect(await countOf('other_recipient')).toBe(before + 1)
    expect(unused).toEqual(['a other_recipient'])
    for (const id of ids) expect((await stateOf(id)).state).toBe('sent')
    const third = await claimed('+447700900999', messageId)
    await third.writeSent()
    await pool.query("UPDATE early_receipt SET look_at = now() - interval '1 s'")
    await own.sweep()
    expect((await stateOf(third.id)).state).toBe('failed')
    expect(await countOf('other_recipient')).toBe(before + 1)
  })

  test('the other form of the id → matches too', async () => {
    const messageId = newId()
    const [first] = await twoMessages(messageId)
    const receipt = fail('4660', ['447700900111'])
    await receipts.take('a', [{ ...receipt, otherMessageId: messageId }])
    expect((await stateOf(first)).state).toBe('failed')
  })

  test('a receipt without any id → malformed, counted and reported', async () => {
    const unused: string[] = []
    const own = createReceipts(database, metrics, [], (...facts) => unused.push(facts.join(' ')))
    const before = await countOf('malformed')
    await own.take('a', [{ outcome: 'failed' }])
    expect(await countOf('malformed')).toBe(before + 1)
    expect(unused).toEqual(['a malformed'])
  })
})
