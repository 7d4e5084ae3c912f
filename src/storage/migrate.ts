/**
 * Applies `prisma/migrations` in order.
 *
 * `prisma migrate deploy` downloads a native engine when it runs, and a deployment must not depend on a download. So
 * this code uses Prisma's layout and its table `_prisma_migrations` unchanged (id, checksum, times, steps). A later
 * `prisma migrate deploy` finds nothing to do.
 *
 * Any number of machines may run it at once: an advisory lock admits one, and the others wait. Each migration and its
 * record are one transaction, so a crash leaves either both or neither.
 *
 * Sends go on meanwhile. While a migration waits for a table, all other statements on that table wait behind it. So a
 * migration waits only a moment, lets them pass, and tries again.
 */
import { createHash, randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { readPostgresAddress } from '../base/postgres-address.ts'
import { prepareSchema } from './schema.ts'
import { openSession } from './session.ts'

const migrationsFolder = new URL('../../prisma/migrations/', import.meta.url)

/** Any fixed number works. */
const migrationLockId = 7_022_026

/** Far above the time of any migration. */
const statementTimeoutMs = 86_400_000

interface Migration {
  name: string
  sql: string
  checksum: string
}

/**
 * A lock wait must last longer than `deadlock_timeout` (1 s), because then an automatic vacuum gives way. It must end
 * before sends give up after 1.2 s (database.ts).
 */
const defaultPatience = { lockMs: 1_100, tries: 10, pauseMs: 2_000 }

/** Returns the names of the applied migrations; empty if the schema was up to date. */
export async function migrate(
  databaseUrl: string,
  { folder = migrationsFolder, patience = defaultPatience } = {},
): Promise<string[]> {
  const migrations = await readMigrations(folder)
  const { connectionString = databaseUrl, schema } = readPostgresAddress(databaseUrl) ?? {}
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: 5_000,
    statement_timeout: statementTimeoutMs,
  })
  await client.connect()
  try {
    // Refuses a pooler: behind one, the lock below could outlive this process.
    await openSession(client, statementTimeoutMs)
    await client.query('SELECT pg_advisory_lock($1)', [migrationLockId])
    await prepareSchema(client, schema)
    const applied = await appliedChecksums(client)
    // `IF NOT EXISTS` would need the right to create tables also for a table that exists.
    if (!applied) await client.query(createMigrationsTable)
    const names: string[] = []
    for (const migration of migrations) {
      const known = applied?.get(migration.name)
      if (known === migration.checksum) continue
      if (known) throw new Error(`migration ${migration.name} was changed after it was applied`)
      await apply(client, migration, patience)
      names.push(migration.name)
    }
    return names
  } finally {
    await client.end()
  }
}

/** The migrations that are not applied yet, for `readyz`. Throws if PostgreSQL is away. */
export async function pendingMigrations(pool: pg.Pool): Promise<string[]> {
  const names = await knownMigrations()
  const applied = await appliedChecksums(pool)
  return names.filter((name) => !applied?.has(name))
}

/** Read only once. A running process needs the migrations of this build, also after an update replaced its files. */
let known: Promise<string[]> | undefined

export function knownMigrations(): Promise<string[]> {
  known ??= namesIn(migrationsFolder).catch((error) => {
    known = undefined
    throw error
  })
  return known
}

async function namesIn(folder: URL): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true })
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  return names.sort()
}

async function readMigrations(folder: URL): Promise<Migration[]> {
  const names = await namesIn(folder)
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(new URL(`${name}/migration.sql`, folder), 'utf8')
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') }
    }),
  )
}

/** Undefined without the table of migrations. */
async function appliedChecksums(
  client: pg.Client | pg.Pool,
): Promise<Map<string, string> | undefined> {
  const there = await client.query(
    "SELECT to_regclass(quote_ident(current_schema()) || '._prisma_migrations') IS NOT NULL AS exists",
  )
  if (!there.rows[0].exists) return undefined
  const { rows } = await client.query(
    'SELECT migration_name, checksum FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
  )
  return new Map(rows.map((row) => [row.migration_name, row.checksum]))
}

async function apply(
  client: pg.Client,
  migration: Migration,
  { lockMs, tries, pauseMs }: typeof defaultPatience,
): Promise<void> {
  for (let triesLeft = tries - 1; ; triesLeft--) {
    try {
      return await applyOnce(client, migration, lockMs)
    } catch (error) {
      const isLocked = (error as { code?: string }).code === '55P03'
      if (isLocked && triesLeft > 0) {
        await sleep(pauseMs)
        continue
      }
      const cause = isLocked ? new Error(lockedSentence) : error
      throw new Error(`migration ${migration.name} failed`, { cause })
    }
  }
}

const lockedSentence =
  'an older transaction locks a table that the migration must change; find it by ' +
  'SELECT pid, state, xact_start, query FROM pg_stat_activity WHERE xact_start IS NOT NULL ORDER BY xact_start, ' +
  'wait for its end or end it by SELECT pg_terminate_backend(pid), then migrate again'

async function applyOnce(client: pg.Client, migration: Migration, lockMs: number): Promise<void> {
  await client.query(`BEGIN; SET LOCAL lock_timeout = ${lockMs}`)
  try {
    await client.query(migration.sql)
    await client.query(
      `INSERT INTO _prisma_migrations (id, checksum, migration_name, started_at, finished_at, applied_steps_count)
       VALUES ($1, $2, $3, now(), clock_timestamp(), 1)`,
      [randomUUID(), migration.checksum, migration.name],
    )
    await client.query('COMMIT')
  } catch (error) {
    // A failed rollback must not hide the first error.
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}

const createMigrationsTable = `
  CREATE TABLE _prisma_migrations (
    id VARCHAR(36) PRIMARY KEY NOT NULL,
    checksum VARCHAR(64) NOT NULL,
    finished_at TIMESTAMPTZ,
    migration_name VARCHAR(255) NOT NULL,
    logs TEXT,
    rolled_back_at TIMESTAMPTZ,
    started_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    applied_steps_count INTEGER NOT NULL DEFAULT 0
  )`
