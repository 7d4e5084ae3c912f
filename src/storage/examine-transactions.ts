import type pg from 'pg'
import { about, type Finding } from '../base/finding.ts'

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
