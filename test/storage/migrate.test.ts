import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type pg from 'pg'
import { expect, test } from 'vitest'
import { migrate } from '../../src/storage/migrate.ts'
import { type TestDatabase, testDatabase } from '../tools/database.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

/** A folder with one migration that needs a moment without any reader of the table. */
async function oneMigration(): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-migrations-'))
  releaseLater(() => rm(folder, { recursive: true, force: true }))
  await mkdir(join(folder, '29991231000000_note'))
  const sql = 'ALTER TABLE api_key ADD COLUMN note text'
  await writeFile(join(folder, '29991231000000_note', 'migration.sql'), sql)
  return pathToFileURL(`${folder}/`)
}

/** A transaction that has read the table and stays open. */
async function leaveOpen({ pool }: TestDatabase): Promise<pg.ClientBase> {
  const client = await pool.connect()
  releaseLater(() => client.release(true))
  await client.query('BEGIN')
  await client.query('SELECT id FROM api_key LIMIT 1')
  return client
}

const isWaiting = async ({ pool }: TestDatabase) => {
  const { rows } = await pool.query(
    `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
     AND query LIKE 'ALTER TABLE api_key%'`,
  )
  return rows.length > 0
}

const hasColumn = async ({ pool }: TestDatabase) => {
  const { rows } = await pool.query(
    `SELECT FROM information_schema.columns WHERE table_name = 'api_key' AND column_name = 'note'`,
  )
  return rows.length > 0
}

test('a migration that was changed after it was applied: an error names it, and nothing runs', async () => {
  const { url, pool } = await testDatabase()
  const folder = await oneMigration()
  const file = new URL('29991231000000_note/migration.sql', folder)
  expect(await migrate(url, { folder })).toEqual(['29991231000000_note'])
  await writeFile(file, 'ALTER TABLE api_key DROP COLUMN note')
  await expect(migrate(url, { folder })).rejects.toThrow('29991231000000_note')
  await pool.query('SELECT note FROM api_key')
})

test('behind an old transaction: it lets later statements pass, and fails with advice', async () => {
  const database = await testDatabase()
  await leaveOpen(database)
  const patience = { lockMs: 100, tries: 3, pauseMs: 10 }
  const migrating = migrate(database.url, { folder: await oneMigration(), patience })
  const failed = expect(migrating).rejects.toMatchObject({
    message: 'migration 29991231000000_note failed',
    cause: { message: expect.stringMatching(/pg_stat_activity.* migrate again$/) },
  })
  // Without a limit it would wait behind the migration for ever.
  await eventually(() => isWaiting(database))
  await database.pool.query('SELECT id FROM api_key LIMIT 1')
  await failed
  expect(await hasColumn(database)).toBe(false)
})

test('behind a transaction that ends in time: it tries again and is applied', async () => {
  const database = await testDatabase()
  const open = await leaveOpen(database)
  const patience = { lockMs: 50, tries: 1_000, pauseMs: 10 }
  const migrating = migrate(database.url, { folder: await oneMigration(), patience })
  await eventually(() => isWaiting(database))
  await eventually(async () => !(await isWaiting(database)), { everyMs: 1 })
  await open.query('COMMIT')
  expect(await migrating).toEqual(['29991231000000_note'])
  expect(await hasColumn(database)).toBe(true)
})
