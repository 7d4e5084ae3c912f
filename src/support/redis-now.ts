import type { RedisClient } from '../base/redis-script.ts'

/** Redis' clock, in milliseconds since 1970. */
export async function redisNowMs(redis: RedisClient): Promise<number> {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1_000 + Number(micros) / 1_000
}
