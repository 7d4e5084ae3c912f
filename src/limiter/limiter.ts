/** What every limiter answers, whichever engine is behind it. */
import { Unavailable } from '../base/problems.ts'
import type { Fields, WindowLimit } from './plan.ts'
import type { Kind, RawPolicies } from './policies.ts'

export interface Remaining {
  readonly rule: string
  /** The window as the policy spells it: `60s`, or the cron expression of a calendar rule. */
  readonly window: string
  readonly left: number
}

export interface Admission {
  readonly admitted: true
  readonly remaining: readonly Remaining[]
  /** When the same request would be admitted again, with no other traffic; 0: at once. */
  readonly nextInMs: number
}

export interface Refusal {
  readonly admitted: false
  /** The rule and window that hold longest; the first of them as declared, if several hold equally. */
  readonly rule: string
  readonly window: string
  readonly limit: number
  /** 0 for a calendar rule, whose periods differ in length. */
  readonly windowMs: number
  /** `lockout` means locked: asking again does not help, waiting does. */
  readonly kind: Kind
  /** Waiting exactly this long, with no other traffic, admits the same request. A limit of 0 never does. */
  readonly retryAfterMs: number
  /** The rule's own words, where it has any. */
  readonly message?: string
}

export type Decision = Admission | Refusal

export interface AcquireOptions {
  /** Default 1. More than a rule could ever give is a `RangeError`. */
  readonly permits?: number
  /**
   * Names the request. The same id again, within the memory of requests, gets the first answer if that
   * was an admission (a refusal took nothing, and is decided anew); `release` gives back by it.
   */
  readonly requestId?: string
}

export interface WindowState {
  readonly rule: string
  readonly kind: Kind
  readonly window: string
  readonly limit: number
  readonly used: number
  readonly left: number
  /** When all of it is free again, if nothing more is taken. */
  readonly resetsInMs: number
  /** When this rule would admit one more call; 0: now. */
  readonly nextInMs: number
  /** Only while a lockout holds its lock. */
  readonly lockedForMs?: number
}

export interface Limiter {
  /** Takes from every rule of the policy, or from none. */
  acquire(policy: string, fields: Fields, options?: AcquireOptions): Promise<Decision>
  /** The same, waiting for the permits as long as that can help; the last refusal otherwise. */
  acquireWithin(
    policy: string,
    fields: Fields,
    timeoutMs: number,
    options?: AcquireOptions,
  ): Promise<Decision>
  /**
   * Gives back exactly what that request took, once; with `rules`, what it took from those. True if there
   * was something to give back. When it throws, it is done as soon as Redis answers again.
   */
  release(
    policy: string,
    fields: Fields,
    requestId: string,
    rules?: readonly string[],
  ): Promise<boolean>
  /** What every window holds now; takes nothing. */
  peek(policy: string, fields: Fields): Promise<readonly WindowState[]>
  /** Forgets everything about these fields, locks included; with `rule`, of that rule only. */
  reset(policy: string, fields: Fields, rule?: string): Promise<void>
  /** New rules from now on. Counts live on under the names of policy and rule. */
  setPolicies(policies: RawPolicies): void
  /** The windows of a policy, for headers and pages. */
  windows(policy: string): readonly WindowLimit[]
  close(): void
}

/** Counting for metrics; the labels are names from the policies, a closed set. */
export interface LimiterHooks {
  /** A refusal, also one from memory. */
  readonly onRefused?: (labels: RuleLabels) => void
  /** A rule with `mode: observe` would have refused something that was admitted. */
  readonly onObserved?: (labels: RuleLabels) => void
}

export interface RuleLabels {
  readonly policy: string
  readonly rule: string
}

/** Redis gave no answer within the deadline, or none that decides. Never means that there is no limit. */
export class LimiterUnavailable extends Unavailable {
  override name = 'LimiterUnavailable'
  constructor(reason: string, options?: ErrorOptions) {
    super('redis', options?.cause, reason)
  }
}

/** Policies that don't hold; `problems` lists them all. */
export class InvalidPolicies extends Error {
  override name = 'InvalidPolicies'
}

/** What `limited` functions throw. */
export class Limited extends Error {
  override name = 'Limited'
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
