/**
 * A connection as Postern's statements and drivers expect it.
 *
 * Server, database and role can have other settings, and drivers take PostgreSQL's defaults for granted. Prisma's
 * driver reads each time as if it were in UTC. A role with `serializable` or a short `lock_timeout` fails statements that
 * run beside others. So every connection gets these settings, and `readyz` compares them.
 *
 * A connection must also keep one session. Named statements, advisory locks and settings belong to a session. A pooler
 * such as PgBouncer drops a connection's settings. In transaction mode it gives each transaction another session, so locks
 * stay behind and statements are unknown. Without the time limit, statements could commit after their caller got 503. So
 * a connection is refused if its time limit does not apply.
 *
 * Not set: `default_transaction_read_only`. Operators and full servers make a database read-only by it.
 */
import type pg from 'pg'

/** Values in PostgreSQL's own form, so that they can be compared. */
const settings: Readonly<Record<string, string>> = {
  TimeZone: 'UTC',
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'postgres',
  client_encoding: 'UTF8',
  bytea_output: 'hex',
  extra_float_digits: '1',
  array_nulls: 'on',
  standard_conforming_strings: 'on',
  default_transaction_isolation: 'read committed',
  // The time limit of statements includes the wait for locks.
  lock_timeout: '0',
  idle_session_timeout: '0',
}

/** Returns PostgreSQL's time in milliseconds since 1970. Throws if the requested time limit does not apply. */
export async function openSession(
  client: pg.ClientBase,
  statementTimeoutMs: number,
): Promise<number> {
  const { rows } = await client.query<{ nowMs: string }>(openSql, [statementTimeoutMs])
  const [session] = rows
  if (!session) throw pooled()
  return Number(session.nowMs)
}

/** Throws if a connection of the pool has lost its settings. */
export async function proveSession(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query({ name: 'session', text: lostSql, values: [settings] })
  if (rows.length > 0) throw pooled()
}

const pooled = () =>
  Object.assign(new Error('a pooler dropped the settings of the session'), { code: 'POOLER' })

/**
 * Sets nothing without the time limit: a pooler would keep it for its other clients. The time is a text, because
 * `extra_float_digits` is not set yet. PostgreSQL 17 has another time limit.
 */
const openSql = `
  SELECT (extract(epoch FROM now()) * 1000)::text AS "nowMs",
    ${Object.entries(settings).map(([name, value]) => `set_config('${name}', '${value}', false)`)},
    CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL
      THEN set_config('transaction_timeout', '0', false) END
  WHERE extract(epoch FROM current_setting('statement_timeout')::interval) * 1000 = $1::numeric`

const lostSql = `
  SELECT key FROM jsonb_each_text($1) WHERE value IS DISTINCT FROM current_setting(key)`
