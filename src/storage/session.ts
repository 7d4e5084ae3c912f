/**
 * Whether a connection is a session of PostgreSQL's own. Named statements, advisory locks and the time limit of statements
 * belong to a session. A pooler such as PgBouncer drops the settings that a connection asks for, and in transaction mode gives
 * each transaction to another session: locks stay behind, and statements are unknown. Without their time limit, statements
 * could commit after their caller has heard 503. So a connection whose time limit does not apply is not used.
 */
import type pg from 'pg'

/** Returns PostgreSQL's time in milliseconds since 1970. Throws when the time limit that was asked for does not apply. */
export async function openSession(
  client: pg.ClientBase,
  statementTimeoutMs: number,
): Promise<number> {
  const { rows } = await client.query<{ nowMs: number; limitMs: number }>(sessionSql)
  const [session] = rows
  if (session?.limitMs === statementTimeoutMs) return session.nowMs
  throw Object.assign(new Error('a pooler has dropped the settings of the session'), {
    code: 'POOLER',
  })
}

const sessionSql = `
  SELECT (extract(epoch FROM now()) * 1000)::float8 AS "nowMs",
    (extract(epoch FROM current_setting('statement_timeout')::interval) * 1000)::float8 AS "limitMs"`
