import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { openDatabase } from '../../src/db/database.ts'
import { retain } from '../../src/notice/retention.ts'
import { testDatabase } from '../support/database.ts'
import { releaseLater } from '../support/release.ts'

const dayMs = 86_400_000
const nowMs = Date.UTC(2026, 10, 21)
const policy = { recipientMs: 30 * dayMs, rowsMs: 180 * dayMs }

async function table() {
  const { url, pool } = await testDatabase()
  const open = () => {
    const database = openDatabase(url, { maxConnections: 3, onError: () => {} })
    releaseLater(() => database.close())
    return database
  }
  const database = open()
  let keyRuns = 0
  const run = (at = nowMs, by = database) =>
    retain({
      database: by,
      policy,
      removeOldKeys: async () => {
        keyRuns++
      },
      nowMs: at,
    })

  async function insert(atMs: number, state = 'sent'): Promise<string> {
    const id = newId(atMs)
    await pool.query(
      `INSERT INTO notice (id, app, kind, channel, recipient, recipient_hash, template, locale, state,
                           due_at, created_at, expires_at)
       VALUES ($1, 'default', 'notice', 'sms', '+8613800138000', $2, 'welcome', 'en', $3,
               CASE WHEN $3 = 'pending' THEN now() END, $4, $4)`,
      [id, randomBytes(16), state, new Date(atMs)],
    )
    return id
  }
  async function recipientOf(id: string): Promise<string | null | undefined> {
    const { rows } = await pool.query('SELECT recipient FROM notice WHERE id = $1', [id])
    return rows[0]?.recipient
  }
  async function partitions(): Promise<string[]> {
    const { rows } = await pool.query(
      "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'notice'::regclass ORDER BY 1",
    )
    return rows.map(({ name }) => name)
  }
  return { pool, open, run, insert, recipientOf, partitions, keyRuns: () => keyRuns }
}

describe('partitions', () => {
  test('the next two months are made ahead; a row goes where its id says, with index and trigger', async () => {
    const { run, insert, partitions, pool } = await table()
    await run()
    await run()
    expect(await partitions()).toEqual(['notice_2026_12', 'notice_2027_01', 'notice_default'])
    const id = await insert(Date.UTC(2026, 11, 24))
    const { rows } = await pool.query('SELECT id FROM notice_2026_12')
    expect(rows).toEqual([{ id }])
    const backwards = `UPDATE notice SET state = 'sending', due_at = now() WHERE id = $1`
    await expect(pool.query(backwards, [id])).rejects.toMatchObject({ code: '23514' })
  })

  test('a month that has rows in the default partition stays there, and the one after it is made', async () => {
    const { run, insert, partitions } = await table()
    await insert(Date.UTC(2026, 11, 1))
    await run()
    expect(await partitions()).toEqual(['notice_2027_01', 'notice_default'])
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

  test('old rows of the default partition are deleted, younger ones stay', async () => {
    const { run, insert, recipientOf, pool } = await table()
    const old = await insert(nowMs - policy.rowsMs - 1)
    const young = await insert(nowMs - policy.rowsMs + 1)
    await run()
    expect(await recipientOf(old)).toBeUndefined()
    const { rows } = await pool.query('SELECT 1 FROM notice WHERE id = $1', [young])
    expect(rows).toHaveLength(1)
  })
})

test('a recipient is erased after its time, a younger one and that of an open notice stay until theirs', async () => {
  const { run, insert, recipientOf, pool } = await table()
  const past = nowMs - policy.recipientMs
  const [old, open, later, young] = [
    await insert(past - 3_000),
    await insert(past - 2_000, 'pending'),
    await insert(past - 1_000),
    await insert(past + 1_000),
  ]
  await run()
  expect(await recipientOf(old)).toBeNull()
  expect(await recipientOf(open)).toBe('+8613800138000')
  expect(await recipientOf(later)).toBeNull()
  expect(await recipientOf(young)).toBe('+8613800138000')

  await pool.query(`UPDATE notice SET state = 'expired', due_at = NULL WHERE id = $1`, [open])
  await run(nowMs + 2_000)
  expect(await recipientOf(open)).toBeNull()
  expect(await recipientOf(young)).toBeNull()
})

test('more rows than one step takes are all erased', async () => {
  const { run, pool } = await table()
  const ids = Array.from({ length: 2_500 }, (_, index) =>
    newId(nowMs - policy.recipientMs - 10_000 + index),
  )
  await pool.query(
    `INSERT INTO notice (id, app, kind, channel, recipient, recipient_hash, template, locale, state,
                         created_at, expires_at)
     SELECT id, 'default', 'notice', 'sms', '+8613800138000', $2, 'welcome', 'en', 'sent', now(), now()
     FROM unnest($1::uuid[]) AS new (id)`,
    [ids, randomBytes(16)],
  )
  await run()
  const { rows } = await pool.query(
    'SELECT count(*)::int AS n FROM notice WHERE recipient IS NOT NULL',
  )
  expect(rows[0].n).toBe(0)
})

test('four workers at once: no error, one table (I11)', async () => {
  const { run, open, partitions, keyRuns } = await table()
  await Promise.all([open(), open(), open(), open()].map((database) => run(nowMs, database)))
  expect(await partitions()).toHaveLength(3)
  expect(keyRuns()).toBeGreaterThanOrEqual(1)
})
