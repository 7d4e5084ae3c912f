import pg from 'pg'
import { inject } from 'vitest'
import { releaseLater } from './release.ts'

export interface TestDatabase {
  readonly url: string
  readonly pool: pg.Pool
}

let cloneCount = 0

/**
 * A migrated database for this file alone, cloned from the template of the run. It is dropped at the end of the file
 * (or of the test that asked), even with open connections.
 */
export async function testDatabase(): Promise<TestDatabase> {
  const template = inject('templateDatabase')
  cloneCount += 1
  const name = `${template.replace('template', 'clone')}_${process.pid}_${cloneCount}`
  await runSql(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`)
  releaseLater(() => runSql(`DROP DATABASE ${name} WITH (FORCE)`))

  const target = new URL(inject('postgresUrl'))
  target.pathname = `/${name}`
  const schema = target.searchParams.get('schema')
  const options = schema ? `-c search_path=${schema}` : undefined
  const pool = new pg.Pool({ connectionString: target.href, max: 4, options })
  // If the server ends under an idle connection, the next query reports it.
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
 * Moves PostgreSQL's clock: from now on, every new connection to this database uses `time` (SQL, of type timestamptz)
 * for now(). It can be moved again. Defaults of columns keep the true time.
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
