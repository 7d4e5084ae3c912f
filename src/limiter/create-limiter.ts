import { createLocalLimiter, type LocalLimiter, type LocalLimiterOptions } from './local-limiter.ts'
import { createRedisLimiter, type RedisLimiter, type RedisLimiterOptions } from './redis-limiter.ts'

/** With `redis` the limits hold over all processes that share it; without, in this process. */
export function createLimiter(options: RedisLimiterOptions): RedisLimiter
export function createLimiter(options: LocalLimiterOptions & { redis?: undefined }): LocalLimiter
export function createLimiter(
  options: RedisLimiterOptions | (LocalLimiterOptions & { redis?: undefined }),
): RedisLimiter | LocalLimiter {
  return options.redis ? createRedisLimiter(options) : createLocalLimiter(options)
}
