/** The words of policies: as people write them (`Raw…`), and checked. */
export type Kind = 'sliding' | 'fixed' | 'bucket' | 'calendar' | 'lockout'

/** A full rule refuses; is only counted and reported; or asks for a challenge, and passes what has solved one. */
export type Mode = 'enforce' | 'observe' | 'challenge'

/** The values of a call for `{field}`s. `undefined` is refused by a `MissingField` that names the field. */
export type Fields = Readonly<Record<string, string | number | undefined>>

/** `5 per 1h`, or a list of such. */
export type RawWindows = string | readonly string[]

/** One rule of a policy; it has exactly one of the members that are named after kinds. */
export interface RawRule {
  readonly name: string
  /** What is counted apart: `{field}` and plain text, e.g. `{channel}:{to}`. */
  readonly key: string
  readonly sliding?: RawWindows | undefined
  readonly fixed?: RawWindows | undefined
  /** Up to `burst` permits at once; they come back one after the other at `rate`, e.g. `10 per 1m`. */
  readonly bucket?: { readonly rate: string; readonly burst: number } | undefined
  readonly calendar?:
    | { readonly limit: number; readonly cron: string; readonly timezone: string }
    | undefined
  readonly lockout?: RawLockout | undefined
  /** What one permit of a call takes: a number, or the field that holds it. Default 1. */
  readonly permits?: number | string | undefined
  readonly scope?: 'overall' | 'per-client' | undefined
  readonly mode?: Mode | undefined
  /** `refund` gives back what a request took from this rule. */
  readonly refund?: 'passed' | undefined
  /** The refusal's detail. */
  readonly message?: string | undefined
}

export interface RawLockout {
  readonly limit: number
  readonly window: string
  readonly lock: string
  /** Each further lock is that many times longer, up to `maxLock`. Default 1. */
  readonly growth?: number | undefined
  readonly maxLock?: string | undefined
}

/** In the place of a rule: all rules of another policy, which both policies count in together. */
export interface RawInclude {
  readonly include: string
}

export type RawPolicies = Readonly<Record<string, readonly (RawRule | RawInclude)[]>>

/** At most `limit` uses within it. `window` is its length as the policy spells it; of a bucket, its rate. */
export interface Window {
  readonly limit: number
  readonly window: string
  /** 0 for a calendar rule, whose periods differ in length. Of a bucket, how long all of it takes to come back. */
  readonly windowMs: number
}

/** A window by the names of callers. */
export interface WindowLimit extends Window {
  readonly rule: string
  readonly kind: Kind
}

/** The first lock's length; each further one is `growth` times longer, up to `maxLockMs`. */
export interface Lock {
  readonly lockMs: number
  readonly growth: number
  readonly maxLockMs: number
}

/** `refill` permits come back to a bucket in every `everyMs`. */
export interface Rate {
  readonly refill: number
  readonly everyMs: number
}

export interface Rule {
  readonly name: string
  /** The policy it is declared in, under whose name it counts. */
  readonly policy: string
  readonly kind: Kind
  readonly key: string
  /** The fields of the key. */
  readonly fields: readonly string[]
  readonly windows: readonly Window[]
  readonly calendar?: { readonly cron: string; readonly timezone: string }
  readonly lock?: Lock
  readonly rate?: Rate
  /** What each permit of a call takes; a text names the field that holds it. */
  readonly permits: number | string
  readonly scope: 'overall' | 'per-client'
  readonly mode: Mode
  readonly refund?: 'passed' | undefined
  readonly message?: string | undefined
}

export type Policies = Readonly<Record<string, readonly Rule[]>>

export interface PolicyProblem {
  /** From the policies object down, e.g. `['captcha', 0, 'sliding']`. */
  readonly path: readonly (string | number)[]
  readonly message: string
}

export type ParsedPolicies =
  | { readonly ok: true; readonly policies: Policies }
  | { readonly ok: false; readonly problems: readonly PolicyProblem[] }
