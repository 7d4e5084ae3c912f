/** What every limiter answers, whichever engine is behind it. */
import type { Fields, RawPolicies, WindowLimit } from './policy/rule.ts'
import type { Kind } from './policy/terms.ts'

export interface Remaining {
  readonly rule: string
  /** The window as the policy spells it: `60s`, or the cron expression of a calendar rule. */
  readonly window: string
  readonly left: number
  /** Of a rule with `mode: observe`, which refuses nobody. */
  readonly isObserved?: true
}

export interface Admission {
  readonly admitted: true
  readonly remaining: readonly Remaining[]
  /** When the same request would be admitted again, with no other traffic, or asked for a challenge; 0: at once. */
  readonly nextInMs: number
}

export interface Refusal extends WindowLimit {
  readonly admitted: false
  /** No more than rules in `mode: challenge` are full, so the request passes with a solved challenge. */
  readonly challenge?: true
  /**
   * The rule and window that hold longest; the first of them as declared, if several hold equally. A rule in
   * `mode: challenge` only if no other holds.
   */
  readonly rule: string
  readonly window: string
  /** `lockout` means locked: asking again does not help, waiting does. */
  readonly kind: Kind
  /**
   * Waiting exactly this long, with no other traffic, admits the same request, or asks it for a challenge. A
   * limit of 0 never does.
   */
  readonly retryAfterMs: number
  /** This very refusal began the lock. */
  readonly isNewLock?: true
  /** The rule's own words, where it has any. */
  readonly message?: string
}

export type Decision = Admission | Refusal

export interface AcquireOptions {
  /** Default 1. More than a rule could ever give is an `InvalidPermits`. */
  readonly permits?: number | undefined
  /**
   * Names the request. The same id again, within the memory of requests, gets the first answer if that
   * was an admission (a refusal took nothing, and is decided anew); `release` gives back by it.
   */
  readonly requestId?: string | undefined
  /** The id was made for this very call, so a remembered refusal may answer it. */
  readonly isNewRequest?: boolean | undefined
  /** The answer raises no event: no caller's request was admitted, observed or refused. */
  readonly isSilent?: boolean | undefined
  /** The caller has solved a challenge: rules in `mode: challenge` count it if there is room, and pass it. */
  readonly isSolved?: boolean | undefined
}

export interface WindowState extends Omit<WindowLimit, 'windowMs'> {
  readonly used: number
  readonly left: number
  /** Time until every use is free again, if no more are taken. */
  readonly resetsInMs: number
  /** Time until this rule admits another call; 0: now. */
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
   * The refusal that this process remembers of such a call, without a question to Redis. Undefined where it remembers none,
   * which tells nothing of what `acquire` would answer; always so in process. Raises no event.
   */
  recall(policy: string, fields: Fields, options?: AcquireOptions): Refusal | undefined
  /**
   * Gives back exactly what that request took, once; with `rules`, what it took from those. True if the
   * request is remembered. When it throws, it is done as soon as Redis answers again.
   */
  release(
    policy: string,
    fields: Fields,
    requestId: string,
    rules?: readonly string[],
  ): Promise<boolean>
  /** The same for the rules with `refund: passed`. */
  refund(policy: string, fields: Fields, requestId: string): Promise<boolean>
  /** What every window holds now; with `rule`, those of that rule only (`UnknownRule`). Takes nothing. */
  peek(policy: string, fields: Fields, rule?: string): Promise<readonly WindowState[]>
  /** Forgets everything about these fields, locks included; with `rule`, of that rule only. */
  reset(policy: string, fields: Fields, rule?: string): Promise<void>
  /**
   * New rules from now on. Counts live on under the names of policy and rule, while the kind is the same. Over Redis an
   * earlier use still ends by the terms that it was made by, if they were shorter: a refusal writes nothing, so it can't
   * make a key live longer.
   */
  setPolicies(policies: RawPolicies): void
  /** The windows of a policy, for headers and pages. */
  windows(policy: string): readonly WindowLimit[]
  /** Nobody waits any more: `acquireWithin` answers with its last refusal. */
  close(): void
}

/** For metrics; all names are from the policies, a closed set. */
export interface LimiterEvents {
  readonly onAdmitted?: ((labels: { policy: string }) => void) | undefined
  /** A refusal, also one from memory. */
  readonly onRefused?: ((labels: RuleLabels) => void) | undefined
  /** A rule with `mode: observe` would have refused something that was admitted. */
  readonly onObserved?: ((labels: RuleLabels) => void) | undefined
  /** Redis gave no answer to an acquire. */
  readonly onUnavailable?: ((labels: { policy: string }) => void) | undefined
}

export interface RuleLabels {
  readonly policy: string
  readonly rule: string
}
