/** The connections of a process: one pool to PostgreSQL, one client of Redis for each kind of work. */

import type { Closers } from '../base/closers.ts'
import type { Log } from '../base/log.ts'
import { openDatabase } from '../storage/database.ts'
import { closeRedis, connectRedis, firstTry } from '../storage/redis.ts'
import type { Config } from './load-config.ts'

export type Servers = ReturnType<typeof connectServers>

export function connectServers(
  { environment }: Config,
  keyPrefix: string,
  closers: Closers,
  log: Log,
) {
  const clients: ReturnType<typeof connectRedis>[] = []
  const openRedis = (role: Parameters<typeof connectRedis>[1]) => {
    const client = connectRedis(environment.REDIS_URL, role, (error) =>
      log.connectionFailed('redis', error),
    )
    closers.onClose(() => closeRedis(client))
    clients.push(client)
    return client
  }
  const database = openDatabase(environment.DATABASE_URL, {
    maxConnections: 10,
    onError: (error) => log.connectionFailed('postgresql', error),
  })
  closers.onClose(() => database.close())
  return {
    database,
    redis: openRedis('command'),
    openRedis,
    keyPrefix,
    /** Resolves when each client so far is connected, or its first try has ended. */
    async firstTries(): Promise<void> {
      await Promise.all(clients.map(firstTry))
    },
  }
}
