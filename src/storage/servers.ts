/** The connections of a process: one pool to PostgreSQL, one client of Redis for each kind of work. */
import type { Closers } from '../base/closers.ts'
import type { Log } from '../base/log.ts'
import { keptConnections, openDatabase } from './database.ts'
import { reasonsPostgresNotReady } from './database-ready.ts'
import { type ConnectionRole, connectRedis, createParty, firstTry } from './redis.ts'
import { lookAtRedis } from './redis-ready.ts'

export type Servers = ReturnType<typeof connectServers>

export function connectServers(
  urls: { DATABASE_URL: string; REDIS_URL: string },
  keyPrefix: string,
  closers: Closers,
  log: Pick<Log, 'connectionFailed'>,
  { plansOnce }: { plansOnce: boolean },
) {
  const clients: ReturnType<typeof connectRedis>[] = []
  const party = createParty()
  const openRedis = (role: ConnectionRole) => {
    let isClosed = false
    const onError = (error: Error) => {
      // ioredis reports the end of a connection that is still being made as an error.
      if (!isClosed) log.connectionFailed('redis', error)
    }
    const client = connectRedis(urls.REDIS_URL, role, onError, party)
    closers.onClose(() => {
      isClosed = true
      client.disconnect()
    })
    clients.push(client)
    return client
  }
  const database = openDatabase(urls.DATABASE_URL, {
    maxConnections: 10,
    plansOnce,
    onError: (error) => log.connectionFailed('postgresql', error),
  })
  closers.onClose(() => database.close())
  const redis = openRedis('command')
  return {
    database,
    redis,
    openRedis,
    keyPrefix,

    /** Resolves when each client so far is connected, or its first try has ended. */
    async firstTries(): Promise<void> {
      await Promise.all(clients.map(firstTry))
    },

    /**
     * Runs statements of the first message on each connection that the pool keeps. Otherwise that message pays for
     * connecting and planning. Ends at the first failure, and never throws.
     */
    async warmUp(statements: readonly { warmUp(): Promise<unknown> }[]): Promise<void> {
      for (const { warmUp } of statements) {
        const ends = await Promise.allSettled(Array.from({ length: keptConnections }, warmUp))
        if (ends.some(({ status }) => status === 'rejected')) return
      }
    },

    /**
     * Why no send can succeed now, and facts that an operator should know although sends succeed. A check of a code
     * needs Redis alone. Never throws.
     */
    async look(): Promise<{ reasons: string[]; warnings: string[]; canCheck: boolean }> {
      const [{ reasons, warnings }, ofPostgres] = await Promise.all([
        lookAtRedis(redis, keyPrefix),
        reasonsPostgresNotReady(database),
      ])
      return { reasons: [...reasons, ...ofPostgres], warnings, canCheck: reasons.length === 0 }
    },
  }
}
