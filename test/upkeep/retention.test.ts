import { randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { idFloor, newId } from '../../src/base/ids.ts'
import { removeOldKeys } from '../../src/notice/idempotency.ts'
import { openDatabase } from '../../src/storage/database.ts'
import { type RetentionPolicy, retain, startRetention } from '../../src/upkeep/retention.ts'
import { moveDatabaseClock, testDatabase } from '../tools/database.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const dayMs = 86_400_000
const nowMs = Date.UTC(2026, 10, 21)
const policy = { recipientMs: 30 * dayMs, rowsMs: 180 * dayMs }
const recipient = '+8613800138000'

async function table() {
  const testing = await testDatabase()
  const { url, pool } = testing
  const open = () => {
    const database = openDatabase(url, { maxConnections: 3, onError: () => {} })
    releaseLater(() => database.close())
    return database
  }
  const database = open()
  const failures: { task: string; error: unknown }[] = []
  /** One pass while PostgreSQL's clock says `at`. */
  async function run(at = nowMs, more: { policy?: RetentionPolicy; workers?: number } = {}) {
    // Microseconds too, as it has them.
    await moveDatabaseClock(testing, `to_timestamp(${at / 1_000} + 0.0004567)`)
    const others = Array.from({ length: (more.workers ?? 1) - 1 }, open)
    await Promise.all([database, ...others].map((by) => runBy(by, more.policy)))
  }
  async function runBy(by: typeof database, itsPolicy = policy) {
    await retain({
      database: by,
      policy: itsPolicy,
      removeOldKeys: () => removeOldKeys(database),
      log: { backgroundFailed: (task, error) => void failures.push({ task, error }) },
    })
  }

  /** `createdAtMs` is by PostgreSQL's clock, `atMs` by that of the process that made the id. */
  async function insertMany(count: number, atMs: number, state = 'sent', createdAtMs = atMs) {
    const ids = Array.from({ length: count }, (_, index) => newId(atMs + index))
    await pool.query(
      `INSERT INTO notice (id, app, kind, channel, recipient, recipient_hash, template, locale, state,
                           due_at, created_at, expires_at)
       SELECT id, 'default', 'notice', 'sms', $5, $2, 'welcome', 'en', $3,
              CASE WHEN $3 = 'pending' THEN now() END, $4, $4
       FROM unnest($1::uuid[]) AS new (id)`,
      [ids, randomBytes(16), state, new Date(createdAtMs), recipient],
    )
    return ids
  }
  const insert = async (...row: [atMs: number, state?: string, createdAtMs?: number]) =>
    (await insertMany(1, ...row))[0] as string
  async function recipientOf(id: string): Promise<string | null | undefined> {
    const { rows } = await pool.query('SELECT recipient FROM notice WHERE id = $1', [id])
    return rows[0]?.recipient
  }
  async function count(where: string): Promise<number> {
    const { rows } = await pool.query(`SELECT count(*)::int AS n FROM notice WHERE ${where}`)
    return rows[0].n
  }
  const end = (id: string) =>
    pool.query(`UPDATE notice SET state = 'expired', due_at = NULL WHERE id = $1`, [id])
  async function partitions(): Promise<string[]> {
    const { rows } = await pool.query(
      "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'notice'::regclass ORDER BY 1",
    )
    return rows.map(({ name }) => name)
  }
  async function checks(): Promise<string[]> {
    const { rows } = await pool.query(
      "SELECT conname AS name FROM pg_constraint WHERE conrelid = 'notice_default'::regclass AND conname LIKE '%apart'",
    )
    return rows.map(({ name }) => name)
  }
  return {
    ...{ url, pool, run, insert, insertMany, recipientOf, count, end, partitions, checks },
    failures,
  }
}

describe('partitions', () => {
  test('the next two months are made ahead; a row goes where its id says, with index and trigger', async () => {
    const { run, insert, partitions, checks, pool, failures } = await table()
    await run()
    await run()
    expect(failures).toEqual([])
    expect(await partitions()).toEqual(['notice_2026_12', 'notice_2027_01', 'notice_default'])
    expect(await checks()).toEqual([])
    const id = await insert(Date.UTC(2026, 11, 24))
    const { rows } = await pool.query('SELECT id FROM notice_2026_12')
    expect(rows).toEqual([{ id }])
    const backwards = `UPDATE notice SET state = 'sending', due_at = now() WHERE id = $1`
    await expect(pool.query(backwards, [id])).rejects.toMatchObject({ code: '23514' })
  })

  test('a month that has rows in the default partition stays there, and the one after it is made', async () => {
    const { run, insert, partitions, checks, failures } = await table()
    await insert(Date.UTC(2026, 11, 1))
    await run()
    expect(failures).toEqual([])
    expect(await partitions()).toEqual(['notice_2027_01', 'notice_default'])
    expect(await checks()).toEqual([])
  })

  test('a month that begins within a day stays in the default partition', async () => {
    const { run, partitions } = await table()
    await run(Date.UTC(2026, 10, 30, 0, 0, 1))
    expect(await partitions()).toEqual(['notice_2027_01', 'notice_default'])
    await run(Date.UTC(2026, 11, 31))
    expect(await partitions()).toEqual(['notice_2027_01', 'notice_2027_02', 'notice_default'])
  })

  const leftOver = `ALTER TABLE notice_default ADD CONSTRAINT notice_2026_12_apart
    CHECK (id < '${idFloor(Date.UTC(2026, 11))}' OR id >= '${idFloor(Date.UTC(2027, 0))}') NOT VALID`

  test('a pass cut short before it attached: the next one goes on from there', async () => {
    const { run, partitions, checks, pool, failures } = await table()
    await pool.query(leftOver)
    await run()
    expect(failures).toEqual([])
    expect(await partitions()).toContain('notice_2026_12')
    expect(await checks()).toEqual([])
  })

  test('a pass cut short, and its month is near: rows of that month find a place', async () => {
    const { run, insert, partitions, checks, pool, failures } = await table()
    await pool.query(leftOver)
    await expect(insert(Date.UTC(2026, 11, 5))).rejects.toMatchObject({ code: '23514' })
    await run(Date.UTC(2026, 10, 30, 12))
    expect(failures).toEqual([])
    expect(await checks()).toEqual([])
    expect(await partitions()).not.toContain('notice_2026_12')
    await insert(Date.UTC(2026, 11, 5))
  })

  test('a month is dropped when all of it is older than `rows`, not before', async () => {
    const { run, insert, partitions, recipientOf } = await table()
    await run()
    const id = await insert(Date.UTC(2026, 11, 1))
    const monthEndMs = Date.UTC(2027, 0, 1)
    await run(monthEndMs + policy.rowsMs - 1)
    expect(await partitions()).toContain('notice_2026_12')
    await run(monthEndMs + policy.rowsMs)
    expect(await partitions()).not.toContain('notice_2026_12')
    expect(await recipientOf(id)).toBeUndefined()
  })

  test('a month with an open row is dropped only when that row has ended (I24)', async () => {
    const { run, insert, end, partitions, recipientOf, failures } = await table()
    await run()
    const id = await insert(Date.UTC(2026, 11, 1), 'pending')
    const longAfterMs = Date.UTC(2028, 0, 1)
    await run(longAfterMs)
    expect(failures).toEqual([])
    expect(await recipientOf(id)).toBe(recipient)
    expect(await partitions()).not.toContain('notice_2027_01')
    await end(id)
    await run(longAfterMs)
    expect(await partitions()).not.toContain('notice_2026_12')
  })
})

describe('rows of the default partition', () => {
  test('old ones are deleted, younger ones stay', async () => {
    const { run, insert, recipientOf, count } = await table()
    const old = await insert(nowMs - policy.rowsMs - 1)
    const young = await insert(nowMs - policy.rowsMs + 1)
    await run()
    expect(await recipientOf(old)).toBeUndefined()
    expect(await count(`id = '${young}'`)).toBe(1)
  })

  test('more than one batch: all are deleted but open ones and those younger than their id (I24)', async () => {
    const { run, insert, insertMany, count } = await table()
    const pastMs = nowMs - policy.rowsMs - 100_000
    await insertMany(1_200, pastMs)
    const kept = [
      await insert(pastMs - 1, 'pending'),
      await insert(pastMs + 600, 'pending'),
      await insert(pastMs + 700, 'sent', nowMs - 1_000),
    ]
    await insertMany(1_200, pastMs + 2_000)
    await run()
    expect(await count('true')).toBe(kept.length)
    expect(await count(`id IN (${kept.map((id) => `'${id}'`).join()})`)).toBe(kept.length)
    expect(await count('recipient IS NULL')).toBe(0)
  })
})

describe('recipients', () => {
  test('erased after their time; younger ones and those of open notices stay until theirs', async () => {
    const { run, insert, end, recipientOf } = await table()
    const past = nowMs - policy.recipientMs
    const [old, open, later, young] = [
      await insert(past - 3_000),
      await insert(past - 2_000, 'pending'),
      await insert(past - 1_000),
      await insert(past + 1_000),
    ]
    await run()
    expect(await recipientOf(old)).toBeNull()
    expect(await recipientOf(open)).toBe(recipient)
    expect(await recipientOf(later)).toBeNull()
    expect(await recipientOf(young)).toBe(recipient)

    await end(open)
    await run(nowMs + 2_000)
    expect(await recipientOf(open)).toBeNull()
    expect(await recipientOf(young)).toBeNull()
  })

  test('many after an open one, over several steps: all are erased, and the open one when it has ended', async () => {
    const { run, insert, insertMany, end, recipientOf, count } = await table()
    const past = nowMs - policy.recipientMs - 100_000
    await insertMany(10, past)
    const open = await insert(past + 100, 'pending')
    await insertMany(2_500, past + 200)
    const openLater = await insert(past + 10_000, 'pending')
    await insertMany(10, past + 20_000)
    await run()
    expect(await count('recipient IS NOT NULL')).toBe(2)
    await end(openLater)
    await run(nowMs + 1)
    expect(await recipientOf(open)).toBe(recipient)
    await end(open)
    await run(nowMs + 2)
    expect(await count('recipient IS NOT NULL')).toBe(0)
  })

  test('kept for longer from now on, or after a clock that was ahead: what lies between is erased in its time', async () => {
    const { run, insert, recipientOf } = await table()
    const before = await insert(nowMs - 80 * dayMs)
    await insert(nowMs - 40 * dayMs)
    const longer = { ...policy, recipientMs: 60 * dayMs }
    await run()
    const between = await insert(nowMs - 70 * dayMs)
    await run(nowMs, { policy: longer })
    expect(await recipientOf(before)).toBeNull()
    expect(await recipientOf(between)).toBeNull()
  })
})

describe('Idempotency-Keys', () => {
  test('past their day they are removed, however many; the others stay', async () => {
    const { run, pool, failures } = await table()
    await pool.query(
      `INSERT INTO idempotency_key (app, key_hash, request_hash, notice_id, created_at)
       SELECT 'default', n::text::bytea, '', gen_random_uuid(), to_timestamp($1) - age * interval '1 hour'
       FROM generate_series(1, 2500) AS n, LATERAL (SELECT CASE WHEN n > 2400 THEN 23.9 ELSE 24.1 END AS age)`,
      [nowMs / 1_000],
    )
    await run()
    expect(failures).toEqual([])
    const { rows } = await pool.query('SELECT count(*)::int AS n FROM idempotency_key')
    expect(rows[0].n).toBe(100)
  })
})

describe('a step that fails', () => {
  test('is reported, and those after it are done (F33)', async () => {
    const { run, insert, partitions, recipientOf, pool, failures } = await table()
    // The name is taken, so this partition can't be made.
    await pool.query('CREATE TYPE notice_2026_12 AS ENUM ()')
    const gone = await insert(nowMs - policy.rowsMs - 1)
    const old = await insert(nowMs - policy.recipientMs - 1)
    await run()
    expect(failures).toEqual([
      { task: 'retention, partition notice_2026_12', error: expect.any(Error) },
    ])
    expect(await partitions()).toEqual(['notice_2027_01', 'notice_default'])
    expect(await recipientOf(gone)).toBeUndefined()
    expect(await recipientOf(old)).toBeNull()
    await pool.query('DROP TYPE notice_2026_12')
    await run()
    expect(await partitions()).toContain('notice_2026_12')
  })

  test('for a lock that another holds: it gives up, sends go on meanwhile, and the next pass does it', async () => {
    const { run, insert, recipientOf, partitions, pool, failures } = await table()
    const old = await insert(nowMs - policy.recipientMs - 1)
    const reader = await pool.connect()
    await reader.query('BEGIN; SELECT FROM notice')
    let isOver = false
    const sends = (async () => {
      await pool.query(`SET statement_timeout = '1200ms'`)
      while (!isOver) await insert(nowMs)
    })()
    try {
      await run()
    } finally {
      isOver = true
      reader.release(true)
    }
    await sends
    expect(failures.map(({ task }) => task)).toEqual([
      'retention, partition notice_2026_12',
      'retention, partition notice_2027_01',
    ])
    expect(failures[0]?.error).toMatchObject({ code: '55P03' })
    expect(await recipientOf(old)).toBeNull()
    await run()
    expect(await partitions()).toEqual(['notice_2026_12', 'notice_2027_01', 'notice_default'])
  })
})

test('four workers at once: no error, one table (I11)', async () => {
  const { run, partitions, failures } = await table()
  await run(nowMs, { workers: 4 })
  expect(failures).toEqual([])
  expect(await partitions()).toHaveLength(3)
})

test('told to stop in the middle of a statement: it ends at once and reports nothing', async () => {
  const { url, pool } = await table()
  const database = openDatabase(url, { maxConnections: 1, onError: () => {} })
  releaseLater(() => database.close())
  const holder = await pool.connect()
  await holder.query('BEGIN; LOCK TABLE notice_default IN SHARE UPDATE EXCLUSIVE MODE')
  const stopping = new AbortController()
  const failures: unknown[] = []
  const pass = retain({
    database,
    policy,
    removeOldKeys: async () => 0,
    log: { backgroundFailed: (_, error) => void failures.push(error) },
    signal: stopping.signal,
  })
  try {
    // The server is shared, so only a lock of this database is this pass.
    await eventually(async () => {
      const { rowCount } = await pool.query(
        `SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database
         WHERE datname = current_database() AND NOT granted`,
      )
      return (rowCount ?? 0) > 0
    })
    stopping.abort()
    await pass
  } finally {
    holder.release(true)
  }
  expect(failures).toEqual([])
})

test('what support did goes with the rows, however much it is; the rest stays', async () => {
  const { pool, run } = await table()
  const add = (count: number, atMs: number) =>
    pool.query(
      `INSERT INTO operation (app, recipient_hash, at, key_id, what, reason)
       SELECT 'default', '\\x00', $2, gen_random_uuid(), '{lock}', 'asked' FROM generate_series(1, $1)`,
      [count, new Date(atMs)],
    )
  await add(2_500, nowMs - 180 * dayMs - 1_000)
  await add(2, nowMs - 180 * dayMs + 60_000)
  await run()
  const { rows } = await pool.query('SELECT count(*)::int AS n FROM operation')
  expect(rows[0].n).toBe(2)
})

test('a pass that could not begin is logged, and tried again in a minute and not in an hour', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const away = openDatabase('postgresql://127.0.0.1:9/away', {
    maxConnections: 1,
    onError: () => {},
  })
  releaseLater(() => away.close())
  const begin = vi.spyOn(away, 'onOwnConnection').mockRejectedValue(new Error('away'))
  const logged: string[] = []
  const retention = startRetention({
    database: away,
    policy,
    removeOldKeys: async () => 0,
    log: { backgroundFailed: (task) => void logged.push(task) },
  })
  await vi.advanceTimersByTimeAsync(2_000)
  expect(begin).toHaveBeenCalledTimes(1)
  await vi.advanceTimersByTimeAsync(42_000)
  expect(begin).toHaveBeenCalledTimes(1)
  // A pause varies by a quarter.
  await vi.advanceTimersByTimeAsync(35_000)
  expect(begin).toHaveBeenCalledTimes(2)
  expect(logged).toEqual(['retention', 'retention'])
  await retention.stop()
  vi.useRealTimers()
})
