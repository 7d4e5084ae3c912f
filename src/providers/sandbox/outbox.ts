import type { Cluster, Redis } from 'ioredis'
import type { Channel } from '../../base/channel.ts'
import { reachRedis } from '../../base/unavailable.ts'

/**
 * The messages of the sandbox.
 *
 * They contain codes in plain text, so they must not be kept for long: at most 1,000 messages, none older than an hour.
 * Every append enforces both, and the key expires without appends. A stream keeps the order even within one millisecond.
 */
export const maxItems = 1_000
export const maxAgeMs = 3_600_000

export interface OutboxItem {
  readonly id: string
  readonly noticeId: string
  readonly channel: Channel
  readonly to: string
  readonly subject?: string | undefined
  readonly text: string
  readonly html?: string | undefined
  readonly provider: string
  /** ISO 8601, UTC. */
  readonly sentAt: string
}

export type SandboxOutbox = ReturnType<typeof createSandboxOutbox>

/** The outbox never closes `redis`. It uses `clock` only for the age limit. */
export function createSandboxOutbox(
  redis: Redis | Cluster,
  keyPrefix: string,
  clock: () => number = Date.now,
) {
  const key = `${keyPrefix}sandbox:outbox`
  const offKey = `${keyPrefix}sandbox:off`
  const oldestMs = () => Math.max(0, clock() - maxAgeMs)

  /** Newest first. */
  async function readAll(): Promise<OutboxItem[]> {
    const entries = await reachRedis(redis.xrevrange(key, '+', oldestMs()))
    return entries.map(([, fields]) => JSON.parse(fields[1] as string) as OutboxItem)
  }

  return {
    /** Rejects if Redis does not answer. The item may then be stored or not. */
    async append(item: OutboxItem): Promise<void> {
      const replies = await redis
        .multi()
        .xadd(key, 'MAXLEN', maxItems, '*', 'item', JSON.stringify(item))
        .xtrim(key, 'MINID', oldestMs())
        .pexpire(key, maxAgeMs)
        .exec()
      for (const [error] of replies ?? []) if (error) throw error
    },

    async list(filter: { readonly to?: string; readonly limit?: number } = {}) {
      const { to, limit = 50 } = filter
      const items = await readAll()
      return items.filter((item) => to === undefined || item.to === to).slice(0, limit)
    },

    /** The newest item of a notice, of any sandbox provider. */
    async find(noticeId: string): Promise<OutboxItem | undefined> {
      return (await readAll()).find((item) => item.noticeId === noticeId)
    },

    async clear(): Promise<void> {
      await reachRedis(redis.del(key))
    },

    /** Switches this provider off for all processes, if it is `switchable`. */
    async switchOff(provider: string): Promise<void> {
      await reachRedis(redis.sadd(offKey, provider))
    },

    async switchOn(provider: string): Promise<void> {
      await reachRedis(redis.srem(offKey, provider))
    },

    async isOff(provider: string): Promise<boolean> {
      return (await reachRedis(redis.sismember(offKey, provider))) === 1
    },
  }
}
