/** Searches for open notices while an old transaction keeps the dead entries of all notices that have ended. */
import { expect, test } from 'vitest'
import { createLowEnd } from '../../src/notice/low-end.ts'
import { createNoticeStore } from '../../src/notice/store.ts'
import { databaseAt, type TestDatabase, testDatabase } from '../tools/database.ts'
import { insertNotices, type NoticeRow } from '../tools/notices.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const ended = 5_000

/** Notices have ended, and a transaction from before is still open. */
async function manyDead({ dueAgoS = 600 } = {}) {
  const testing = await testDatabase()
  await insert(testing, ended, dueAgoS)
  const old = await testing.pool.connect()
  releaseLater(() => old.release())
  await old.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM notice')
  await testing.pool.query(`UPDATE notice SET state = 'failed', due_at = NULL`)
  const database = databaseAt(testing.url, 1)
  /** Entries of the index of due times that the work reads on the connection of `database`. */
  async function entriesRead(work: () => Promise<unknown>): Promise<number> {
    const read = async () => {
      const { rows } = await database.pool.query(
        `SELECT coalesce(sum(idx_tup_read), 0)::int AS n FROM pg_stat_user_indexes
         WHERE indexrelname LIKE 'notice%kind_due_at_idx'`,
      )
      return rows[0].n as number
    }
    const flush = () => database.pool.query('SELECT pg_stat_force_next_flush()')
    await flush()
    const before = await read()
    await work()
    await flush()
    return (await read()) - before
  }
  return { ...testing, database, entriesRead }
}

async function insert({ pool }: TestDatabase, count: number, dueAgoS: number): Promise<void> {
  const row = { kind: 'captcha', due_at: new Date(Date.now() - dueAgoS * 1_000) }
  await insertNotices(pool, Array<NoticeRow>(count).fill(row))
}

test('a search from the beginning is slow → the next ones begin at the earliest open notice, and find what became due', async () => {
  const { entriesRead, database, ...testing } = await manyDead()
  const findLowEnd = createLowEnd(database, 0)
  await findLowEnd()
  await eventually(async () => {
    expect(await entriesRead(findLowEnd)).toBeLessThan(100)
  })
  await insert(testing, 3, 10)
  const { captcha, notice } = await findLowEnd()
  const { rows } = await testing.pool.query(
    "SELECT $1::timestamptz < now() - interval '9 s' AS found",
    [captcha],
  )
  expect(rows[0].found).toBe(true)
  expect(Date.parse(notice)).toBeGreaterThan(Date.parse(captcha))
})

test('the notices that have ended were due later, such as claims → no search reads beyond the present', async () => {
  const { entriesRead, database } = await manyDead({ dueAgoS: -600 })
  expect(await entriesRead(createLowEnd(database, 0))).toBeLessThan(100)
})

test('a row whose commit took minutes → the next search from the beginning finds it', async () => {
  const { database, ...testing } = await manyDead()
  const findLowEnd = createLowEnd(database, 0, 1)
  await findLowEnd()
  await insert(testing, 1, 300)
  await eventually(async () => {
    const { captcha } = await findLowEnd()
    return Date.parse(captcha) < Date.now() - 200_000
  })
})

test('overdue notices and the age of the oldest one → neither search reads a dead entry again', async () => {
  const { entriesRead, database, ...testing } = await manyDead()
  const store = createNoticeStore(database, { claimTtlMs: 10_000 })
  await insert(testing, 2, 10)
  const reads = await entriesRead(async () => {
    expect(await store.takeOverdue('captcha', 10, 5_000, 15_000)).toHaveLength(2)
    await store.oldestOpenSeconds()
  })
  // Each call finds the earliest notice once. Before, each search read all dead entries.
  expect(reads).toBeLessThan(2 * ended + 100)
})
