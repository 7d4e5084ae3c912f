import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { Overloaded, Unavailable } from '../../src/base/unavailable.ts'
import { createIdempotency, removeOldKeys } from '../../src/notice/idempotency.ts'
import { createNoticeStore } from '../../src/notice/store.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { newWelcome } from '../tools/notices.ts'
import { closeLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const { url, pool } = await testDatabase()
const database = databaseAt(url, 10)
const idempotency = closeLater(createIdempotency(database))
const store = createNoticeStore(database, { claimTtlMs: 10_000 })

/** As if the key had been reserved `ms` ago. */
const letPass = (ms: number) =>
  pool.query(`UPDATE idempotency_key SET created_at = created_at - $1 * interval '1 ms'`, [ms])

let keyCount = 0
const newKey = () => {
  keyCount += 1
  return `key-${keyCount}`
}

test('reserve: of 40 at once with one key one proceeds and all others wait', async () => {
  const key = newKey()
  const reservations = await Promise.all(
    Array.from({ length: 40 }, () => idempotency.reserve('app', key, ['request'], newId())),
  )
  const kinds = reservations.map(({ kind }) => kind)
  expect(kinds.filter((kind) => kind === 'proceed')).toHaveLength(1)
  expect(kinds.filter((kind) => kind === 'in_progress')).toHaveLength(39)
})

test('reserve: once the answer is kept every repeat gets it; another request with the key gets `reused`', async () => {
  const key = newKey()
  const answer = { status: 202, headers: { location: '/x' }, body: { z: 1, a: [2, null] } }
  const id = newId()
  await idempotency.reserve('app', key, ['request'], id)
  await idempotency.keep('app', key, id, answer)
  const repeat = await idempotency.reserve('app', key, ['request'], newId())
  expect(repeat).toEqual({ kind: 'answered', answer })
  expect(JSON.stringify(repeat)).toBe(JSON.stringify({ kind: 'answered', answer }))
  expect(await idempotency.reserve('app', key, ['other'], newId())).toEqual({ kind: 'reused' })
})

test('reserve: a request with several texts is a repeat if one of them is the stored one', async () => {
  const [key, id] = [newKey(), newId()]
  await idempotency.reserve('app', key, ['new', 'old'], id)
  const reserve = (...texts: string[]) => idempotency.reserve('app', key, texts, newId())
  expect(await reserve('newest', 'new')).toEqual({ kind: 'in_progress' })
  expect(await reserve('newest', 'old')).toEqual({ kind: 'reused' })
  await letPass(31_000)
  expect(await reserve('newest', 'new')).toEqual({ kind: 'taken_over', earlierId: id })
})

test('reserve: an answered key stays answered, however long ago within its day', async () => {
  const key = newKey()
  await idempotency.reserve('app', key, ['request'], newId())
  const [{ notice_id: id }] = (
    await pool.query('SELECT notice_id FROM idempotency_key ORDER BY created_at DESC LIMIT 1')
  ).rows
  await idempotency.keep('app', key, id, { status: 202 })
  await letPass(3_600_000)
  expect(await idempotency.reserve('app', key, ['request'], newId())).toEqual({
    kind: 'answered',
    answer: { status: 202 },
  })
})

test('reserve: one app knows nothing of the keys of another', async () => {
  const key = newKey()
  await idempotency.reserve('app', key, ['request'], newId())
  expect(await idempotency.reserve('other', key, ['else'], newId())).toMatchObject({
    kind: 'proceed',
  })
})

test('reserve: a key whose notice expired, and that another request has just reserved and used: never the old answer (I26)', async () => {
  const key = newKey()
  const [id, nextId] = [newId(), newId()]
  await idempotency.reserve('app', key, ['request'], id)
  await idempotency.keep('app', key, id, { outcome: 'accepted', id })
  await store.insert(newWelcome({ id, app: 'app' }))
  await pool.query(
    `UPDATE notice SET state = 'expired', due_at = NULL, sealed_params = NULL, finished_at = now() WHERE id = $1`,
    [id],
  )
  const other = await pool.connect()
  try {
    await other.query('BEGIN')
    await other.query(
      'UPDATE idempotency_key SET notice_id = $2, answer = $3 WHERE notice_id = $1',
      [id, nextId, { outcome: 'accepted', id: nextId }],
    )
    const waiting = idempotency.reserve('app', key, ['request'], newId())
    await eventually(async () => {
      const { rows } = await pool.query(
        `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%idempotency_key%' AND datname = current_database()`,
      )
      return rows.length > 0
    })
    await other.query('COMMIT')
    expect(await waiting).toEqual({ kind: 'in_progress' })
  } finally {
    other.release()
  }
  const answered = await idempotency.reserve('app', key, ['request'], newId())
  expect(answered).toEqual({ kind: 'answered', answer: { outcome: 'accepted', id: nextId } })
})

test('free: a refused request frees its key, an answered one keeps it, and never frees the key of another', async () => {
  const [key, first, second] = [newKey(), newId(), newId()]
  await idempotency.reserve('app', key, ['request'], first)
  await idempotency.free('app', key, newId())
  expect(await idempotency.reserve('app', key, ['request'], second)).toEqual({
    kind: 'in_progress',
  })
  await idempotency.free('app', key, first)
  expect(await idempotency.reserve('app', key, ['other'], second)).toEqual({ kind: 'proceed' })
  await idempotency.keep('app', key, second, { status: 202 })
  await idempotency.free('app', key, second)
  expect(await idempotency.reserve('app', key, ['other'], newId())).toMatchObject({
    kind: 'answered',
  })
})

test('free: a key whose notice is open stays until the notice is closed (I26)', async () => {
  const [key, id] = [newKey(), newId()]
  await idempotency.reserve('app', key, ['request'], id)
  await store.insert(newWelcome({ id, app: 'app' }))
  await idempotency.free('app', key, id)
  expect(await idempotency.reserve('app', key, ['request'], newId())).toEqual({
    kind: 'in_progress',
  })
  await store.abandon([id])
  await eventually(
    async () => {
      const { kind } = await idempotency.reserve('app', key, ['request'], newId())
      return kind === 'proceed'
    },
    { everyMs: 100 },
  )
})

test('reserve: a reservation whose process died is taken over after 30 s by one repeat, which gets the reserved id', async () => {
  const [key, id] = [newKey(), newId()]
  await idempotency.reserve('app', key, ['request'], id)
  await letPass(29_000)
  expect(await idempotency.reserve('app', key, ['request'], newId())).toEqual({
    kind: 'in_progress',
  })
  await letPass(1_100)
  expect(await idempotency.reserve('app', key, ['other'], newId())).toEqual({ kind: 'reused' })
  const repeats = await Promise.all(
    Array.from({ length: 10 }, () => idempotency.reserve('app', key, ['request'], newId())),
  )
  expect(repeats.filter(({ kind }) => kind === 'taken_over')).toEqual([
    { kind: 'taken_over', earlierId: id },
  ])
  expect(repeats.filter(({ kind }) => kind === 'in_progress')).toHaveLength(9)
})

test('rename: the next repeat gets the later id; a key of another notice stays unchanged', async () => {
  const [key, first, second, third] = [newKey(), newId(), newId(), newId()]
  await idempotency.reserve('app', key, ['request'], first)
  await idempotency.rename('app', key, first, second)
  await idempotency.rename('app', key, first, third)
  await letPass(31_000)
  expect(await idempotency.reserve('app', key, ['request'], newId())).toEqual({
    kind: 'taken_over',
    earlierId: second,
  })
})

test('reserve: after a day a key is new again, and removeOldKeys removes it', async () => {
  const [key, id] = [newKey(), newId()]
  const first = newId()
  await idempotency.reserve('app', key, ['request'], first)
  await idempotency.keep('app', key, first, { status: 202 })
  await letPass(86_400_100)
  expect(await idempotency.reserve('app', key, ['other'], id)).toEqual({ kind: 'proceed' })
  await letPass(86_400_100)
  await removeOldKeys(database)
  const { rows } = await pool.query('SELECT count(*)::int AS count FROM idempotency_key')
  expect(rows).toEqual([{ count: 0 }])
})

test('the key itself is nowhere in the table, only its hash', async () => {
  await idempotency.reserve('app', 'canary-key', ['canary-request'], newId())
  const { rows } = await pool.query('SELECT * FROM idempotency_key')
  expect(JSON.stringify(rows)).not.toContain('canary')
  expect(
    Buffer.concat(rows.flatMap((row) => [row.key_hash, row.request_hash])).includes('canary'),
  ).toBe(false)
})

test('keep and free with PostgreSQL away: neither fails, and both are done when it answers', async () => {
  let isAway = false
  const query: typeof database.query = async (...asked) => {
    if (isAway) throw new Unavailable('postgresql', undefined, 'away')
    return database.query(...asked)
  }
  const own = closeLater(createIdempotency({ ...database, query }))
  const [answered, freed, id] = [newKey(), newKey(), newId()]
  await own.reserve('app', answered, ['request'], id)
  await own.reserve('app', freed, ['request'], id)
  isAway = true
  await own.keep('app', answered, id, { status: 202 })
  await own.free('app', freed, id)
  isAway = false
  const repeat = (key: string) => own.reserve('app', key, ['request'], newId())
  await eventually(async () => {
    expect(await repeat(answered)).toEqual({ kind: 'answered', answer: { status: 202 } })
  })
  await eventually(async () => expect(await repeat(freed)).toEqual({ kind: 'proceed' }))
})

test('isKnown: 2,000 look-ups wait for PostgreSQL, more are refused until it answers', async () => {
  const answer = Promise.withResolvers<never[]>()
  const own = closeLater(createIdempotency({ ...database, query: () => answer.promise }))
  const isKnown = () => own.isKnown('app', newKey())
  const waiting = Promise.all(Array.from({ length: 2_000 }, isKnown))
  await expect(isKnown()).rejects.toThrow(Overloaded)
  answer.resolve([])
  expect(new Set(await waiting)).toEqual(new Set([false]))
  expect(await isKnown()).toBe(false)
})

test.for([
  ['waits', 'pending', '[]', 'proceed'],
  [
    'waits after an attempt that may have arrived',
    'pending',
    '[{"outcome": "unknown"}]',
    'answered',
  ],
  ['is in a call', 'sending', '[]', 'answered'],
] as const)(
  'reserve: an answered key whose notice %s after its time → its repeat',
  async ([, state, attempts, kind]) => {
    const key = newKey()
    const id = newId()
    await idempotency.reserve('app', key, ['request'], id)
    await idempotency.keep('app', key, id, { outcome: 'accepted', id })
    await store.insert(newWelcome({ id, app: 'app' }))
    const change = 'UPDATE notice SET state = $2, attempts = $3, expires_at = now() WHERE id = $1'
    await pool.query(change, [id, state, attempts])
    expect(await idempotency.reserve('app', key, ['request'], newId())).toMatchObject({ kind })
  },
)
