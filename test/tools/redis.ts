import { randomBytes, randomInt } from 'node:crypto'
import { Redis } from 'ioredis'
import { inject } from 'vitest'
import type { RedisClient } from '../../src/base/redis-script.ts'
import { type ConnectionRole, connectRedis } from '../../src/storage/redis.ts'
import { closeLater, releaseLater } from './release.ts'

export interface TestRedis {
  /** With the number of a database that only this file uses, so processes and queues may use it too. */
  readonly url: string
  /** A prefix for keys of this file. It is unique also if several files share a database. */
  readonly prefix: string
  /** A plain client that reads what the tested code has written. */
  readonly client: Redis
  /** A connection as the product opens it. It is ready, and closed after the file. */
  connect(role?: ConnectionRole): Promise<RedisClient>
}

/**
 * An empty numbered database for this file, which is emptied and returned at its end. Only an empty one is taken, so
 * a Redis given by REDIS_URL keeps its other data.
 */
export async function testRedis(): Promise<TestRedis> {
  const baseUrl = new URL(inject('redisUrl'))
  const registry = closeLater(new Redis(baseUrl.href), 'disconnect')
  const [, count] = (await registry.config('GET', 'databases')) as string[]
  const number = await claimDatabase(registry, Number(count))
  baseUrl.pathname = `/${number}`

  const client = new Redis(baseUrl.href)
  releaseLater(async () => {
    await client.flushdb()
    await registry.del(claimKey(number))
    client.disconnect()
  })
  return {
    url: baseUrl.href,
    prefix: `test-${randomBytes(6).toString('hex')}:`,
    client,
    async connect(role = 'command') {
      const connection = closeLater(
        connectRedis(baseUrl.href, role, () => {}),
        'disconnect',
      )
      await untilConnected(connection)
      return connection
    },
  }
}

const claimKey = (number: number) => `postern-test:database:${number}`
const claimSeconds = 1_800

async function claimDatabase(registry: Redis, count: number): Promise<number> {
  const first = randomInt(count)
  for (let step = 0; step < count; step += 1) {
    const number = (first + step) % count
    if (number === 0) continue
    const isOurs = await registry.set(claimKey(number), process.pid, 'EX', claimSeconds, 'NX')
    if (!isOurs) continue
    const probe = registry.duplicate({ db: number })
    const size = await probe.dbsize()
    probe.disconnect()
    if (size === 0) return number
    await registry.del(claimKey(number))
  }
  throw new Error('no empty database is left in the Redis of REDIS_URL')
}

/** `command` connections rightly refuse work until they are connected. */
async function untilConnected(connection: RedisClient): Promise<void> {
  if (connection.status === 'ready') return
  await new Promise<void>((done) => connection.once('ready', done))
}
