/** The interface between the engine and the place where uses are stored. */
import type { Hold } from './kinds.ts'
import type { CompiledPolicy, Part } from './policy/compile.ts'
import type { Uses } from './uses.ts'

/** The default of `rememberRequestsMs`. After this time, neither store nor engine finds the uses of a request. */
export const usualMemoryMs = 300_000

/** The subject and the permits of a call, for one part of its policy. */
export interface Ask {
  readonly part: Part
  readonly subject: string
  readonly permits: number
}

/** A call in the form that stores need. */
export interface Check {
  readonly policy: CompiledPolicy
  readonly asks: readonly Ask[]
  readonly requestId: string | undefined
  /** All fields of a call with a request id. Empty without one. */
  readonly fields: string
  /** No earlier call can have taken uses under the request id: the id is new, or there is none. */
  readonly isNew: boolean
  readonly isSolved: boolean
  /** Checks of the same group have the same policy, permits and options, for any subjects. */
  readonly group: string
}

/** The uses of one subject in one part, without uses that a wrong clock wrote. */
export interface Found {
  readonly ask: Ask
  readonly uses: Uses
  readonly now: number
}

/** A part of an admitted check. `isFull`: the rule was full, but its mode let the check pass. */
export interface Taken extends Found {
  readonly isFull: boolean
}

export interface RefusedAnswer {
  readonly hold: Hold
  /** The hold by a lock that began with this check. */
  readonly newLock?: Hold | undefined
  readonly taken?: undefined
}

/** `taken` has every part of the policy, in its order. */
export type Answer = RefusedAnswer | { readonly taken: readonly Taken[] }

type MaybeLater<T> = T | Promise<T>

export type IsMeant = (part: Part) => boolean

/** Over Redis, every function can throw `LimiterUnavailable`. */
export interface Store {
  /** Takes permits from every part, or from none. A repeat of an admitted request takes nothing. */
  acquire(check: Check): MaybeLater<Answer>
  /** The refusal of this check, if this process knows it without a server. */
  recall?(check: Check): RefusedAnswer | undefined
  /** Gives back uses of the request in the parts that `isMeant` accepts. True if the request is remembered. */
  release(check: Check, isMeant: IsMeant): MaybeLater<boolean>
  peek(check: Check): MaybeLater<readonly Found[]>
  reset(check: Check): MaybeLater<void>
  /**
   * Called with the parts of new policies. Refusals by earlier policies are no longer valid, and the counts of a removed
   * rule are not needed.
   */
  changeParts(parts: readonly Part[]): void
  close?(): void
}
