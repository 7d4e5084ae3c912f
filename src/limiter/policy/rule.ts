/** The words of policies: as people write them (`Raw…`), and checked. */
import type { Kind, RawTerms, Terms, Window } from './terms.ts'

/** A full rule refuses; is only counted and reported; or asks for a challenge, and passes what has solved one. */
export type Mode = 'enforce' | 'observe' | 'challenge'

/** The values of a call for `{field}`s. `undefined` is refused by a `MissingField` that names the field. */
export type Fields = Readonly<Record<string, string | number | undefined>>

/** One rule of a policy. */
export interface RawRule extends RawTerms {
  readonly name: string
  /** What is counted apart: `{field}` and plain text, e.g. `{channel}:{to}`. */
  readonly key: string
  /** What one permit of a call takes: a number, or the field that holds it. Default 1. */
  readonly permits?: number | string | undefined
  readonly scope?: 'overall' | 'per-client' | undefined
  readonly mode?: Mode | undefined
  /** `refund` gives back what a request took from this rule. */
  readonly refund?: 'passed' | undefined
  /** The refusal's detail. */
  readonly message?: string | undefined
}

/** In the place of a rule: all rules of another policy, which both policies count in together. */
export interface RawInclude {
  readonly include: string
}

export type RawPolicies = Readonly<Record<string, readonly (RawRule | RawInclude)[]>>

/** A window by the names of callers. */
export interface WindowLimit extends Window {
  readonly rule: string
  readonly kind: Kind
}

export interface Rule extends Terms {
  readonly name: string
  /** The policy it is declared in, under whose name it counts. */
  readonly policy: string
  readonly kind: Kind
  readonly key: string
  /** The fields of the key. */
  readonly fields: readonly string[]
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
