import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { startPrivatePostgres } from '../../src/dev/private-postgres.ts'
import { startPrivateRedis } from '../../src/dev/private-redis.ts'
import type { PrivateServer } from '../../src/dev/private-server.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

/** Mode 0700 and owned by the user of the tests, like a folder under /root or of `mktemp -d`. */
function closedFolder(): string {
  const folder = mkdtempSync(join(inject('runFolder'), 'closed-'))
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  return join(folder, 'data')
}

async function start(
  startServer: typeof startPrivateRedis,
  dataDir: string,
): Promise<PrivateServer> {
  const server = await startServer({ dataDir })
  releaseLater(() => server.kill())
  return server
}

async function query(server: { url: string }, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

async function redisCommand(server: { url: string }, command: string, ...args: string[]) {
  const client = new Redis(server.url, { lazyConnect: true })
  client.on('error', () => {})
  try {
    return await client.call(command, ...args)
  } finally {
    client.disconnect()
  }
}

test('PostgreSQL below a folder only its owner may enter starts, keeps its data over a restart and leaves no process', async () => {
  const dataDir = closedFolder()
  const first = await start(startPrivatePostgres, dataDir)
  await query(first, 'CREATE TABLE kept AS SELECT 7 AS n')
  await first.stop()
  expect(isRunning(first.pid)).toBe(false)

  const second = await start(startPrivatePostgres, dataDir)
  expect(await query(second, 'SELECT n FROM kept')).toEqual([{ n: 7 }])
  expect(await query(second, 'SHOW server_encoding')).toEqual([{ server_encoding: 'UTF8' }])
})

test('PostgreSQL killed with a connection open starts again at once with what was committed', async () => {
  const dataDir = closedFolder()
  const first = await start(startPrivatePostgres, dataDir)
  const client = new pg.Client({ connectionString: first.url })
  client.on('error', () => {})
  await client.connect()
  releaseLater(() => client.end().catch(() => {}))
  await client.query('CREATE TABLE kept AS SELECT 7 AS n')
  await first.kill()
  const second = await start(startPrivatePostgres, dataDir)
  expect(await query(second, 'SELECT n FROM kept')).toEqual([{ n: 7 }])
})

test('PostgreSQL and Redis let no client in without the password', async () => {
  const postgres = await start(startPrivatePostgres, closedFolder())
  const redis = await start(startPrivateRedis, closedFolder())
  const withoutPassword = (url: string) => ({ url: url.replace(/:\w+@/, ':wrong@') })
  await expect(query(withoutPassword(postgres.url), 'SELECT 1')).rejects.toThrow(/password/)
  await expect(redisCommand({ url: redis.url.replace(/:\w+@/, '') }, 'GET', 'a')).rejects.toThrow(
    /NOAUTH/,
  )
})

test('Redis evicts nothing, appends to a file, and keeps its data over stop and kill', async () => {
  const dataDir = closedFolder()
  const first = await start(startPrivateRedis, dataDir)
  const settings = await redisCommand(first, 'CONFIG', 'GET', 'a*', 'maxmemory-policy')
  expect(settings).toContain('noeviction')
  expect(settings).toContain('everysec')
  await redisCommand(first, 'SET', 'stopped', 'kept')
  await first.stop()
  expect(isRunning(first.pid)).toBe(false)

  const second = await start(startPrivateRedis, dataDir)
  await redisCommand(second, 'SET', 'killed', 'kept')
  await second.kill()
  const third = await start(startPrivateRedis, dataDir)
  expect(await redisCommand(third, 'MGET', 'stopped', 'killed')).toEqual(['kept', 'kept'])
})

test('a second start while the first starter lives is refused and leaves the server alone', async () => {
  const dataDir = closedFolder()
  const first = await start(startPrivateRedis, dataDir)
  await expect(startPrivateRedis({ dataDir })).rejects.toThrow(/in use/)
  expect(await redisCommand(first, 'PING')).toBe('PONG')
})

/** Another process that starts both servers and does not stop them. */
async function startInOtherProcess(dataDir: string) {
  const starter = spawn(process.execPath, ['--input-type=module', '--eval', starterCode, dataDir], {
    cwd: fileURLToPath(new URL('../../', import.meta.url)),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  releaseLater(() => starter.kill('SIGKILL'))
  const [line] = await once(starter.stdout, 'data')
  const { redis, postgres } = JSON.parse(String(line)) as Record<string, PrivateServer>
  return { starter, redis: redis as PrivateServer, postgres: postgres as PrivateServer }
}

test('servers whose starter was killed are replaced by the next start, which finds their data', async () => {
  const dataDir = closedFolder()
  const old = await startInOtherProcess(dataDir)
  await query(old.postgres, 'CREATE TABLE kept AS SELECT 7 AS n')
  await redisCommand(old.redis, 'SET', 'key', 'kept')
  old.starter.kill('SIGKILL')
  await once(old.starter, 'exit')
  expect(isRunning(old.redis.pid) && isRunning(old.postgres.pid)).toBe(true)

  const [redis, postgres] = await Promise.all([
    start(startPrivateRedis, join(dataDir, 'redis')),
    start(startPrivatePostgres, join(dataDir, 'postgres')),
  ])
  expect(isRunning(old.redis.pid) || isRunning(old.postgres.pid)).toBe(false)
  expect(await redisCommand(redis, 'GET', 'key')).toBe('kept')
  expect(await query(postgres, 'SELECT n FROM kept')).toEqual([{ n: 7 }])
})

test('servers whose starter exits without stopping them end by themselves', async () => {
  const old = await startInOtherProcess(closedFolder())
  old.starter.kill('SIGTERM')
  await once(old.starter, 'exit')
  await eventually(() => !isRunning(old.redis.pid) && !isRunning(old.postgres.pid))
})

const starterCode = `
  import { startPrivatePostgres } from './src/dev/private-postgres.ts'
  import { startPrivateRedis } from './src/dev/private-redis.ts'
  process.on('SIGTERM', () => process.exit(1))
  const dataDir = process.argv[1]
  const redis = await startPrivateRedis({ dataDir: dataDir + '/redis' })
  const postgres = await startPrivatePostgres({ dataDir: dataDir + '/postgres' })
  console.log(JSON.stringify({ redis, postgres }))
  setInterval(() => {}, 1_000)
`

/** A zombie counts as ended: it runs nothing and keeps nothing. */
function isRunning(pid: number): boolean {
  if (existsSync('/proc/self/stat')) {
    return (
      existsSync(`/proc/${pid}/stat`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
    )
  }
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
