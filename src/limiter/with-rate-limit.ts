import { RateLimitedError } from './errors.ts'
import type { Limiter } from './limiter.ts'
import type { Fields } from './policy/rule.ts'

/** Wraps a function. It runs if the policy admits the call; otherwise the wrapper throws `RateLimitedError`. */
export function withRateLimit<Args extends unknown[], Result>(
  limiter: Limiter,
  policy: string,
  fieldsOf: (...args: Args) => Fields,
  run: (...args: Args) => Result | Promise<Result>,
): (...args: Args) => Promise<Result> {
  return async (...args) => {
    const decision = await limiter.acquire(policy, fieldsOf(...args))
    if (!decision.admitted) throw new RateLimitedError(policy, decision)
    return run(...args)
  }
}
