import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { openDatabase } from '../../src/db/database.ts'
import { noticeStates } from '../../src/notice/states.ts'
import { createNoticeStore, type NewNotice } from '../../src/notice/store.ts'
import { testDatabase } from '../support/database.ts'
import { releaseLater } from '../support/release.ts'

const { url, pool } = await testDatabase()
const claimMs = 10_000

/** A process' own view of the table. */
function openStore() {
  const database = openDatabase(url, { maxConnections: 3, onError: () => {} })
  releaseLater(() => database.close())
  return createNoticeStore(database, { claimMs })
}
const store = openStore()

function newNotice(facts: Partial<NewNotice> = {}): NewNotice {
  return {
    id: newId(),
    app: 'default',
    kind: 'captcha',
    channel: 'sms',
    recipient: '+8613800138000',
    recipientHash: randomBytes(16),
    scene: 'login',
    template: 'captcha',
    locale: 'en',
    sealedParams: Buffer.from('sealed'),
    ttlMs: 300_000,
    ...facts,
  }
}

async function created(facts: Partial<NewNotice> = {}): Promise<string> {
  const notice = newNotice(facts)
  expect(await store.create(notice)).toBeInstanceOf(Date)
  return notice.id
}

async function rowOf(id: string) {
  const { rows } = await pool.query('SELECT * FROM notice WHERE id = $1', [id])
  return rows[0]
}

/** As if `ms` had passed since the row was last touched. */
const letPass = (id: string, ms: number) =>
  pool.query(`UPDATE notice SET due_at = due_at - $2 * interval '1 ms' WHERE id = $1`, [id, ms])

const attempt = {
  provider: 'sandbox',
  at: new Date().toISOString(),
  outcome: 'unavailable',
  durationMs: 3,
} as const

describe('create', () => {
  test('a row is committed as given, pending and due; its time runs by the clock of PostgreSQL (I17)', async () => {
    const notice = newNotice({
      scene: null,
      kind: 'notice',
      channel: 'email',
      recipient: 'a@b.test',
    })
    const createdAt = await store.create(notice)
    const row = await rowOf(notice.id)
    expect(row).toMatchObject({
      state: 'pending',
      kind: 'notice',
      channel: 'email',
      recipient: 'a@b.test',
      scene: null,
      claims: 0,
      attempts: [],
    })
    expect(row.due_at).toEqual(row.created_at)
    expect(row.created_at).toEqual(createdAt)
    expect(row.expires_at - row.created_at).toBe(notice.ttlMs)
    expect(row.sealed_params.toString()).toBe('sealed')
  })

  test('an id that is there already makes no second row and says so, in one batch and in two', async () => {
    const notice = newNotice()
    const twin = { ...notice, recipient: '+8613900139000' }
    const both = await Promise.all([store.create(notice), store.create(notice)])
    expect(both.filter((createdAt) => createdAt === null)).toHaveLength(1)
    expect(await store.create(twin)).toBe(null)
    expect((await rowOf(notice.id)).recipient).toBe(notice.recipient)
  })

  test('a bad row fails alone among the rows of its batch', async () => {
    const notices = Array.from({ length: 20 }, () => newNotice())
    const bad = newNotice({ channel: 'fax' as 'sms' })
    const settled = await Promise.allSettled(
      [...notices, bad].map((notice) => store.create(notice)),
    )
    expect(settled.map(({ status }) => status)).toEqual([
      ...notices.map(() => 'fulfilled'),
      'rejected',
    ])
    expect(await rowOf(bad.id)).toBe(undefined)
  })
})

describe('claim', () => {
  test('of 50 workers at once one gets the notice', async () => {
    const id = await created()
    const stores = [store, openStore(), openStore()]
    const claims = await Promise.all(
      Array.from({ length: 50 }, (_, index) => stores[index % 3]?.claim(id)),
    )
    const [held, ...more] = claims.filter((claimed) => claimed !== null)
    expect(more).toEqual([])
    expect(held).toMatchObject({ id, claim: 1, attempts: [], recipient: '+8613800138000' })
    expect(held?.remainingMs).toBeGreaterThan(290_000)
    expect(held?.remainingMs).toBeLessThanOrEqual(300_000)
    expect((await rowOf(id)).state).toBe('sending')
  })

  test('a claim that ended is taken over, with the lost try on the account', async () => {
    const id = await created()
    await store.claim(id)
    expect(await store.claim(id)).toBe(null)
    await letPass(id, claimMs + 1)
    const second = await store.claim(id)
    expect(second).toMatchObject({
      claim: 2,
      attempts: [{ provider: null, outcome: 'unknown', detail: 'the worker was lost' }],
    })
    expect(Date.parse(second?.attempts[0]?.at ?? '')).toBeGreaterThan(Date.now() - 60_000)
  })

  test('keepClaim: holds a claim that is current and no other', async () => {
    const id = await created()
    await store.claim(id)
    await letPass(id, claimMs - 1_000)
    expect(await store.keepClaim(id, 1)).toBe(true)
    await letPass(id, claimMs - 1_000)
    expect(await store.claim(id)).toBe(null)
    await letPass(id, claimMs)
    await store.claim(id)
    expect(await store.keepClaim(id, 1)).toBe(false)
    expect(await store.keepClaim(id, 2)).toBe(true)
  })

  test('an unknown id is nothing to do', async () => {
    expect(await store.claim(newId())).toBe(null)
  })
})

describe('record', () => {
  test('sent: final for the queue, times and provider written, the sealed variables erased (I14)', async () => {
    const id = await created()
    await store.claim(id)
    const accepted = { ...attempt, outcome: 'accepted' } as const
    const outcome = { id, claim: 1, state: 'sent', attempts: [accepted] } as const
    expect(await store.record({ ...outcome, provider: 'mail', providerMessageId: 'm1' })).toBe(true)
    const row = await rowOf(id)
    expect(row).toMatchObject({
      state: 'sent',
      provider: 'mail',
      provider_message_id: 'm1',
      attempts: [accepted],
      due_at: null,
      sealed_params: null,
      error: null,
    })
    expect(row.sent_at).toEqual(row.finished_at)
    expect(await store.claim(id)).toBe(null)
  })

  test.each(['failed', 'expired'] as const)(
    '%s: final, with its reason and without a sending time',
    async (state) => {
      const id = await created()
      await store.claim(id)
      expect(await store.record({ id, claim: 1, state, attempts: [], error: 'why' })).toBe(true)
      expect(await rowOf(id)).toMatchObject({
        state,
        error: 'why',
        sent_at: null,
        sealed_params: null,
        finished_at: expect.any(Date),
      })
    },
  )

  test('pending: due again after the pause, variables kept, attempts added up', async () => {
    const id = await created()
    for (const claim of [1, 2]) {
      await store.claim(id)
      const outcome = {
        id,
        claim,
        state: 'pending',
        attempts: [attempt],
        retryInMs: 1_500,
      } as const
      expect(await store.record(outcome)).toBe(true)
    }
    const row = await rowOf(id)
    expect(row.attempts).toEqual([attempt, attempt])
    expect(row.sealed_params.toString()).toBe('sealed')
    expect(row.finished_at).toBe(null)
    expect(row.due_at.getTime() - Date.now()).toBeLessThanOrEqual(1_500)
  })

  test('a worker that lost its claim writes nothing (the fence)', async () => {
    const id = await created()
    await store.claim(id)
    await letPass(id, claimMs + 1)
    await store.claim(id)
    expect(await store.record({ id, claim: 1, state: 'sent', attempts: [] })).toBe(false)
    expect((await rowOf(id)).state).toBe('sending')
    expect(await store.record({ id, claim: 2, state: 'sent', attempts: [] })).toBe(true)
    expect(await store.record({ id, claim: 2, state: 'failed', attempts: [] })).toBe(false)
    expect((await rowOf(id)).state).toBe('sent')
  })

  test('outcomes of one batch land each on its own row', async () => {
    const ids = await Promise.all(Array.from({ length: 30 }, () => created()))
    await Promise.all(ids.map((id) => store.claim(id)))
    await Promise.all(
      ids.map((id, index) =>
        store.record({ id, claim: 1, state: 'sent', attempts: [], providerMessageId: `m${index}` }),
      ),
    )
    const rows = await Promise.all(ids.map(rowOf))
    expect(rows.map((row) => row.provider_message_id)).toEqual(ids.map((_, index) => `m${index}`))
  })
})

describe('the trigger', () => {
  const legal = new Set([
    'pending→sending',
    'pending→failed',
    'pending→expired',
    'sending→pending',
    'sending→sent',
    'sending→failed',
    'sending→expired',
    'sent→delivered',
    'sent→failed',
  ])
  /** A legal way to each state. */
  const ways = {
    pending: [],
    sending: ['sending'],
    sent: ['sending', 'sent'],
    delivered: ['sending', 'sent', 'delivered'],
    failed: ['failed'],
    expired: ['expired'],
  } as const

  const moveTo = (id: string, state: string) =>
    pool.query(
      `UPDATE notice SET state = $2, sealed_params = NULL,
         due_at = CASE WHEN $2 IN ('pending', 'sending') THEN now() END WHERE id = $1`,
      [id, state],
    )

  const moves = noticeStates.flatMap((from) =>
    noticeStates.filter((to) => to !== from).map((to) => [from, to] as const),
  )
  test.each(moves)('%s to %s: allowed or refused as states.ts draws it', async (from, to) => {
    const id = await created()
    for (const state of ways[from]) await moveTo(id, state)
    if (legal.has(`${from}→${to}`)) await moveTo(id, to)
    else await expect(moveTo(id, to)).rejects.toMatchObject({ code: '23514' })
    expect((await rowOf(id)).state).toBe(legal.has(`${from}→${to}`) ? to : from)
  })

  test('a finished row can neither keep its variables nor be due', async () => {
    const id = await created()
    const sql = `UPDATE notice SET state = 'failed', due_at = NULL WHERE id = $1`
    await expect(pool.query(sql, [id])).rejects.toThrow(/notice_sealed_while_open/)
    const dueSql = `UPDATE notice SET state = 'failed', sealed_params = NULL WHERE id = $1`
    await expect(pool.query(dueSql, [id])).rejects.toThrow(/notice_due_while_open/)
  })
})

describe('takeOverdue', () => {
  test('four copies at once take every overdue notice exactly once (I11)', async () => {
    const ids = await Promise.all(Array.from({ length: 400 }, () => created()))
    await Promise.all(ids.map((id) => letPass(id, 60_000)))
    const copies = [store, openStore(), openStore(), openStore()]
    const taken: string[] = []
    for (;;) {
      const rounds = await Promise.all(copies.map((copy) => copy.takeOverdue(37, 5_000, 15_000)))
      const found = rounds.flat().map(({ id }) => id)
      if (found.length === 0) break
      taken.push(...found)
    }
    expect(taken.filter((id) => ids.includes(id)).sort()).toEqual([...ids].sort())
    expect(new Set(taken).size).toBe(taken.length)
  })

  test('takes what is overdue by the grace and is open, nothing else, and not again before its time', async () => {
    const [fresh, late, abandonedClaim, held, finished] = await Promise.all([
      created(),
      created({ kind: 'notice', channel: 'email' }),
      created(),
      created(),
      created(),
    ])
    await store.claim(abandonedClaim)
    await store.claim(held)
    await store.claim(finished)
    await store.record({ id: finished, claim: 1, state: 'failed', attempts: [] })
    await letPass(late, 5_100)
    await letPass(abandonedClaim, claimMs + 5_100)
    const taken = await store.takeOverdue(1_000, 5_000, 15_000)
    const mine = taken.filter(({ id }) =>
      [fresh, late, abandonedClaim, held, finished].includes(id),
    )
    expect(mine.sort((a, b) => (a.id < b.id ? -1 : 1))).toEqual(
      [
        { id: late, channel: 'email', kind: 'notice' },
        { id: abandonedClaim, channel: 'sms', kind: 'captcha' },
      ].sort((a, b) => (a.id < b.id ? -1 : 1)),
    )
    expect(await rowOf(abandonedClaim)).toMatchObject({
      state: 'pending',
      attempts: [{ outcome: 'unknown', provider: null }],
    })
    expect((await rowOf(late)).attempts).toEqual([])
    expect(await store.takeOverdue(1_000, 5_000, 15_000)).toEqual([])
    await letPass(late, 20_100)
    expect((await store.takeOverdue(1_000, 5_000, 15_000)).map(({ id }) => id)).toEqual([late])
  })
})

test('abandon: closes a row nobody has claimed and leaves one that a worker holds', async () => {
  const [free, held, retried] = [await created(), await created(), await created()]
  await store.claim(held)
  await store.claim(retried)
  await store.record({ id: retried, claim: 1, state: 'pending', attempts: [], retryInMs: 0 })
  await store.abandon([free, held, retried, newId()])
  expect(await rowOf(free)).toMatchObject({
    state: 'failed',
    error: 'abandoned',
    sealed_params: null,
  })
  expect((await rowOf(held)).state).toBe('sending')
  expect((await rowOf(retried)).state).toBe('pending')
})

test('oldestOpenSeconds: the age of the oldest open notice of each kind, finished ones not counted', async () => {
  const other = await testDatabase()
  const database = openDatabase(other.url, { maxConnections: 2, onError: () => {} })
  releaseLater(() => database.close())
  const own = createNoticeStore(database, { claimMs })
  const ageOf = async (kind: string) =>
    (await own.oldestOpenSeconds()).find((each) => each.kind === kind)?.value
  expect([await ageOf('captcha'), await ageOf('notice')]).toEqual([0, 0])
  const [old, young] = [newNotice({ kind: 'captcha' }), newNotice({ kind: 'captcha' })]
  const bulk = newNotice({ kind: 'notice' })
  for (const [notice, ageSeconds] of [
    [old, 90] as const,
    [young, 30] as const,
    [bulk, 900] as const,
  ]) {
    await own.create(notice)
    await other.pool.query(
      `UPDATE notice SET created_at = created_at - $2 * interval '1 s' WHERE id = $1`,
      [notice.id, ageSeconds],
    )
  }
  expect(await ageOf('captcha')).toBeCloseTo(90, 0)
  await own.claim(old.id)
  await own.record({ id: old.id, claim: 1, state: 'failed', attempts: [] })
  expect(await ageOf('captcha')).toBeCloseTo(30, 0)
  expect(await ageOf('notice')).toBeCloseTo(900, 0)
})
