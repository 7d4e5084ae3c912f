/** Servers, databases and roles with odd settings: the same times, tables and answers on every connection. */
import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { openDatabase } from '../../src/storage/database.ts'
import { reasonsPostgresNotReady } from '../../src/storage/database-ready.ts'
import { migrate } from '../../src/storage/migrate.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

type Settings = Readonly<Record<string, string>>

/** New connections to the database get these settings, as by its operator. */
async function settings({ pool }: { pool: pg.Pool }, values: Settings): Promise<void> {
  for (const [name, value] of Object.entries(values)) {
    await pool.query(`DO $$ BEGIN
      EXECUTE format('ALTER DATABASE %I SET ${name} = %L', current_database(), '${value}'); END $$`)
  }
}

/** An empty database, and a role that owns nothing in it. */
async function emptyDatabase() {
  const { url, pool } = await testDatabase(inject('ownerUrl'))
  await pool.query(`DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema$)' LOOP
      EXECUTE format('DROP SCHEMA %I CASCADE', name);
    END LOOP; END $$; CREATE SCHEMA public`)
  const role = `role_${process.pid}_${Math.random().toString(36).slice(2)}`
  await pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'own'`)
  releaseLater(async () => {
    const owner = new pg.Client({ connectionString: url })
    await owner.connect()
    await owner.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
    await owner.end()
  })
  const asRole = Object.assign(new URL(url), { username: role, password: 'own' }).href
  return { url, pool, role, asRole }
}

function open(url: string, maxConnections = 2) {
  const database = databaseAt(url, maxConnections)
  return database
}

const tablesIn = async (pool: pg.Pool) => {
  const { rows } = await pool.query(
    `SELECT DISTINCT schemaname AS name FROM pg_tables WHERE tablename IN ('notice', '_prisma_migrations', 'api_key')`,
  )
  return rows.map(({ name }) => name)
}

const schemaOf = async (pool: pg.Pool): Promise<string> =>
  (await pool.query('SELECT current_schema() AS name')).rows[0].name

/** An address can have parameters already. */
function withQuery(url: string, parameters: Readonly<Record<string, string>>): string {
  const changed = new URL(url)
  for (const [name, value] of Object.entries(parameters)) changed.searchParams.set(name, value)
  return changed.href
}

const odd = {
  timezone: 'Asia/Kathmandu',
  datestyle: 'SQL, DMY',
  intervalstyle: 'iso_8601',
  bytea_output: 'escape',
  extra_float_digits: '-15',
  array_nulls: 'off',
  lock_timeout: '1',
  default_transaction_isolation: 'serializable',
}

test('a database with its own zone, DateStyle and isolation → GET, search and the row have the same instants, and the code passes', async () => {
  const [redis, database] = [await testRedis(), await testDatabase()]
  await settings(database, odd)
  const postern = await startPostern({
    on: { redis, database },
    policyFile: { policies: noLimits },
  })
  expect((await fetch(`${postern.adminUrl}/readyz`)).status).toBe(200)
  const beforeMs = Date.now()
  const sent = await postern.post('/v1/captchas', { channel: 'sms', to: '+447400123456' })
  const code = await postern.codeFor(sent.body.id)
  const read = await postern.get(`/v1/notices/${sent.body.id}`)
  const found = await postern.post('/v1/notices/search', { channel: 'sms', to: '+447400123456' })
  expect(found.body.items).toEqual([expect.objectContaining({ createdAt: read.body.createdAt })])
  expect(read.body.expiresAt).toBe(sent.body.expiresAt)
  expect(Date.parse(read.body.createdAt)).toBeGreaterThan(beforeMs - 5_000)
  expect(Date.parse(read.body.createdAt)).toBeLessThan(Date.now() + 5_000)
  const passed = await postern.post('/v1/captchas/check', {
    channel: 'sms',
    to: '+447400123456',
    code,
  })
  expect(passed.status).toBe(200)
})

test('a role whose search_path begins with its own schema → migrate, reads and writes use that one', async () => {
  const { pool, role, asRole } = await emptyDatabase()
  await pool.query(`CREATE SCHEMA app AUTHORIZATION ${role};
    ALTER ROLE ${role} SET search_path = nowhere, app, public;
    CREATE TABLE public.notice (id text)`)
  await migrate(asRole)
  await migrate(asRole)
  expect(await tablesIn(pool)).toEqual(expect.arrayContaining(['app']))
  const database = open(asRole)
  expect(await reasonsPostgresNotReady(database)).toEqual([])
  expect(await database.read((prisma) => prisma.notice.findMany({ take: 1 }))).toEqual([])
  expect(await database.query('any', 'SELECT state FROM notice', [])).toEqual([])
})

test('a role that may create only in the second schema of its search_path → the tables are there, also for a role that may create nowhere', async () => {
  const { pool, role, asRole } = await emptyDatabase()
  await pool.query(`CREATE SCHEMA first; CREATE SCHEMA second; GRANT USAGE ON SCHEMA first TO ${role};
    GRANT USAGE, CREATE ON SCHEMA second TO ${role}; ALTER ROLE ${role} SET search_path = first, second`)
  await migrate(asRole)
  expect(await tablesIn(pool)).toEqual(['second'])
  await pool.query(`REVOKE CREATE ON SCHEMA second FROM ${role}`)
  const database = open(asRole)
  expect(await reasonsPostgresNotReady(database)).toEqual([])
  // Later it may create in the first one. The tables stay where they are.
  await pool.query(`GRANT CREATE ON SCHEMA first TO ${role}`)
  expect(await migrate(asRole)).toEqual([])
})

test('?schema=NAME → the schema is made, has the tables, and is read, beside tables of the same name in public', async () => {
  const { url, pool } = await testDatabase()
  const inShop = withQuery(url, { schema: 'My shop' })
  const early = open(inShop)
  const reason = /^migrations not applied: \d+, the first is \d+_first; run npm run migrate$/
  expect(await reasonsPostgresNotReady(early)).toEqual([expect.stringMatching(reason)])
  await expect(early.read((prisma) => prisma.notice.count())).rejects.toMatchObject({
    part: 'postgresql',
  })
  expect((await migrate(inShop)).length).toBeGreaterThan(5)
  expect((await tablesIn(pool)).toSorted()).toEqual(['My shop', await schemaOf(pool)])
  await pool.query(`INSERT INTO "My shop".retention (task, reached)
    VALUES ('here', '00000000-0000-0000-0000-000000000001')`)
  expect(await reasonsPostgresNotReady(early)).toEqual([])
  for (const database of [early, open(inShop)]) {
    expect(await database.read((prisma) => prisma.retention.findMany())).toHaveLength(1)
    expect(await database.query('tasks', 'SELECT task FROM retention', [])).toHaveLength(1)
    const onOwn = await database.onOwnConnection({ statementTimeoutMs: 1_000 }, (client) =>
      client.query('SELECT task FROM retention'),
    )
    expect(onOwn.rows).toHaveLength(1)
  }
})

test('an address without a host before the path → its ?schema counts too', async () => {
  const { url, pool } = await testDatabase()
  const { username, password, port, pathname } = new URL(url)
  const user = `${username}:${password}`
  const inShop = `postgresql://${user}@${pathname}?host=127.0.0.1&port=${port}&schema=store`
  expect((await migrate(inShop)).length).toBeGreaterThan(5)
  expect((await tablesIn(pool)).toSorted()).toEqual([await schemaOf(pool), 'store'])
  expect(await reasonsPostgresNotReady(open(inShop))).toEqual([])
})

test('time limits in the address → Postern keeps to its own, and the connection is not taken for a pooler', async () => {
  const { url } = await testDatabase()
  const address = withQuery(url, {
    statement_timeout: '30000',
    application_name: 'shop',
    query_timeout: '1',
    idle_in_transaction_session_timeout: '1',
  })
  const database = closeLater(openDatabase(address, { maxConnections: 2, onError: () => {} }))
  await eventually(async () => expect(await reasonsPostgresNotReady(database)).toEqual([]))
  const { rows } = await database.pool.query(
    "SELECT current_setting('statement_timeout') AS statement, current_setting('application_name') AS name",
  )
  expect(rows).toEqual([{ statement: '1200ms', name: 'shop' }])
  expect(await migrate(withQuery(url, { statement_timeout: '5' }))).toEqual([])
})

test.each(['require', 'verify-full', 'prefer'])(
  'sslmode=%s, and a server without TLS → the reason is named',
  async (mode) => {
    const { url } = await testDatabase()
    expect(await reasonsPostgresNotReady(open(withQuery(url, { sslmode: mode })))).toEqual([
      'postgresql does not speak TLS, which DATABASE_URL asks for (sslmode)',
    ])
  },
)

test('a database whose encoding lacks most letters → not ready, with the reason', async () => {
  const { url, pool } = await testDatabase()
  const name = `latin_${process.pid}_${Math.random().toString(36).slice(2)}`
  await pool.query(`CREATE DATABASE ${name} ENCODING LATIN1 LOCALE 'C' TEMPLATE template0`)
  const other = Object.assign(new URL(url), { pathname: `/${name}` }).href
  await migrate(other)
  const database = openDatabase(other, { maxConnections: 1, onError: () => {} })
  expect(await reasonsPostgresNotReady(database)).toEqual([
    'postgresql database has the encoding LATIN1, which lacks most letters; make one with UTF8',
  ])
  await database.close()
  await pool.query(`DROP DATABASE ${name} WITH (FORCE)`)
})

test('a connection that lost its settings, as behind a pooler with the same time limit → not ready, with the reason', async () => {
  const { url } = await testDatabase()
  const database = open(url, 1)
  expect(await reasonsPostgresNotReady(database)).toEqual([])
  await database.query('lose', `SET TimeZone = 'America/New_York'`, [])
  expect(await reasonsPostgresNotReady(database)).toEqual([
    expect.stringContaining('behind a pooler'),
  ])
})

test.each(['40001', '40P01', '55P03'])(
  'SQLSTATE %s, which leaves nothing behind → the statement is repeated; out of reach if it never ends',
  async (sqlState) => {
    const { url, pool } = await testDatabase()
    await pool.query(`CREATE SEQUENCE calls;
      CREATE FUNCTION succeed_at(wanted int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('calls') < wanted THEN RAISE EXCEPTION 'in the way' USING ERRCODE = '${sqlState}'; END IF;
        RETURN wanted;
      END $$`)
    const database = open(url)
    const call = (wanted: number) => [
      () => database.query('call', 'SELECT succeed_at($1)', [wanted]),
      () => database.read((prisma) => prisma.$queryRaw`SELECT succeed_at(${wanted}::int)`),
    ]
    for (const run of call(3)) {
      expect(await run()).toEqual([{ succeed_at: 3 }])
      await pool.query(`SELECT setval('calls', 1, false)`)
    }
    for (const run of call(1_000)) await expect(run()).rejects.toMatchObject({ part: 'postgresql' })
  },
)
