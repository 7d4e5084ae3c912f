/** The doctor's findings about Redis and PostgreSQL, with real servers. */
import pg from 'pg'
import { expect, test } from 'vitest'
import type { Finding } from '../../src/base/finding.ts'
import { examinePostgres, lookForOldTransaction } from '../../src/storage/examine-postgres.ts'
import { examineRedis } from '../../src/storage/examine-redis.ts'
import { migrate } from '../../src/storage/migrate.ts'
import { ownPostgres, ownRedis } from '../tools/own-servers.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const told = (findings: Finding[]) => findings.map(({ state, message }) => `${state}: ${message}`)

test('a Redis as it should be: every finding ok', async () => {
  const { url } = await ownRedis(['--appendonly', 'yes', '--maxmemory', '100mb'])
  const found = told(await examineRedis(url, 'postern:'))
  expect(found).toEqual([
    'ok: writable master, evicts nothing',
    expect.stringMatching(/^ok: version \d+\./),
    expect.stringMatching(/^ok: \d+ of 100 MB used/),
    'ok: this machine and redis agree',
  ])
})

test('a Redis that evicts, keeps nothing and has no bound', async () => {
  const { url } = await ownRedis(['--appendonly', 'no', '--maxmemory-policy', 'allkeys-lru'])
  const found = told(await examineRedis(url, 'postern:'))
  expect(found).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^error: redis has maxmemory-policy allkeys-lru/),
      expect.stringMatching(/^warning: redis has appendonly no and no replica/),
      expect.stringMatching(/^warning: no maxmemory/),
    ]),
  )
  expect(found).not.toContain('ok: writable master, evicts nothing')
})

test('a Redis that is nearly full, and one that is a replica', async () => {
  const full = await ownRedis(['--appendonly', 'yes', '--maxmemory', '1mb'])
  const found = told(await examineRedis(full.url, 'postern:'))
  expect(found).toContainEqual(expect.stringMatching(/^warning: \d+ of 1 MB used/))
  const replica = await ownRedis(['--replicaof', '127.0.0.1', '1'])
  const [first] = told(await examineRedis(replica.url, 'postern:'))
  expect(first).toMatch(/^error: redis is a replica/)
})

test('a Redis that is away, or frozen: one error, soon', async () => {
  const server = await ownRedis()
  server.freeze()
  const startedAt = performance.now()
  expect(told(await examineRedis(server.url, 'postern:'))).toEqual(['error: redis is out of reach'])
  server.thaw()
  await server.stop()
  expect(told(await examineRedis(server.url, 'postern:'))).toEqual(['error: redis is out of reach'])
  expect(performance.now() - startedAt).toBeLessThan(9_000)
})

test('a PostgreSQL: not migrated; healthy, with further checks; with settings that may lose data; away', async () => {
  const server = await ownPostgres()
  expect(told(await examinePostgres(server.url))).toEqual([
    expect.stringMatching(/^error: migrations not applied: \d+, the first is \d+_first; run npm/),
  ])
  await migrate(server.url)
  const more: Finding = { subject: 'keys', state: 'ok', message: 'asked' }
  const well = [
    'ok: writable, schema and rights are correct',
    expect.stringMatching(/^ok: version \d\d$/),
    'ok: no old transaction keeps dead rows',
    'ok: this machine and postgresql agree',
    'ok: asked',
  ]
  expect(told(await examinePostgres(server.url, async () => [more]))).toEqual(well)
  await server.stop()
  expect(told(await examinePostgres(server.url))).toEqual(['error: postgresql is out of reach'])
  await server.start(['-c', 'fsync=off', '-c', 'synchronous_commit=off'])
  expect(told(await examinePostgres(server.url))).toEqual([
    ...well.slice(0, 2),
    expect.stringMatching(/^error: fsync is off/),
    expect.stringMatching(/^warning: synchronous_commit is off/),
    ...well.slice(2, 4),
  ])
})

test('a transaction that has been open for long → a warning names its session; not for a new one, or after its end', async () => {
  const server = await ownPostgres()
  const [pool, old] = [
    new pg.Pool({ connectionString: server.url }),
    new pg.Client({ connectionString: server.url }),
  ]
  releaseLater(() => Promise.all([pool.end(), old.end()]))
  await old.connect()
  const atOnce = { seconds: 0, transactions: 1_000_000 }
  // The server itself opens transactions for a moment.
  const isQuiet = async () => (await lookForOldTransaction(pool, atOnce)).state === 'ok'
  await eventually(isQuiet)
  await old.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  const { rows } = await old.query('SELECT pg_backend_pid() AS pid')
  await eventually(async () => {
    const { state, message } = await lookForOldTransaction(pool, atOnce)
    expect(state).toBe('warning')
    expect(message).toContain(`the session with pid ${rows[0].pid} of user `)
    expect(message).toContain(' keeps dead rows since 0 minutes ago')
  })
  expect((await lookForOldTransaction(pool)).state).toBe('ok')
  await old.query('COMMIT')
  await eventually(isQuiet)
})
