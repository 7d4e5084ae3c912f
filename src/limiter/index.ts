/**
 * The public interface of the limiter. The package `postern-limiter` exports the same.
 *
 * Its terms: a **policy** is a named list of **rules** that are decided together: all of them count, or none. A rule
 * counts the **uses** of one **subject** (the values of the fields in its key) in one or more **windows**. A call takes
 * **permits**; each is one use. A full window makes a **hold**, the time for which the rule refuses. A **lock** is a
 * hold that a lockout begins itself, and that lasts longer than the uses. Inside the limiter, a rule has several
 * **parts** if its windows cannot share one stored value.
 */
export {
  createLimiter,
  type MemoryLimiter,
  type MemoryLimiterOptions,
  type RedisLimiterOptions,
} from './create-limiter.ts'
export * from './errors.ts'
export { rateLimitHeaders, rateLimitProblem } from './express/headers.ts'
export { limiterKeyOfIp, type RateLimitOptions, rateLimit } from './express/rate-limit.ts'
export * from './limiter.ts'
export { parsePolicies } from './policy/parse.ts'
export type * from './policy/rule.ts'
export type { Kind, Lock, Rate, Window } from './policy/terms.ts'
export type { LimiterRedis } from './redis/client.ts'
export type { SubjectKey } from './redis/keys.ts'
export { withRateLimit } from './with-rate-limit.ts'
