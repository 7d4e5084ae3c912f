/**
 * Checks that a connection keeps one PostgreSQL session. Named statements, advisory locks and the statement time limit
 * belong to a session. A pooler such as PgBouncer drops a connection's settings. In transaction mode it gives each
 * transaction another session, so locks stay behind and statements are unknown. Without the time limit, statements
 * could commit after their caller got 503. So a connection is refused if its time limit does not apply.
 */
import type pg from 'pg'

/** Returns PostgreSQL's time in milliseconds since 1970. Throws if the requested time limit does not apply. */
export async function openSession(
  client: pg.ClientBase,
  statementTimeoutMs: number,
): Promise<number> {
  const { rows } = await client.query<{ nowMs: number; limitMs: number }>(sessionSql)
  const [session] = rows
  if (session?.limitMs === statementTimeoutMs) return session.nowMs
  throw Object.assign(new Error('a pooler dropped the settings of the session'), {
    code: 'POOLER',
  })
}

const sessionSql = `
  SELECT (extract(epoch FROM now()) * 1000)::float8 AS "nowMs",
    (extract(epoch FROM current_setting('statement_timeout')::interval) * 1000)::float8 AS "limitMs"`
