import { randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import type { NewNotice } from '../../src/notice/insert.ts'
import { noticeStates } from '../../src/notice/states.ts'
import { createNoticeStore } from '../../src/notice/store.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { newNotice } from '../tools/notices.ts'

const { url, pool } = await testDatabase()
const claimTtlMs = 10_000

/** A store with a separate connection, like another process. */
function openStore() {
  return createNoticeStore(databaseAt(url, 3), { claimTtlMs })
}
const store = openStore()

/** A store with a separate table. */
async function openApart() {
  const other = await testDatabase()
  return { other, own: createNoticeStore(databaseAt(other.url, 2), { claimTtlMs }) }
}

async function created(facts: Partial<NewNotice> = {}): Promise<string> {
  const notice = newNotice(facts)
  expect(await store.insert(notice)).toBeInstanceOf(Date)
  return notice.id
}

/** The first steps of a worker: it reads a notice and claims it. */
async function claimOf(id: string, by = store) {
  const open = await by.findOpen(id)
  return open && by.claim(open)
}

async function claimed(): Promise<string> {
  const id = await created()
  await claimOf(id)
  return id
}

async function rowOf(id: string) {
  const { rows } = await pool.query('SELECT * FROM notice WHERE id = $1', [id])
  return rows[0]
}

/** As if the worker had died that claimed the notice: its claim ends, and then the reconciler frees the notice. */
async function freeLost(id: string) {
  await letPass(id, claimTtlMs + 5_100)
  await store.takeOverdue('captcha', 1_000, 5_000, 15_000)
}

/** As if `ms` had passed since the row was last changed. */
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
    const createdAt = await store.insert(notice)
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

  test('an existing id makes no second row and is reported, in one batch and in two', async () => {
    const notice = newNotice()
    const twin = { ...notice, recipient: '+8613900139000' }
    const both = await Promise.all([store.insert(notice), store.insert(notice)])
    expect(both.filter((createdAt) => createdAt === null)).toHaveLength(1)
    expect(await store.insert(twin)).toBe(null)
    expect((await rowOf(notice.id)).recipient).toBe(notice.recipient)
  })

  test('a bad row fails alone among the rows of its batch', async () => {
    const notices = Array.from({ length: 20 }, () => newNotice())
    const bad = newNotice({ kind: 'fax' as 'notice' })
    const settled = await Promise.allSettled(
      [...notices, bad].map((notice) => store.insert(notice)),
    )
    expect(settled.map(({ status }) => status)).toEqual([
      ...notices.map(() => 'fulfilled'),
      'rejected',
    ])
    expect(await rowOf(bad.id)).toBe(undefined)
  })
})

describe('findOpen', () => {
  test('a notice as it was made, which stays as it is (it may wait for long)', async () => {
    const id = await created()
    const [open] = await Promise.all([store.findOpen(id), store.findOpen(id)])
    expect(open).toMatchObject({
      id,
      claims: 0,
      attempts: [],
      recipient: '+8613800138000',
      retryInMs: 0,
    })
    expect(open?.ttlMs).toBeGreaterThan(290_000)
    expect(open?.ttlMs).toBeLessThanOrEqual(300_000)
    expect(await rowOf(id)).toMatchObject({ state: 'pending', claims: 0 })
  })

  test('the time it was wanted comes from PostgreSQL, not from this process’s clock', async () => {
    const id = await created()
    await pool.query(`UPDATE notice SET created_at = created_at - interval '90 s' WHERE id = $1`, [
      id,
    ])
    const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 7_200_000)
    const open = await store.findOpen(id)
    clock.mockRestore()
    const waitedMs = performance.now() - (open?.wantedAtMs ?? 0)
    expect(waitedMs).toBeGreaterThan(89_000)
    expect(waitedMs).toBeLessThan(120_000)
  })

  test('null for one that a worker holds, for one that is final, and for an unknown id', async () => {
    const [held, final] = [await claimed(), await claimed()]
    await store.record({ id: final, claims: 1, state: 'sent', attempts: [] })
    for (const id of [held, final, newId()]) expect(await store.findOpen(id)).toBe(null)
  })
})

describe('claim', () => {
  test('of 50 workers that saw the same one gets the notice', async () => {
    const id = await created()
    const stores = [store, openStore(), openStore()]
    const claims = await Promise.all(
      Array.from({ length: 50 }, (_, index) => stores[index % 3]?.claim({ id, claims: 0 })),
    )
    const [held, ...more] = claims.filter((claimed) => claimed !== null)
    expect(more).toEqual([])
    expect(held).toMatchObject({ claims: 1 })
    expect(held?.ttlMs).toBeGreaterThan(290_000)
    expect((await rowOf(id)).state).toBe('sending')
  })

  test('a worker that waited while another had the notice and put it back does not get it', async () => {
    const id = await created()
    const seen = await store.findOpen(id)
    await claimOf(id)
    await store.record({ id, claims: 1, state: 'pending', attempts: [attempt], retryInMs: 0 })
    expect(await store.claim({ id, claims: seen?.claims ?? -1 })).toBe(null)
    expect(await store.claim({ id, claims: 1 })).toMatchObject({ claims: 2 })
  })

  test('a claim that ended is taken over when the reconciler frees it, with the lost try on the account', async () => {
    const id = await claimed()
    expect(await store.claim({ id, claims: 1 })).toBe(null)
    // After an outage of PostgreSQL, the worker may be about to write the outcome.
    await letPass(id, claimTtlMs + 1)
    expect(await store.findOpen(id)).toBe(null)
    expect(await store.claim({ id, claims: 1 })).toBe(null)
    await freeLost(id)
    const open = await store.findOpen(id)
    const lost = { provider: null, outcome: 'unknown', detail: 'the worker was lost' }
    expect(open).toMatchObject({ claims: 1, attempts: [lost] })
    expect(Date.parse(open?.attempts[0]?.at ?? '')).toBeGreaterThan(Date.now() - 60_000)
    expect(await store.claim({ id, claims: 1 })).toMatchObject({ claims: 2 })
    expect((await rowOf(id)).attempts).toMatchObject([lost])
  })

  test('sendAt: not before it by PostgreSQL’s clock, and then (I24)', async () => {
    const id = await created({ sendAt: new Date(Date.now() + 3_600_000) })
    const open = await store.findOpen(id)
    expect(open?.retryInMs).toBeGreaterThan(3_590_000)
    expect(open?.retryInMs).toBeLessThanOrEqual(3_600_000)
    expect(await store.claim({ id, claims: 0 })).toBe(null)
    expect((await rowOf(id)).state).toBe('pending')
    await pool.query(`UPDATE notice SET send_at = now() WHERE id = $1`, [id])
    expect(await store.findOpen(id)).toMatchObject({ retryInMs: 0 })
    expect(await store.claim({ id, claims: 0 })).toMatchObject({ claims: 1 })
  })
})

describe('record', () => {
  test('sent: final for the queue, times and provider written, the sealed variables erased (I14)', async () => {
    const id = await claimed()
    const accepted = { ...attempt, outcome: 'accepted' } as const
    const outcome = { id, claims: 1, state: 'sent', attempts: [accepted] } as const
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
    expect(await claimOf(id)).toBe(null)
  })

  test.each(['failed', 'expired'] as const)(
    '%s: final, with its reason and without a sending time',
    async (state) => {
      const id = await claimed()
      expect(await store.record({ id, claims: 1, state, attempts: [], error: 'why' })).toBe(true)
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
    for (const claims of [1, 2]) {
      await claimOf(id)
      const attempts = Array.from({ length: claims }, () => attempt)
      const outcome = { id, claims, state: 'pending', attempts, retryInMs: 1_500 } as const
      expect(await store.record(outcome)).toBe(true)
    }
    const row = await rowOf(id)
    expect(row.attempts).toEqual([attempt, attempt])
    expect(row.sealed_params.toString()).toBe('sealed')
    expect(row.finished_at).toBe(null)
    expect(row.due_at.getTime() - Date.now()).toBeLessThanOrEqual(1_500)
  })

  test('a worker that lost its claim writes nothing (the fence)', async () => {
    const id = await claimed()
    await freeLost(id)
    await claimOf(id)
    expect(await store.record({ id, claims: 1, state: 'sent', attempts: [] })).toBe(false)
    expect((await rowOf(id)).state).toBe('sending')
    expect(await store.record({ id, claims: 2, state: 'sent', attempts: [] })).toBe(true)
    expect(await store.record({ id, claims: 2, state: 'failed', attempts: [] })).toBe(false)
    const repeat = { id, attempts: [], isRepeat: true }
    expect(await store.record({ ...repeat, claims: 2, state: 'sent' })).toBe(true)
    expect(await store.record({ ...repeat, claims: 1, state: 'sent' })).toBe(false)
    expect(await store.record({ ...repeat, claims: 2, state: 'failed' })).toBe(false)
    expect((await rowOf(id)).state).toBe('sent')
  })

  test('the same once more, because its answer was lost: nothing is counted twice', async () => {
    const id = await claimed()
    const outcome = {
      id,
      claims: 1,
      state: 'pending',
      attempts: [attempt],
      retryInMs: 1_500,
    } as const
    await store.record(outcome)
    await store.record(outcome)
    expect((await rowOf(id)).attempts).toEqual([attempt])
  })

  test('a notice that only waited: put off without a claim, unless another has claimed it since', async () => {
    const id = await created()
    const waits = { id, claims: 0, state: 'pending', attempts: [], retryInMs: 60_000 } as const
    expect(await store.record(waits)).toBe(true)
    const row = await rowOf(id)
    expect(row).toMatchObject({ state: 'pending', claims: 0, attempts: [] })
    expect(row.due_at.getTime() - Date.now()).toBeGreaterThan(50_000)
    await claimOf(id)
    expect(await store.record(waits)).toBe(false)
    expect((await rowOf(id)).state).toBe('sending')
  })

  test('given up for lost, and the worker lives after all: its result replaces the guess (F12, F30)', async () => {
    const id = await claimed()
    await freeLost(id)
    expect(await rowOf(id)).toMatchObject({ state: 'pending', attempts: [{ outcome: 'unknown' }] })
    const accepted = { ...attempt, outcome: 'accepted' } as const
    expect(await store.record({ id, claims: 1, state: 'sent', attempts: [accepted] })).toBe(true)
    expect(await rowOf(id)).toMatchObject({ state: 'sent', attempts: [accepted], due_at: null })
  })

  test('outcomes of one batch land each on its own row', async () => {
    const ids = await Promise.all(Array.from({ length: 30 }, claimed))
    await Promise.all(
      ids.map((id, index) =>
        store.record({
          id,
          claims: 1,
          state: 'sent',
          attempts: [],
          providerMessageId: `m${index}`,
        }),
      ),
    )
    const rows = await Promise.all(ids.map(rowOf))
    expect(rows.map((row) => row.provider_message_id)).toEqual(ids.map((_, index) => `m${index}`))
  })
})

describe('the trigger', () => {
  const legal = new Set([
    'pending→sending',
    'pending→sent',
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
      const rounds = await Promise.all(
        copies.map((copy) => copy.takeOverdue('captcha', 37, 5_000, 15_000)),
      )
      const found = rounds.flat().map(({ id }) => id)
      if (found.length === 0) break
      taken.push(...found)
    }
    expect(taken.filter((id) => ids.includes(id)).sort()).toEqual([...ids].sort())
    expect(new Set(taken).size).toBe(taken.length)
  })

  test('takes only open notices that are overdue by the grace, and not again before their time', async () => {
    const ofMail = created({ kind: 'notice', channel: 'email' })
    const all = [created(), ofMail, claimed(), claimed(), claimed()] as const
    const [fresh, late, abandonedClaim, held, finished] = await Promise.all(all)
    const newer = await created({ channel: 'pigeon' as 'sms' })
    const ofNewer = await letPass(newer, 60_000).then(() => rowOf(newer))
    await store.record({ id: finished, claims: 1, state: 'failed', attempts: [] })
    await letPass(late, 5_100)
    await letPass(abandonedClaim, claimTtlMs + 5_100)
    // On a busy machine, notices of earlier tests become overdue meanwhile.
    const own = [fresh, late, abandonedClaim, held, finished]
    const takeOf = (kind: 'captcha' | 'notice') => store.takeOverdue(kind, 1_000, 5_000, 15_000)
    const takeOverdue = async () =>
      [...(await takeOf('captcha')), ...(await takeOf('notice'))].filter(({ id }) =>
        own.includes(id),
      )
    expect((await takeOverdue()).sort((a, b) => (a.id < b.id ? -1 : 1))).toEqual(
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
    expect(await takeOverdue()).toEqual([])
    await letPass(late, 20_100)
    expect((await takeOverdue()).map(({ id }) => id)).toEqual([late])
    // Only a newer process knows its channel.
    expect(await rowOf(newer)).toEqual(ofNewer)
  })
})

test('abandon: closes an unclaimed row and leaves one that a worker has claimed', async () => {
  const [free, held, retried] = [await created(), await claimed(), await claimed()]
  await store.record({ id: retried, claims: 1, state: 'pending', attempts: [], retryInMs: 0 })
  await store.abandon([free, held, retried, newId()])
  expect(await rowOf(free)).toMatchObject({
    state: 'failed',
    error: 'abandoned',
    sealed_params: null,
  })
  expect((await rowOf(held)).state).toBe('sending')
  expect((await rowOf(retried)).state).toBe('pending')
})

test('scheduledCount: only notices before their time', async () => {
  const { own } = await openApart()
  expect(await own.scheduledCount()).toBe(0)
  await own.insert(newNotice())
  await own.insert(newNotice({ kind: 'notice', sendAt: new Date(Date.now() + 3_600_000) }))
  await own.insert(newNotice({ kind: 'notice', sendAt: new Date(Date.now() - 3_600_000) }))
  expect(await own.scheduledCount()).toBe(1)
})

test('oldestOpenSeconds: the age of the oldest open notice of each kind, finished ones not counted', async () => {
  const { own, other } = await openApart()
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
    await own.insert(notice)
    await other.pool.query(
      `UPDATE notice SET created_at = created_at - $2 * interval '1 s' WHERE id = $1`,
      [notice.id, ageSeconds],
    )
  }
  const isAbout = (seconds: number) =>
    expect.toSatisfy((age: number) => age >= seconds && age < seconds + 30)
  expect(await ageOf('captcha')).toEqual(isAbout(90))
  await own.claim({ id: old.id, claims: 0 })
  await own.record({ id: old.id, claims: 1, state: 'failed', attempts: [] })
  expect(await ageOf('captcha')).toEqual(isAbout(30))
  expect(await ageOf('notice')).toEqual(isAbout(900))
})

test('the end of a code: the first one stays, but a code that passed has passed; of other rows nothing', async () => {
  const [tried, canceled, other] = [await created(), await created(), await created()]
  await Promise.all([
    store.endCode({ id: tried, end: 'tries' }),
    store.endCode({ id: canceled, end: 'canceled' }),
    store.endCode({ id: newId(), end: 'passed' }),
  ])
  const ends = async () =>
    Promise.all(
      [tried, canceled, other].map(async (id) => (await store.find('default', id))?.codeEnd),
    )
  expect(await ends()).toEqual(['tries', 'canceled', null])
  await store.endCode({ id: tried, end: 'canceled' })
  await store.endCode({ id: canceled, end: 'passed' })
  expect(await ends()).toEqual(['tries', 'passed', null])
})

test('the end of a code: of two ends in one statement `passed` wins, in either order', async () => {
  const [first, second] = [await created(), await created()]
  await Promise.all([
    store.endCode({ id: first, end: 'tries' }),
    store.endCode({ id: first, end: 'passed' }),
    store.endCode({ id: second, end: 'passed' }),
    store.endCode({ id: second, end: 'canceled' }),
  ])
  expect((await rowOf(first)).code_end).toBe('passed')
  expect((await rowOf(second)).code_end).toBe('passed')
})

test('a right code ends the bounce of its address, also under the hash of the other secret in use', async () => {
  const [recipientHash, otherHash] = [randomBytes(16), randomBytes(16)]
  const id = await created({ recipientHash })
  for (const hash of [recipientHash, otherHash, randomBytes(16)]) {
    await pool.query(
      `INSERT INTO suppression (app, recipient_hash, reason, provider) VALUES ('default', $1, 'bounced', 'x')`,
      [hash],
    )
  }
  await store.endCode({ id, end: 'passed', hashes: [otherHash, recipientHash] })
  const { rows } = await pool.query('SELECT FROM suppression WHERE ended_at IS NULL')
  expect(rows).toHaveLength(1)
})

test('adopt: a repeat adopts a waiting row → the first request does not close it, and the worker that has read it still claims it', async () => {
  const id = await created()
  const open = await store.findOpen(id)
  expect(await store.adopt('default', id)).toMatchObject({ isOpen: true })
  await store.abandon([id])
  const claim = await store.claim({ id, claims: open?.claims ?? -1 })
  expect(claim).toMatchObject({ claims: 1 })
})

test('adopt: the row of a call that was freed as lost → the late outcome of its worker still counts', async () => {
  const id = await claimed()
  await freeLost(id)
  await store.adopt('default', id)
  expect(await store.record({ id, claims: 1, state: 'sent', attempts: [attempt] })).toBe(true)
})

test('adopt: a row whose time ended while it waited is no answer to a repeat; one that may have arrived is', async () => {
  const [late, unknown] = [await created(), await claimed()]
  const attempts = [{ ...attempt, outcome: 'unknown' } as const]
  await store.record({ id: unknown, claims: 1, state: 'pending', attempts, retryInMs: 0 })
  await pool.query(`UPDATE notice SET expires_at = now() WHERE id = ANY($1::uuid[])`, [
    [late, unknown],
  ])
  expect(await store.adopt('default', late)).toBe(null)
  expect(await store.adopt('default', unknown)).toMatchObject({ isOpen: true })
})

describe('takeBack', () => {
  const by = (id = newId()) => ({ id, provider: 'sms', kind: 'fake' })

  test('a claim whose answer was lost: pending again without an attempt, and due; once more changes nothing', async () => {
    const asked = { id: await created(), claims: 0, by: by() }
    await store.claim(asked)
    expect(await store.takeBack(asked)).toBe(true)
    expect(await store.takeBack(asked)).toBe(false)
    const row = await rowOf(asked.id)
    expect(row).toMatchObject({ state: 'pending', claims: 2, attempts: [], claim: null })
    expect(row.due_at.getTime()).toBeLessThanOrEqual(Date.now() + 1_000)
    expect(await claimOf(asked.id)).toMatchObject({ claims: 3 })
  })

  test('a claim that is committed only after it was taken back: it gets nothing', async () => {
    const asked = { id: await created(), claims: 0, by: by() }
    expect(await store.takeBack(asked)).toBe(false)
    expect(await store.claim(asked)).toBe(null)
  })

  test('the claim of another worker stays', async () => {
    const id = await created()
    await store.claim({ id, claims: 0, by: by() })
    expect(await store.takeBack({ id, claims: 0, by: by() })).toBe(false)
    expect((await rowOf(id)).state).toBe('sending')
  })
})

test('a claim that ended: the lost attempt has the provider of the claim and its kind', async () => {
  const id = await created()
  await store.claim({ id, claims: 0, by: { id: newId(), provider: 'sms', kind: 'twilio' } })
  await freeLost(id)
  expect((await rowOf(id)).attempts).toMatchObject([
    { provider: 'sms', kind: 'twilio', outcome: 'unknown', detail: 'the worker was lost' },
  ])
})

describe('record, repeated because its answer was lost', () => {
  const sent = (id: string, outcome = 'accepted' as const) =>
    ({ id, claims: 1, state: 'sent', attempts: [{ ...attempt, outcome }] }) as const

  test.for(['delivered', 'failed'])(
    'a receipt has made it %s → it counts as written',
    async (state) => {
      const id = await claimed()
      await store.record(sent(id))
      await pool.query(`UPDATE notice SET state = $2, finished_at = now() WHERE id = $1`, [
        id,
        state,
      ])
      expect(await store.record({ ...sent(id), isRepeat: true })).toBe(true)
    },
  )

  test('another worker wrote the same state after the same claim → not written by this one', async () => {
    const id = await claimed()
    await store.record({ ...sent(id), attempts: [{ ...attempt, outcome: 'unknown' }] })
    expect(await store.record({ ...sent(id), isRepeat: true })).toBe(false)
  })
})
