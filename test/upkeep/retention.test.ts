import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { idFloor, newId } from '../../src/base/ids.ts'
import { removeOldKeys } from '../../src/notice/idempotency.ts'
import { openDatabase } from '../../src/storage/database.ts'
import { notices, spansToMake } from '../../src/upkeep/partitions.ts'
import { type RetentionPolicy, retain, startRetention } from '../../src/upkeep/retention.ts'
import { databaseAt, moveDatabaseClock, testDatabase } from '../tools/database.ts'
import { insertNotices } from '../tools/notices.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const dayMs = 86_400_000
const nowMs = Date.UTC(2026, 10, 21)
const policy = {
  ...{ recipientMs: 30 * dayMs, rowsMs: 180 * dayMs, decisionsMs: 7 * dayMs },
  suppressionsMs: 200 * dayMs,
}
const recipient = '+8613800138000'
/** The partitions of the first pass, on a Saturday: one Sunday, and two weeks. */
const ahead = ['notice_2026_11_22', 'notice_2026_11_23', 'notice_2026_11_30']

async function table() {
  const testing = await testDatabase()
  const { url, pool } = testing
  const open = () => {
    const database = databaseAt(url, 3)
    return database
  }
  const database = open()
  const failures: { task: string; error: unknown; part: string | undefined }[] = []
  /** Runs one pass at PostgreSQL's time `at`. */
  async function run(at = nowMs, more: { policy?: RetentionPolicy; workers?: number } = {}) {
    // With microseconds, like PostgreSQL's times.
    await moveDatabaseClock(testing, `to_timestamp(${at / 1_000} + 0.0004567)`)
    const others = Array.from({ length: (more.workers ?? 1) - 1 }, open)
    await Promise.all([database, ...others].map((by) => runBy(by, more.policy)))
  }
  async function runBy(by: typeof database, itsPolicy = policy) {
    await retain({
      database: by,
      policy: itsPolicy,
      removeOldKeys: () => removeOldKeys(database),
      log: { backgroundFailed: (task, error, part) => void failures.push({ task, error, part }) },
    })
  }

  /** `createdAtMs` is by PostgreSQL's clock, `atMs` by the clock of the process that made the id. */
  async function insertMany(count: number, atMs: number, state = 'sent', createdAtMs = atMs) {
    const at = new Date(createdAtMs)
    const row = {
      ...{ recipient, recipient_hash: `\\x${randomBytes(16).toString('hex')}`, state },
      ...{ due_at: state === 'pending' ? new Date() : null, created_at: at, expires_at: at },
    }
    const ids = Array.from({ length: count }, (_, index) => ({ id: newId(atMs + index), ...row }))
    return insertNotices(pool, ids)
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
  test('three are made ahead, to the end of a week each; a row goes where its id belongs, with index and trigger', async () => {
    const { run, insert, partitions, checks, pool, failures } = await table()
    await run()
    await run()
    expect(failures).toEqual([])
    expect(await partitions()).toEqual([...ahead, 'notice_default'])
    expect(await checks()).toEqual([])
    const id = await insert(Date.UTC(2026, 11, 6, 23, 59))
    const { rows } = await pool.query('SELECT id FROM notice_2026_11_30')
    expect(rows).toEqual([{ id }])
    const backwards = `UPDATE notice SET state = 'sending', due_at = now() WHERE id = $1`
    await expect(pool.query(backwards, [id])).rejects.toMatchObject({ code: '23514' })
  })

  test('a week that has rows in the default partition stays there, and those after it are made', async () => {
    const { run, insert, partitions, checks, failures } = await table()
    await insert(Date.UTC(2026, 10, 29))
    await run()
    expect(failures).toEqual([])
    const others = ahead.filter((name) => name !== 'notice_2026_11_23')
    expect(await partitions()).toEqual([...others, 'notice_default'])
    expect(await checks()).toEqual([])
  })

  test('a day that begins within 24 hours stays in the default partition', async () => {
    const { run, partitions } = await table()
    await run(nowMs + 1)
    const later = [...ahead.slice(1), 'notice_2026_12_07']
    expect(await partitions()).toEqual([...later, 'notice_default'])
    await run(Date.UTC(2026, 10, 24))
    expect(await partitions()).toEqual([...later, 'notice_default'])
    await run(Date.UTC(2026, 11, 12))
    later.push('notice_2026_12_14', 'notice_2026_12_21')
    expect(await partitions()).toEqual([...later, 'notice_default'])
  })

  test('no day is in two partitions, or between two, on any weekday of the first pass', async () => {
    for (let day = 0; day < 7; day++) {
      const spans = spansToMake(notices, Date.UTC(2026, 1, 1 + day, 12))
      expect(spans[0]?.fromMs).toBe(Date.UTC(2026, 1, 3 + day))
      expect(new Date(spans.at(-1)?.untilMs ?? 0).getUTCDay()).toBe(1)
      spans.forEach(({ fromMs, untilMs }, at) => {
        expect(untilMs).toBeGreaterThan(fromMs)
        if (at > 0) expect(fromMs).toBe(spans[at - 1]?.untilMs)
      })
    }
  })

  test('beside a partition of another length: only weeks that it leaves free are made (F27)', async () => {
    const { run, partitions, checks, pool, failures } = await table()
    const [from, until] = [Date.UTC(2026, 11), Date.UTC(2027, 0)].map(idFloor)
    await pool.query(
      `CREATE TABLE notice_2026_12 PARTITION OF notice FOR VALUES FROM ('${from}') TO ('${until}')`,
    )
    await run()
    expect(failures).toEqual([])
    const free = ['notice_2026_11_22', 'notice_2026_11_23']
    expect(await partitions()).toEqual([...free, 'notice_2026_12', 'notice_default'])
    expect(await checks()).toEqual([])
    await run(Date.UTC(2027, 0) + policy.rowsMs)
    expect(failures).toEqual([])
    expect(await partitions()).not.toContain('notice_2026_12')
  })

  const leftOver = `ALTER TABLE notice_default ADD CONSTRAINT notice_2026_11_30_apart
    CHECK (id < '${idFloor(Date.UTC(2026, 10, 30))}' OR id >= '${idFloor(Date.UTC(2026, 11, 7))}') NOT VALID`

  test('a pass cut short before it attached: the next one goes on from there', async () => {
    const { run, partitions, checks, pool, failures } = await table()
    await pool.query(leftOver)
    await run()
    expect(failures).toEqual([])
    expect(await partitions()).toContain('notice_2026_11_30')
    expect(await checks()).toEqual([])
  })

  test('a pass cut short, and its week is near: rows of that week find a place', async () => {
    const { run, insert, partitions, checks, pool, failures } = await table()
    await pool.query(leftOver)
    await expect(insert(Date.UTC(2026, 11, 5))).rejects.toMatchObject({ code: '23514' })
    await run(Date.UTC(2026, 10, 29, 12))
    expect(failures).toEqual([])
    expect(await checks()).toEqual([])
    expect(await partitions()).not.toContain('notice_2026_11_30')
    await insert(Date.UTC(2026, 11, 5))
  })

  test('a week is dropped when all of it is older than `rows`, not before', async () => {
    const { run, insert, partitions, recipientOf } = await table()
    await run()
    const id = await insert(Date.UTC(2026, 11, 1))
    const weekEndMs = Date.UTC(2026, 11, 7)
    await run(weekEndMs + policy.rowsMs - 1)
    expect(await partitions()).toContain('notice_2026_11_30')
    await run(weekEndMs + policy.rowsMs)
    expect(await partitions()).not.toContain('notice_2026_11_30')
    expect(await recipientOf(id)).toBeUndefined()
  })

  test('a week with an open row is dropped only when that row has ended (I24)', async () => {
    const { run, insert, end, partitions, recipientOf, failures } = await table()
    await run()
    const id = await insert(Date.UTC(2026, 11, 1), 'pending')
    const longAfterMs = Date.UTC(2028, 0, 1)
    await run(longAfterMs)
    expect(failures).toEqual([])
    expect(await recipientOf(id)).toBe(recipient)
    expect(await partitions()).not.toContain('notice_2026_11_23')
    await end(id)
    await run(longAfterMs)
    expect(await partitions()).not.toContain('notice_2026_11_30')
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
  test('erased after their time; younger ones and rows of open notices stay until theirs', async () => {
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

describe('what erasing costs', () => {
  const past = nowMs - policy.recipientMs - 100_000

  // Sizes would show it too. But other databases of the server decide when PostgreSQL frees the space of an old row.
  test('rows of one page are erased by different statements, and each page keeps room for them', async () => {
    const { run, insertMany, count, pool } = await table()
    await insertMany(2_000, past)
    await pool.query(`
      CREATE TABLE pages AS SELECT id, (ctid::text::point)[0]::int AS page FROM notice;
      CREATE TABLE erased (id uuid, statement xid8 DEFAULT pg_current_xact_id());
      CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO erased VALUES (NEW.id);
        RETURN NULL;
      END $$;
      CREATE TRIGGER note AFTER UPDATE ON notice FOR EACH ROW EXECUTE FUNCTION note()`)
    await run()
    expect(await count('recipient IS NOT NULL')).toBe(0)
    const { rows } = await pool.query(
      `SELECT max(n)::int AS most, sum(n)::int AS erased FROM (
         SELECT count(*) AS n FROM erased JOIN pages USING (id) GROUP BY statement, page) AS together`,
    )
    expect(rows[0].erased).toBe(2_000)
    // A tenth of a page is free. A statement erases a twentieth of its rows.
    const perPage = await pool.query(
      'SELECT max(n)::int AS n FROM (SELECT count(*) AS n FROM pages GROUP BY page) AS p',
    )
    expect(rows[0].most).toBeLessThanOrEqual(Math.ceil(perPage.rows[0].n / 20))
    const options = await pool.query(
      `SELECT DISTINCT reloptions FROM pg_class JOIN pg_inherits ON oid = inhrelid WHERE inhparent = 'notice'::regclass`,
    )
    expect(options.rows).toEqual([{ reloptions: expect.arrayContaining(['fillfactor=90']) }])
  })

  /** Each update of the table is recorded, and takes so long. */
  const slowDown = (seconds: number) => `
    CREATE TABLE updates (at timestamptz);
    CREATE FUNCTION be_slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO updates VALUES (clock_timestamp());
      PERFORM pg_sleep(${seconds});
      RETURN NULL;
    END $$;
    CREATE TRIGGER be_slow AFTER UPDATE ON notice EXECUTE FUNCTION be_slow()`

  test('half of the time is left to sends', async () => {
    const { run, insertMany, pool } = await table()
    await insertMany(3, past)
    await pool.query(slowDown(0.1))
    await run()
    const { rows } = await pool.query(
      `SELECT count(*)::int AS n, min(apart) AS "leastMs" FROM (
         SELECT (extract(epoch FROM at - lag(at) OVER (ORDER BY at)) * 1000)::float8 AS apart FROM updates) AS gaps`,
    )
    expect(rows[0].n).toBe(3)
    expect(rows[0].leastMs).toBeGreaterThan(195)
  })

  test('stopped within a block: the next pass does the rest', async () => {
    const { url, pool, insertMany, count, run } = await table()
    await moveDatabaseClock({ pool }, `to_timestamp(${nowMs / 1_000})`)
    await insertMany(100, past)
    await pool.query(slowDown(0.05))
    const database = databaseAt(url, 1)
    const stopping = new AbortController()
    const failed = vi.fn()
    const pass = retain({
      ...{ database, policy, removeOldKeys: async () => 0, signal: stopping.signal },
      log: { backgroundFailed: failed },
    })
    await eventually(async () => (await count('recipient IS NULL')) > 0, { everyMs: 5 })
    stopping.abort()
    await pass
    expect(await count('recipient IS NOT NULL')).toBeGreaterThan(0)
    expect(failed).not.toHaveBeenCalled()
    await pool.query('DROP TRIGGER be_slow ON notice')
    await run()
    expect(await count('recipient IS NOT NULL')).toBe(0)
  })
})

describe('Idempotency-Keys', () => {
  test('half of the time is left to sends', async () => {
    const { url } = await table()
    const database = databaseAt(url, 1)
    const times: number[] = []
    const removeOldKeys = async () => {
      times.push(performance.now())
      await sleep(50)
      times.push(performance.now())
      return times.length < 6 ? 1 : 0
    }
    await retain({ database, policy, removeOldKeys, log: { backgroundFailed: vi.fn() } })
    const [, end1 = 0, start2 = 0, end2 = 0, start3 = 0] = times
    expect(Math.min(start2 - end1, start3 - end2)).toBeGreaterThan(45)
  })

  test('past their day they are removed, however many; the others stay', async () => {
    const { run, pool, failures } = await table()
    await pool.query(
      `INSERT INTO idempotency_key (app, key_hash, request_hash, notice_id, created_at)
       SELECT 'default', n::text::bytea, '', gen_random_uuid(), to_timestamp($1) - age * interval '1 hour'
       FROM generate_series(1, 2500) AS n, LATERAL (SELECT CASE WHEN n > 2400 THEN 23.9 ELSE 24.1 END AS age) AS each`,
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
    // The name is taken, so this partition cannot be made.
    await pool.query('CREATE TYPE notice_2026_11_23 AS ENUM ()')
    const gone = await insert(nowMs - policy.rowsMs - 1)
    const old = await insert(nowMs - policy.recipientMs - 1)
    await run()
    expect(failures).toEqual([
      { task: 'partitions', part: 'notice_2026_11_23', error: expect.any(Error) },
    ])
    expect(await partitions()).toHaveLength(ahead.length)
    expect(await recipientOf(gone)).toBeUndefined()
    expect(await recipientOf(old)).toBeNull()
    await pool.query('DROP TYPE notice_2026_11_23')
    await run()
    expect(await partitions()).toContain('notice_2026_11_23')
  })

  test('for a lock that another holds: it gives up, sends go on meanwhile, and the next pass does it', async () => {
    const { run, insert, recipientOf, partitions, pool, failures } = await table()
    const old = await insert(nowMs - policy.recipientMs - 1)
    const reader = await pool.connect()
    await reader.query('BEGIN; SELECT FROM notice')
    let isOver = false
    const sends = (async () => {
      await pool.query(`SET statement_timeout = '10s'`)
      while (!isOver) await insert(nowMs)
    })()
    try {
      await run()
    } finally {
      isOver = true
      reader.release(true)
    }
    await sends
    expect(failures.map(({ part }) => part)).toEqual(ahead)
    expect(failures[0]?.error).toMatchObject({ code: '55P03' })
    expect(await recipientOf(old)).toBeNull()
    await run()
    expect(await partitions()).toEqual([...ahead, 'notice_default'])
  })
})

test('four workers at once: no error, one table (I11)', async () => {
  const { run, partitions, failures } = await table()
  await run(nowMs, { workers: 4 })
  expect(failures).toEqual([])
  expect(await partitions()).toHaveLength(ahead.length + 1)
})

test('stopped in the middle of a statement: it ends at once and reports nothing', async () => {
  const { url, pool } = await table()
  const database = databaseAt(url, 1)
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
    // Other databases share the server, so only locks of this database belong to this pass.
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

test('decisions: a week is dropped when all of it is older than `decisions`, and so are old rows of the default partition', async () => {
  const { run, pool, failures } = await table()
  const weeks = async () => {
    const { rows } = await pool.query(
      "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'decision'::regclass ORDER BY 1",
    )
    return rows.map(({ name }) => name)
  }
  const insert = (at: number) =>
    pool.query(
      `INSERT INTO decision (at, app, channel, outcome, times)
       SELECT $1::timestamptz, 'shop', 'sms', 'refused', n FROM generate_series(1, 1500) AS n`,
      [new Date(at)],
    )
  await run()
  expect(await weeks()).toEqual([
    ...['decision_2026_11_22', 'decision_2026_11_23', 'decision_2026_11_30'],
    'decision_default',
  ])
  for (const at of [nowMs - 8 * dayMs, nowMs, Date.UTC(2026, 10, 22), Date.UTC(2026, 10, 29)]) {
    await insert(at)
  }
  await run(nowMs + 1)
  const { rows } = await pool.query(
    'SELECT tableoid::regclass::text AS name, count(*)::int AS n FROM decision GROUP BY 1 ORDER BY 1',
  )
  expect(rows).toEqual([
    { name: 'decision_2026_11_22', n: 1_500 },
    { name: 'decision_2026_11_23', n: 1_500 },
    { name: 'decision_default', n: 1_500 },
  ])
  // The Sunday ends seven days before this moment, and the week does not.
  await run(Date.UTC(2026, 10, 30))
  expect((await weeks())[0]).toBe('decision_2026_11_23')
  await run(Date.UTC(2026, 11, 7))
  expect((await weeks())[0]).toBe('decision_2026_11_30')
  expect((await pool.query('SELECT FROM decision')).rowCount).toBe(0)
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

test('reports about recipients are kept for their own time', async () => {
  const { pool, run } = await table()
  for (const days of [199, 201]) {
    await pool.query(
      `INSERT INTO suppression (app, recipient_hash, reason, provider, at) VALUES ('default', $1, 'bounced', 'mail', $2)`,
      [randomBytes(16), new Date(nowMs - days * dayMs)],
    )
  }
  await run()
  const { rows } = await pool.query('SELECT at FROM suppression')
  expect(rows).toEqual([{ at: new Date(nowMs - 199 * dayMs) }])
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
