import { randomUUID } from 'node:crypto'
import { createEngine, type EngineOptions } from './engine.ts'
import { InvalidOption } from './errors.ts'
import type { AcquireOptions, Decision, Limiter } from './limiter.ts'
import { createMemoryStore } from './memory/store.ts'
import type { Fields } from './policy/rule.ts'
import { createRedisStore, type RedisStoreOptions } from './redis/store.ts'
import { usualMemoryMs } from './store.ts'

export interface RedisLimiterOptions extends EngineOptions, RedisStoreOptions {
  /** The name of this process in rules with `scope: per-client`. Default: random. */
  readonly clientId?: string | undefined
  /** A limiter that answers while Redis does not, instead of `LimiterUnavailable`. Its counts are separate. */
  readonly whenUnavailable?: Limiter | undefined
}

export interface MemoryLimiterOptions extends EngineOptions {
  readonly redis?: undefined
  /**
   * Largest number of subjects per rule, default 100,000. Above it, subjects without a recent call are forgotten. So it
   * must exceed the number of subjects within the longest window.
   */
  readonly maxSubjects?: number | undefined
  /** The current time in milliseconds; default `Date.now`. */
  readonly clock?: (() => number) | undefined
}

export interface MemoryLimiter extends Limiter {
  /** `acquire` without a promise. */
  tryAcquire(policy: string, fields: Fields, options?: AcquireOptions): Decision
}

/** With `redis`, all processes with that Redis share the counts. Without it, the counts are in this process. */
export function createLimiter(options: RedisLimiterOptions): Limiter
export function createLimiter(options: MemoryLimiterOptions): MemoryLimiter
export function createLimiter(options: RedisLimiterOptions | MemoryLimiterOptions): Limiter {
  return options.redis === undefined ? createMemoryLimiter(options) : createRedisLimiter(options)
}

/** The limiter over Redis. It decides by the clock of Redis, for any number of processes. */
function createRedisLimiter(options: RedisLimiterOptions): Limiter {
  const { policies, whenUnavailable, clientId = randomUUID(), clock } = options
  const store = createRedisStore({ ...options, clock: clock && wholeClock(clock) })
  for (const name of whenUnavailable ? Object.keys(policies) : []) {
    if (hasPolicy(whenUnavailable, name)) continue
    throw new InvalidOption('whenUnavailable', `must be a limiter with the policy ${name}`)
  }
  return createEngine(options, store, clientId).limiter
}

/** The limiter in process. It decides as the limiter over Redis does, by the clock of its options. */
function createMemoryLimiter(options: MemoryLimiterOptions): MemoryLimiter {
  const { maxSubjects = 100_000, rememberRequestsMs = usualMemoryMs, clock = Date.now } = options
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

function hasPolicy(limiter: Limiter | undefined, name: string): boolean {
  try {
    return limiter?.windows(name) !== undefined
  } catch {
    return false
  }
}

/** The clock of the options, checked to return whole milliseconds. */
function wholeClock(clock: () => number): () => number {
  return () => {
    const ms = Math.floor(clock())
    if (ms >= 0 && Number.isSafeInteger(ms)) return ms
    throw new InvalidOption('clock', `must give milliseconds, not ${ms}`)
  }
}
