import { expect, test } from 'vitest'
import { createClosers } from '../../src/base/closers.ts'
import { createNoticeStore } from '../../src/notice/store.ts'
import { keptConnections } from '../../src/storage/database.ts'
import { connectServers } from '../../src/storage/servers.ts'
import { testDatabase } from '../tools/database.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater } from '../tools/release.ts'

async function open(databaseUrl: string) {
  const closers = closeLater(createClosers(5_000))
  const urls = { DATABASE_URL: databaseUrl, REDIS_URL: (await testRedis()).url }
  const log = { connectionFailed: () => {} }
  const servers = connectServers(urls, 'servers:', closers, log, { plansOnce: true })
  const { firstStatements } = createNoticeStore(servers.database, { claimTtlMs: 10_000 })
  return { ...servers, statements: [...firstStatements.send, ...firstStatements.delivery] }
}

test('warmUp: each connection that the pool keeps has planned the statements of a first message, and no row has changed', async () => {
  const { database, warmUp, statements } = await open((await testDatabase()).url)
  await warmUp(statements)
  const { pool } = database
  expect(pool.idleCount).toBe(keptConnections)
  const clients = await Promise.all(Array.from({ length: keptConnections }, () => pool.connect()))
  for (const client of clients) {
    const { rows } = await client.query('SELECT name FROM pg_prepared_statements ORDER BY name')
    expect(rows.map(({ name }) => name)).toEqual([
      ...['notice-claim', 'notice-create', 'notice-open', 'notice-record'],
    ])
    client.release()
  }
  expect((await pool.query('SELECT FROM notice')).rowCount).toBe(0)
})

test('warmUp: PostgreSQL is away → it ends with the first statement and does not throw', async () => {
  const { warmUp } = await open('postgresql://someone@127.0.0.1:1/nothing')
  let calls = 0
  const warm = async () => {
    calls += 1
    throw new Error('away')
  }
  await warmUp([{ warmUp: warm }, { warmUp: warm }])
  expect(calls).toBe(keptConnections)
})
