import type pg from 'pg'
import { about, type Finding } from '../base/finding.ts'
import { type Database, openDatabase } from './database.ts'
import { reasonsPostgresNotReady } from './database-ready.ts'
import { lookAtClock } from './examine-clock.ts'

const oldestVersion = 14

/** `more`: further checks, which need a working database. */
export async function examinePostgres(
  url: string,
  more: (database: Database) => Promise<Finding[]> = async () => [],
): Promise<Finding[]> {
  const { ok, error } = about('postgresql')
  const database = openDatabase(url, { maxConnections: 1, onError: () => {} })
  try {
    const reasons = await reasonsPostgresNotReady(database)
    if (reasons.length > 0) {
      return reasons.map((reason) => error(reason, 'see "Ready or not" in docs/operations.md'))
    }
    const ready = ok('writable, schema and rights are correct')
    return [ready, ...(await lookAtServer(database)), ...(await more(database))]
  } finally {
    await database.close()
  }
}

async function lookAtServer({ pool }: Database): Promise<Finding[]> {
  const { ok, warning, error } = about('postgresql')
  const { rows } = await pool.query(factsSql)
  const { version, fsync, commit } = rows[0]
  const findings = [
    Number(version) >= oldestVersion * 10_000
      ? ok(`version ${Math.floor(Number(version) / 10_000)}`)
      : error(`version ${version}`, `Postern needs ${oldestVersion} or later`),
  ]
  if (fsync === 'off') {
    findings.push(
      error('fsync is off: a crash of the machine may destroy the database', 'set fsync = on'),
    )
  }
  if (commit === 'off') {
    const message = 'synchronous_commit is off: a crash loses messages that were accepted'
    findings.push(warning(message, 'set synchronous_commit = on'))
  }
  const clock = await lookAtClock('postgresql', async () => {
    const now = await pool.query('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 ms')
    return Number(now.rows[0].ms)
  })
  return [...findings, await lookForOldTransaction(pool), clock]
}

const factsSql = `
  SELECT current_setting('server_version_num') AS version, current_setting('fsync') AS fsync,
    current_setting('synchronous_commit') AS commit`

/** A transaction is old after either of these. A busy server has thousands of transactions a minute. */
const oldAfter = { seconds: 600, transactions: 100_000 }

/**
 * Searches for the oldest transaction that keeps vacuum from removing old versions of rows. Users without further rights
 * don't see when transactions of other users began. So the number of transactions since then counts too.
 */
export async function lookForOldTransaction(
  pool: pg.Pool,
  { seconds, transactions } = oldAfter,
): Promise<Finding> {
  const { ok, warning } = about('postgresql')
  const { rows } = await pool.query(oldestSql, [seconds, transactions])
  const [oldest] = rows
  if (!oldest) return ok('no old transaction keeps dead rows')
  const since =
    oldest.seconds === null
      ? `${oldest.age} transactions ago`
      : `${Math.round(oldest.seconds / 60)} minutes ago`
  return warning(
    `${oldest.holder} keeps dead rows since ${since}, so tables and searches grow`,
    'end it; see "Old transactions" in docs/servers.md',
  )
}

const oldestSql = `
  SELECT holder, seconds, age FROM (
    SELECT format('the session with pid %s of user %s', pid, coalesce(usename, '?')) AS holder,
      extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds, age(backend_xmin) AS age
    FROM pg_stat_activity
    WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
      AND (datid = 0 OR datid IS NULL OR datname = current_database())
      AND backend_type IS DISTINCT FROM 'autovacuum worker'
    UNION ALL
    SELECT format('the replication slot %s', slot_name), NULL, age(xmin)
    FROM pg_replication_slots WHERE xmin IS NOT NULL
    UNION ALL
    SELECT format('the prepared transaction %s', gid),
      extract(epoch FROM clock_timestamp() - prepared)::float8, age(transaction)
    FROM pg_prepared_xacts WHERE database = current_database()
  ) AS holders
  WHERE seconds > $1 OR age > $2
  ORDER BY age DESC, seconds DESC LIMIT 1`
