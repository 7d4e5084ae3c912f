import pg from 'pg'
import { inject } from 'vitest'
import { type Database, openDatabase } from '../../src/storage/database.ts'
import { openSession } from '../../src/storage/session.ts'
import { releaseLater } from './release.ts'

export interface TestDatabase {
  readonly url: string
  readonly pool: pg.Pool
}

let cloneCount = 0

/** No statement of a test needs longer. */
const statementTimeoutMs = 120_000

/**
 * A migrated database for this file alone, cloned from the template of the run. It is dropped at the end of the file
 * (or of the test that asked), even with open connections. `server`: its address, with the role that uses the database.
 */
export async function testDatabase(server = inject('postgresUrl')): Promise<TestDatabase> {
  const template = inject('templateDatabase')
  cloneCount += 1
  const name = `${template.replace('template', 'clone')}_${process.pid}_${cloneCount}`
  await runSql(server, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`)
  releaseLater(() => runSql(server, `DROP DATABASE ${name} WITH (FORCE)`))

  const target = new URL(server)
  target.pathname = `/${name}`
  const schema = target.searchParams.get('schema')
  // Tests read and write in one way in every world: its settings are for the tested code.
  const pool = new pg.Pool({
    connectionString: target.href,
    max: 4,
    statement_timeout: statementTimeoutMs,
    onConnect: async (client) => {
      await openSession(client, statementTimeoutMs)
      if (schema) await client.query(`SET search_path = ${schema}`)
    },
  })
  // If the server ends under an idle connection, the next query reports it.
  pool.on('error', () => {})
  releaseLater(() => pool.end())
  return { url: target.href, pool }
}

/** Postern's own connections to a database, for this test or file. A busy machine may answer late. */
export function databaseAt(url: string, maxConnections: number): Database {
  const database = openDatabase(url, { maxConnections, onError: () => {}, statementTimeoutMs })
  releaseLater(() => database.close())
  return database
}

async function runSql(server: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: server })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}

/**
 * Moves PostgreSQL's clock: from now on, every new connection of this role to this database uses `time` (SQL, of type
 * timestamptz) for now(). It can be moved again. Defaults of columns keep the true time.
 */
export async function moveDatabaseClock(
  { pool }: Pick<TestDatabase, 'pool'>,
  time: string,
): Promise<void> {
  // Settings of a role precede the settings of a database.
  await pool.query(`
    CREATE OR REPLACE FUNCTION now() RETURNS timestamptz LANGUAGE sql STABLE
      AS $$ SELECT (${time})::timestamptz $$;
    DO $$ BEGIN
      EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET search_path = %s', current_database(),
        ${movedPath});
    END $$`)
}

/** PostgreSQL's own functions come last. They are first in a path without them. */
const movedPath = `regexp_replace(current_setting('search_path'), ', pg_catalog$', '') || ', pg_catalog'`

/** Connections that are open already can use the moved clock too. */
export const useMovedClock = `SELECT set_config('search_path', ${movedPath}, false)`
