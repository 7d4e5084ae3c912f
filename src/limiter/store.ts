/** Between the engine and the place of the uses: questions, and answers. */
import type { Hold } from './kinds.ts'
import type { CompiledPolicy, Part } from './policy/compile.ts'
import type { Uses } from './uses.ts'

/** The question of one call to one part of its policy. */
export interface Ask {
  readonly part: Part
  readonly subject: string
  readonly permits: number
}

/** A call, as stores see it. */
export interface Check {
  readonly policy: CompiledPolicy
  readonly asks: readonly Ask[]
  readonly requestId: string | undefined
  /** The request id was made for this very call, or there is none: no earlier call can have taken anything by it. */
  readonly isNew: boolean
  readonly isSolved: boolean
  /** The same for checks that ask for the same, whatever their subjects. */
  readonly group: string
}

/** The uses of the subject that a part was asked for, without those that a wrong clock has written. */
export interface Found {
  readonly ask: Ask
  readonly uses: Uses
  readonly now: number
}

/** A part after its policy admitted. `isFull`: the rule is full and is passed over. */
export interface Taken extends Found {
  readonly isFull: boolean
}

export interface RefusedAnswer {
  readonly hold: Hold
  /** This very check began the lock of the hold. */
  readonly isNewLock: boolean
  readonly taken?: undefined
}

/** `taken` has every part of the policy, in the policy's order. */
export type Answer = RefusedAnswer | { readonly taken: readonly Taken[] }

type MaybeLater<T> = T | Promise<T>

export type IsMeant = (part: Part) => boolean

/** Over Redis every function may throw `LimiterUnavailable`. */
export interface Store {
  /** Takes from every part, or from none; a repeat of an admitted request takes nothing more. */
  acquire(check: Check): MaybeLater<Answer>
  /** The answer where it is a refusal that is known without a question to a server. */
  recall?(check: Check): RefusedAnswer | undefined
  /** Gives back what the request took from the parts that are meant. True if the request is remembered. */
  release(check: Check, isMeant: IsMeant): MaybeLater<boolean>
  peek(check: Check): MaybeLater<readonly Found[]>
  reset(check: Check): MaybeLater<void>
  /** There are new policies: refusals by the earlier ones no longer hold. */
  forgetRefusals?(): void
  close?(): void
}
