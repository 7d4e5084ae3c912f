/** `postern/limiter`: what other rooms and other projects may use. */
export { createLimiter } from './create-limiter.ts'
export { limit } from './express.ts'
export { limited } from './limited.ts'
export * from './limiter.ts'
export type { LocalLimiter, LocalLimiterOptions } from './local-limiter.ts'
export { type Fields, MissingField } from './plan.ts'
export {
  checkPolicies,
  type Kind,
  type ParsedPolicies,
  type Policies,
  type PolicyProblem,
  parsePolicies,
  policiesSchema,
  type Quota,
  type RawPolicies,
  type Rule,
} from './policies.ts'
export { rateLimitHeaders } from './rate-limit-headers.ts'
export type { RedisLimiter, RedisLimiterOptions } from './redis-limiter.ts'
