import type { RedisClient } from './script.ts'

/**
 * Why Redis can't be relied on now; empty when it can. An eviction policy other than `noeviction`
 * silently drops queued jobs and counts when memory is short (measured: 8,090 of 20,000 jobs), so it
 * is a reason not to start.
 */
export async function reasonsRedisNotReady(client: RedisClient): Promise<string[]> {
  let memory: string
  try {
    memory = await client.info('memory')
  } catch {
    return ['redis is out of reach']
  }
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1]
  return policy === 'noeviction'
    ? []
    : [
        `redis has maxmemory-policy ${policy ?? 'unknown'}; set it to noeviction, or messages are lost`,
      ]
}
