/** The types of policies: `Raw…` as people write them, the others after the check. */
import type { Kind, RawTerms, Terms, Window } from './terms.ts'

/**
 * The effect of a full rule. `enforce` refuses. `observe` only counts and reports. `challenge` refuses, except for
 * callers that solved a challenge.
 */
export type Mode = 'enforce' | 'observe' | 'challenge'

/** The values of a call for the `{field}`s of keys. For a field without a value the call throws `MissingField`. */
export type Fields = Readonly<Record<string, string | number | undefined>>

export interface RawRule extends RawTerms {
  readonly name: string
  /** Each value of the key has separate counts. `{field}` and plain text, e.g. `{channel}:{to}`. */
  readonly key: string
  /** The uses per permit of a call: a number, or the name of the field with the number. Default 1. */
  readonly permits?: number | string | undefined
  readonly scope?: 'overall' | 'per-client' | undefined
  readonly mode?: Mode | undefined
  /** `limiter.refund` gives back the uses of this rule. */
  readonly refund?: 'passed' | undefined
  /** The detail of a refusal. */
  readonly message?: string | undefined
}

/** An entry in place of a rule. It stands for all rules of another policy, and both policies share their counts. */
export interface RawInclude {
  readonly include: string
}

export type RawPolicies = Readonly<Record<string, readonly (RawRule | RawInclude)[]>>

/** A window with the names that callers know. */
export interface WindowLimit extends Window {
  readonly rule: string
  readonly kind: Kind
}

export interface Rule extends Terms {
  readonly name: string
  /** The policy that declares the rule. Counts are stored under its name. */
  readonly policy: string
  readonly kind: Kind
  readonly key: string
  readonly fields: readonly string[]
  /** The uses per permit of a call, or the name of the field with this number. */
  readonly permits: number | string
  readonly scope: 'overall' | 'per-client'
  readonly mode: Mode
  readonly refund?: 'passed' | undefined
  readonly message?: string | undefined
}

export type Policies = Readonly<Record<string, readonly Rule[]>>

export interface PolicyProblem {
  /** The path from the object of policies, e.g. `['captcha', 0, 'sliding']`. */
  readonly path: readonly (string | number)[]
  readonly message: string
}

export type ParsedPolicies =
  | { readonly ok: true; readonly policies: Policies }
  | { readonly ok: false; readonly problems: readonly PolicyProblem[] }
