/** One error class per mistake. The README of `postern-limiter` has a section for each. */
import { Unavailable } from '../base/unavailable.ts'
import type { Refusal } from './limiter.ts'
import type { PolicyProblem } from './policy/rule.ts'
import type { Kind } from './policy/terms.ts'

/** Policies that are not valid. `problems` lists every mistake. */
export class InvalidPolicies extends Error {
  override name = 'InvalidPolicies'
  readonly problems: readonly PolicyProblem[]
  constructor(problems: readonly PolicyProblem[]) {
    const lines = problems.map(({ path, message }) => `  ${path.join('.')}: ${message}`)
    super(`policies are not valid:\n${lines.join('\n')}`)
    this.problems = problems
  }
}

/** An option with a value that cannot work. `option` is its name. */
export class InvalidOption extends Error {
  override name = 'InvalidOption'
  readonly option: string
  constructor(option: string, message: string) {
    super(`${option}: ${message}`)
    this.option = option
  }
}

export class UnknownPolicy extends RangeError {
  override name = 'UnknownPolicy'
  readonly policy: string
  constructor(policy: string) {
    super(`there is no policy ${policy}`)
    this.policy = policy
  }
}

/** `peek` or `reset` named a rule that the policy does not have. */
export class UnknownRule extends RangeError {
  override name = 'UnknownRule'
  readonly policy: string
  readonly rule: string
  constructor(policy: string, rule: string) {
    super(`policy ${policy} has no rule ${rule}`)
    this.policy = policy
    this.rule = rule
  }
}

/** The call lacks a field of a rule's key, or its value is neither a text nor a number. */
export class MissingField extends Error {
  override name = 'MissingField'
  readonly policy: string
  readonly rule: string
  readonly field: string
  /** The part of the message after the name of the field. */
  readonly problem: string
  constructor(policy: string, rule: string, field: string, value?: unknown) {
    const isMissing = value === undefined || value === null
    const problem = isMissing ? 'is missing' : 'must be a text or a number'
    super(`policy ${policy}, rule ${rule}: the field ${field} ${problem}`)
    this.policy = policy
    this.rule = rule
    this.field = field
    this.problem = problem
  }
}

/** The number of permits is not a whole number above 0, or the policy can never give so many at once. */
export class InvalidPermits extends RangeError {
  override name = 'InvalidPermits'
  /** The field of the call that has the number of permits, if the rule uses such a field. */
  readonly field: string | undefined
  /** The highest number that the policy can give at once, if the call asked for more. */
  readonly most: number | undefined

  constructor(message: string, field?: string, most?: number) {
    super(message)
    this.field = field
    this.most = most
  }
}

/** Redis gave no usable answer within the deadline. The call must not be treated as admitted. */
export class LimiterUnavailable extends Unavailable {
  override name = 'LimiterUnavailable'
  constructor(reason: string, cause?: unknown) {
    super('redis', cause, reason)
  }
}

/** Thrown by functions of `withRateLimit` on a refusal. */
export class RateLimitedError extends Error {
  override name = 'RateLimitedError'
  readonly policy: string
  readonly rule: string
  readonly window: string
  readonly kind: Kind
  readonly retryAfterMs: number
  constructor(policy: string, refusal: Refusal) {
    super(
      refusal.message ?? `${policy}: rule ${refusal.rule} refuses for ${refusal.retryAfterMs} ms`,
    )
    this.policy = policy
    this.rule = refusal.rule
    this.window = refusal.window
    this.kind = refusal.kind
    this.retryAfterMs = refusal.retryAfterMs
  }
}
