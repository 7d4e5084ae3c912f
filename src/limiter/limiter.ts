/** The interface of every limiter, in process and over Redis. */
import type { Fields, RawPolicies, WindowLimit } from './policy/rule.ts'
import type { Kind } from './policy/terms.ts'

export interface Remaining {
  readonly rule: string
  /** The window as written in the policy: `60s`, or the cron expression of a calendar rule. */
  readonly window: string
  readonly left: number
  /** True for a rule with `mode: observe`, which refuses nothing. */
  readonly isObserved?: true
}

export interface Admission {
  readonly admitted: true
  readonly remaining: readonly Remaining[]
  /** Milliseconds until the same request would be admitted, or refused with `challenge`, without other traffic. */
  readonly nextInMs: number
}

export interface Refusal extends WindowLimit {
  readonly admitted: false
  /** Only rules with `mode: challenge` refused, so the same request passes with a solved challenge. */
  readonly challenge?: true
  /**
   * The rule and window with the longest wait. Of equal waits, the first as declared. Rules with `mode: challenge`
   * count only if no other rule refuses.
   */
  readonly rule: string
  readonly window: string
  /** `lockout` means a lock. Tries during a lock do not make it longer. */
  readonly kind: Kind
  /**
   * After exactly this time, without other traffic, the same request is admitted, or refused with `challenge`. With a
   * limit of 0 it is always refused.
   */
  readonly retryAfterMs: number
  /** The longest lock that began with this refusal. It can be shorter than the wait for another rule. */
  readonly newLock?: NewLock
  /** The `message` of the rule. */
  readonly message?: string
}

export type NewLock = Pick<Refusal, 'rule' | 'window' | 'retryAfterMs'>

export type Decision = Admission | Refusal

export interface AcquireOptions {
  /** Default 1. If a rule can never give so many, the call throws `InvalidPermits`. */
  readonly permits?: number | undefined
  /**
   * The id of the request. While it is remembered, a repeat of an admitted request gets the same answer. After a
   * refusal, a repeat is decided anew. `release` needs this id.
   */
  readonly requestId?: string | undefined
  /** The caller has just made the id, so a remembered refusal may answer the call. */
  readonly isNewRequest?: boolean | undefined
  /** The call is not a request of a caller, so it is not reported to `LimiterEvents`. */
  readonly isSilent?: boolean | undefined
  /**
   * The caller has solved a challenge. Rules with `mode: challenge` then admit the request in any case, and count it if
   * it fits.
   */
  readonly isSolved?: boolean | undefined
}

export interface WindowState extends Omit<WindowLimit, 'windowMs'> {
  readonly used: number
  readonly left: number
  /** Time until all uses are back, without further uses. */
  readonly resetsInMs: number
  /** Time until this rule admits another call. 0: now, or the rule has not `mode: enforce`. */
  readonly nextInMs: number
  /** Present only during a lock by a rule with `mode: enforce`. */
  readonly lockedForMs?: number
}

export interface Limiter {
  /** Takes permits from every rule of the policy, or from none. */
  acquire(policy: string, fields: Fields, options?: AcquireOptions): Promise<Decision>
  /** Like `acquire`, but waits for up to `timeoutMs` if that can help. Otherwise resolves with the last refusal. */
  acquireWithin(
    policy: string,
    fields: Fields,
    timeoutMs: number,
    options?: AcquireOptions,
  ): Promise<Decision>
  /**
   * The refusal that this process remembers for such a call. Does not call Redis. Undefined if it remembers none: then
   * only `acquire` can decide. A limiter in process remembers none. Not reported to `LimiterEvents`.
   */
  recall(policy: string, fields: Fields, options?: AcquireOptions): Refusal | undefined
  /**
   * Gives back exactly the uses of that request, once. With `rules`, only the uses of those rules. Uses of rules with
   * `scope: per-client` come back only in the process that took them. Resolves with true if the request is remembered.
   * If it throws, the uses are given back when Redis answers again.
   */
  release(
    policy: string,
    fields: Fields,
    requestId: string,
    rules?: readonly string[],
  ): Promise<boolean>
  /** Like `release`, but only for rules with `refund: passed`. */
  refund(policy: string, fields: Fields, requestId: string): Promise<boolean>
  /** The state of every window, or only of the windows of `rule`. Takes nothing. Throws `UnknownRule`. */
  peek(policy: string, fields: Fields, rule?: string): Promise<readonly WindowState[]>
  /** Deletes all counts and locks of these fields; with `rule`, only of that rule. Throws `UnknownRule`. */
  reset(policy: string, fields: Fields, rule?: string): Promise<void>
  /**
   * Replaces the policies. A rule with the same policy, name and kind keeps its counts. In process, the counts of a removed
   * rule are forgotten. In a list, windows of a `fixed` rule
   * and windows above 128 have a count per length (docs/limiter.md). Over Redis, a longer window does not lengthen the life
   * of earlier uses, because a refusal writes nothing.
   */
  setPolicies(policies: RawPolicies): void
  /** The windows of a policy, for headers and pages. */
  windows(policy: string): readonly WindowLimit[]
  /** Ends all waiting: `acquireWithin` resolves with its last refusal. */
  close(): void
}

/** Callbacks for metrics. All names come from the policies, so they are a closed set. */
export interface LimiterEvents {
  readonly onAdmitted?: ((labels: { policy: string }) => void) | undefined
  /** A refusal by Redis or from memory. */
  readonly onRefused?: ((labels: RuleLabels) => void) | undefined
  /** A rule with `mode: observe` was full, and the request was admitted. */
  readonly onObserved?: ((labels: RuleLabels) => void) | undefined
  /** An `acquire` got no answer from Redis. */
  readonly onUnavailable?: ((labels: { policy: string }) => void) | undefined
}

export interface RuleLabels {
  readonly policy: string
  readonly rule: string
}
