import {
  createLimiter,
  type Limiter,
  type RawPolicies,
  type RedisLimiterOptions,
} from '../../src/limiter/index.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'
import { virtualTime } from './virtual-time.ts'

/**
 * Both engines over one clock that the test sets. `keepsExpired`: keys in Redis never expire. An expired key does not come
 * back when the clock steps back, but the engine in process keeps everything.
 */
export async function bothEngines(
  policies: RawPolicies,
  startAt = Date.UTC(2026, 10, 21, 10),
  { keepsExpired = false } = {},
) {
  const { client, prefix } = await testRedis()
  const time = virtualTime(keepsExpired ? [] : [client], startAt)
  const { clock } = time
  let nowMs = startAt
  const engines: Record<string, Limiter> = {
    'over Redis': createLimiter({
      policies,
      redis: client,
      keyPrefix: prefix,
      rememberRefusalsMs: 0,
      deadlineMs: 5_000,
      clock,
    }),
    'in process': createLimiter({ policies, clock }),
  }
  releaseLater(() => {
    for (const limiter of Object.values(engines)) limiter.close()
  })
  return {
    engines,
    client,
    prefix,
    now: () => nowMs,
    async at(newNowMs: number) {
      nowMs = newNowMs
      await time.set(nowMs)
    },
    async wait(ms: number) {
      nowMs += ms
      await time.set(nowMs)
    },
    /** Asks both engines the same question. Fails if their answers differ. */
    async ask<T>(question: (limiter: Limiter) => Promise<T>): Promise<T> {
      const answers = await Promise.all(Object.values(engines).map(question))
      const [first, second] = answers.map((answer) => JSON.stringify(answer))
      if (first !== second) throw new Error(`over Redis ${first}\nin process ${second}`)
      return answers[0] as T
    },
  }
}

/** A limiter over a real Redis with its real clock, and a client that reads what it writes. */
export async function realLimiter(
  policies: RawPolicies,
  options: Partial<RedisLimiterOptions> = {},
) {
  const server = await testRedis()
  const redis = await server.connect('limiter')
  const limiter = createLimiter({
    policies,
    redis,
    keyPrefix: server.prefix,
    deadlineMs: 2_000,
    ...options,
  })
  releaseLater(() => limiter.close())
  return { limiter, client: server.client, prefix: server.prefix, url: server.url, redis }
}
