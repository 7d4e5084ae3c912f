import pg from 'pg'
import { inject } from 'vitest'
import { releaseLater } from './release.ts'

export interface TestDatabase {
  readonly url: string
  readonly pool: pg.Pool
}

let cloneCount = 0

/**
 * A migrated database of this file's own, cloned from the run's template; dropped when the file (or
 * the test that asked) ends, whoever is still connected.
 */
export async function testDatabase(): Promise<TestDatabase> {
  const template = inject('templateDatabase')
  cloneCount += 1
  const name = `${template.replace('template', 'clone')}_${process.pid}_${cloneCount}`
  await runSql(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`)
  releaseLater(() => runSql(`DROP DATABASE ${name} WITH (FORCE)`))

  const target = new URL(inject('postgresUrl'))
  target.pathname = `/${name}`
  const pool = new pg.Pool({ connectionString: target.href, max: 4 })
  // A server ended under an idle connection is for the next query to report.
  pool.on('error', () => {})
  releaseLater(() => pool.end())
  return { url: target.href, pool }
}

async function runSql(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject('postgresUrl') })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}

/**
 * Moves PostgreSQL's clock: from now on every new connection to this database takes `time` (SQL, of type
 * timestamptz) for now(). May be moved again. Defaults of columns keep the true time.
 */
export async function moveDatabaseClock(
  { pool }: Pick<TestDatabase, 'pool'>,
  time: string,
): Promise<void> {
  await pool.query(`
    CREATE OR REPLACE FUNCTION public.now() RETURNS timestamptz LANGUAGE sql STABLE
      AS $$ SELECT (${time})::timestamptz $$;
    DO $$ BEGIN
      EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database());
    END $$`)
}
