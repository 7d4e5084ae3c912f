import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, test } from 'vitest'
import { openDatabase } from '../../src/storage/database.ts'
import { reasonsPostgresNotReady } from '../../src/storage/database-ready.ts'
import { databaseAt, moveDatabaseClock, testDatabase } from '../tools/database.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

/** A PostgreSQL that refuses every connection with this SQLSTATE. */
async function startRefusing(sqlState: string): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      const fields = ['SFATAL', 'VFATAL', `C${sqlState}`, 'Mthe words of the server', '']
      const body = fields.map((field) => `${field}\0`).join('')
      const head = Buffer.alloc(5, 'E')
      head.writeInt32BE(4 + body.length, 1)
      socket.end(Buffer.concat([head, Buffer.from(body)]))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  releaseLater(() => server.close())
  return `postgresql://someone:secret@127.0.0.1:${(server.address() as AddressInfo).port}/postern`
}

test.each([
  ['57P03', 'is starting up'],
  ['57P01', 'is shutting down'],
  ['53300', 'has no connection left'],
  ['3D000', 'has no such database'],
  ['28P01', 'refuses the password'],
  ['55000', 'takes no connections to this database'],
])(
  'a server that answers %s (%s) is out of reach, for statements and for typed reads',
  async (sqlState) => {
    const database = openDatabase(await startRefusing(sqlState), {
      maxConnections: 2,
      onError: () => {},
    })
    releaseLater(() => database.close())
    const unavailable = { part: 'postgresql' }
    await expect(database.query('any', 'SELECT 1', [])).rejects.toMatchObject(unavailable)
    await expect(database.read((prisma) => prisma.apiKey.findFirst())).rejects.toMatchObject(
      unavailable,
    )
  },
)

async function expectOutOfReach(url: string): Promise<void> {
  const database = databaseAt(url, 2)
  const calls = [
    database.query('any', 'SELECT 1', []),
    database.read((prisma) => prisma.apiKey.findFirst()),
  ]
  for (const call of calls) await expect(call).rejects.toMatchObject({ part: 'postgresql' })
}

test('an address without a server is out of reach, for statements and for typed reads', () =>
  expectOutOfReach('postgresql://someone:secret@127.0.0.1:1/postern'))

test('a server that closes connections without a word is out of reach, for statements and for typed reads', async () => {
  const server = createServer((socket) => socket.once('data', () => socket.end()))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  releaseLater(() => server.close())
  const { port } = server.address() as AddressInfo
  await expectOutOfReach(`postgresql://127.0.0.1:${port}/postern`)
})

test("its time is PostgreSQL's from the first connection on, not from the process's clock (I24)", async () => {
  const testing = await testDatabase()
  await moveDatabaseClock(testing, `'2031-05-06 07:08:09Z'`)
  const database = databaseAt(testing.url, 1)
  await database.query('any', 'SELECT 1', [])
  const saidMs = database.nowMs()
  expect(saidMs - Date.UTC(2031, 4, 6, 7, 8, 9)).toBeGreaterThanOrEqual(0)
  expect(saidMs - Date.UTC(2031, 4, 6, 7, 8, 9)).toBeLessThan(60_000)
  expect(Number.isInteger(saidMs)).toBe(true)
  await eventually(() => database.nowMs() > saidMs)
})

test('a separate connection that is stopped while it connects ends', async () => {
  const { url } = await testDatabase()
  const database = databaseAt(url, 1)
  const stopping = new AbortController()
  const options = { statementTimeoutMs: 1_000, signal: stopping.signal }
  const working = database.onOwnConnection(options, async () => 'has worked')
  stopping.abort()
  await expect(working).rejects.toThrow('aborted')
})

test('look-ups by recipient are planned once per connection, and only the first few texts of them', async () => {
  const { url } = await testDatabase()
  const database = databaseAt(url, 1)
  const find = (where: Readonly<Record<string, unknown>>) =>
    database.read((prisma) => prisma.notice.findMany({ where, take: 1 }))
  const named = async () => {
    const sql = `SELECT count(*)::int AS count FROM pg_prepared_statements WHERE name LIKE 'recipient-%'`
    return (await database.query<{ count: number }>('named', sql, []))[0]?.count
  }
  const recipientHash = { in: [new Uint8Array(15)] }
  await find({ app: 'shop' })
  expect(await named()).toBe(0)
  await find({ app: 'shop', recipientHash })
  await find({ app: 'bank', recipientHash })
  expect(await named()).toBe(1)
  for (let scenes = 1; scenes < 20; scenes++) {
    await find({ recipientHash, scene: { in: Array.from({ length: scenes }, String) } })
  }
  expect(await named()).toBe(8)
})

test('the proof that PostgreSQL can write → a file that needs new room on the disk, and no row', async () => {
  const { url, pool } = await testDatabase()
  const database = openDatabase(url, { maxConnections: 1, onError: () => {} })
  const written = async () => {
    const sql = `SELECT temp_bytes::int AS bytes FROM pg_stat_database WHERE datname = current_database()`
    return (await pool.query<{ bytes: number }>(sql)).rows[0]?.bytes ?? 0
  }
  const before = await written()
  expect(await reasonsPostgresNotReady(database)).toEqual([])
  // PostgreSQL counts at the end of a connection.
  await database.close()
  await eventually(async () => expect(await written()).toBeGreaterThan(before + 200_000))
  expect((await pool.query('SELECT FROM notice')).rowCount).toBe(0)
})
