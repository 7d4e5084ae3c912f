import { createEngine, type EngineOptions, wholeClock } from './engine.ts'
import { InvalidOption } from './errors.ts'
import type { AcquireOptions, Decision, Limiter } from './limiter.ts'
import { createMemoryStore } from './memory/store.ts'
import type { Fields } from './policy/rule.ts'
import { createRedisLimiter, type RedisLimiterOptions } from './redis/redis-limiter.ts'

export interface MemoryLimiterOptions extends EngineOptions {
  readonly redis?: undefined
  /** Per rule, above the number of those active within its longest window: the others are forgotten. Default 100,000. */
  readonly maxSubjects?: number | undefined
  /** Milliseconds; default `Date.now`. */
  readonly clock?: (() => number) | undefined
}

export interface MemoryLimiter extends Limiter {
  /** `acquire` without a promise. */
  tryAcquire(policy: string, fields: Fields, options?: AcquireOptions): Decision
}

/** With `redis` the limits hold over all processes that share it; without, in this process. */
export function createLimiter(options: RedisLimiterOptions): Limiter
export function createLimiter(options: MemoryLimiterOptions): MemoryLimiter
export function createLimiter(options: RedisLimiterOptions | MemoryLimiterOptions): Limiter {
  return options.redis === undefined ? createMemoryLimiter(options) : createRedisLimiter(options)
}

/** The limiter in process: the same decisions as over Redis, by an injected clock. */
function createMemoryLimiter(options: MemoryLimiterOptions): MemoryLimiter {
  const { maxSubjects = 100_000, rememberRequestsMs = 300_000, clock = Date.now } = options
  if (!(maxSubjects >= 1)) throw new InvalidOption('maxSubjects', 'must be at least 1')
  const store = createMemoryStore(maxSubjects, rememberRequestsMs, wholeClock(clock))
  const { limiter, checkOf, decide } = createEngine(options, store)
  return {
    ...limiter,
    tryAcquire(policy, fields, asked) {
      const check = checkOf(policy, fields, asked)
      return decide(check, store.acquire(check), asked)
    },
  }
}
