/**
 * The public face of the limiter; the package `postern-limiter` exports the same.
 *
 * Its words: a **policy** is a named list of **rules** that are asked together, all or nothing. A rule counts the
 * **uses** of one **subject** (the values of the fields in its key) in one or more **windows**. A call takes
 * **permits**, one use each. A full window makes a **hold**: how long the rule refuses. A **lock** is the hold that a
 * lockout begins by itself, and that outlasts its uses. Inside, a rule whose windows can't share one value has
 * several **parts**.
 */
export { createLimiter, type MemoryLimiter, type MemoryLimiterOptions } from './create-limiter.ts'
export * from './errors.ts'
export { rateLimitHeaders, rateLimitProblem } from './express/headers.ts'
export { limiterKeyOfIp, type RateLimitOptions, rateLimit } from './express/rate-limit.ts'
export * from './limiter.ts'
export { parsePolicies } from './policy/parse.ts'
export type * from './policy/rule.ts'
export type { Kind, Lock, Rate, Window } from './policy/terms.ts'
export type { LimiterRedis } from './redis/client.ts'
export type { SubjectKey } from './redis/keys.ts'
export type { RedisLimiterOptions } from './redis/redis-limiter.ts'
export { withRateLimit } from './with-rate-limit.ts'
