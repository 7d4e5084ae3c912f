/** One error per mistake; each has a section of its name in the README of `postern-limiter`. */
import { Unavailable } from '../base/unavailable.ts'
import type { Refusal } from './limiter.ts'
import type { PolicyProblem } from './policy/rule.ts'
import type { Kind } from './policy/terms.ts'

/** Policies that do not hold; `problems` lists them all. */
export class InvalidPolicies extends Error {
  override name = 'InvalidPolicies'
  readonly problems: readonly PolicyProblem[]
  constructor(problems: readonly PolicyProblem[]) {
    const lines = problems.map(({ path, message }) => `  ${path.join('.')}: ${message}`)
    super(`policies do not hold:\n${lines.join('\n')}`)
    this.problems = problems
  }
}

/** An option that can't work; `option` names it. */
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

/** `peek` or `reset` of a rule that the policy does not have. */
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

/** A key needs a field which the call does not have, or has as something else than a text or a number. */
export class MissingField extends Error {
  override name = 'MissingField'
  readonly policy: string
  readonly rule: string
  readonly field: string
  /** In words, without the field's name. */
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

/** Permits that are no whole number above 0, or more than the policy could ever give at once. */
export class InvalidPermits extends RangeError {
  override name = 'InvalidPermits'
  /** The field that holds them, where a rule takes its permits from one. */
  readonly field: string | undefined

  constructor(message: string, field?: string) {
    super(message)
    this.field = field
  }
}

/** Redis gave no answer within the deadline, or none that decides. Never means that there is no limit. */
export class LimiterUnavailable extends Unavailable {
  override name = 'LimiterUnavailable'
  constructor(reason: string, cause?: unknown) {
    super('redis', cause, reason)
  }
}

/** What the functions of `withRateLimit` throw. */
export class RateLimitedError extends Error {
  override name = 'RateLimitedError'
  readonly policy: string
  readonly rule: string
  readonly window: string
  readonly kind: Kind
  readonly retryAfterMs: number
  constructor(policy: string, refusal: Refusal) {
    super(refusal.message ?? `${policy}: rule ${refusal.rule} holds for ${refusal.retryAfterMs} ms`)
    this.policy = policy
    this.rule = refusal.rule
    this.window = refusal.window
    this.kind = refusal.kind
    this.retryAfterMs = refusal.retryAfterMs
  }
}
