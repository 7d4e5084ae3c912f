/** Between the engine and where the state is: what is asked, and what comes back. */
import type { Uses } from './memory/kinds.ts'
import type { CompiledPolicy, Part } from './policy/compile.ts'

/** What a call asks of one part of its policy. */
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
  readonly isSolved: boolean
  /** The same for checks that ask for the same, whatever their subjects. */
  readonly group: string
}

/** What the part knows of the subject that it was asked for. */
export interface Found {
  readonly ask: Ask
  readonly uses: Uses
  readonly now: number
}

/** A part after its policy admitted. `isFull`: its rule is passed over although it is full. */
export interface Taken extends Found {
  readonly isFull: boolean
}

/** `hold` as in memory/kinds.ts. */
export interface Refused {
  readonly hold: number
  readonly isNewLock: boolean
  readonly taken?: undefined
}

/** `taken` has every part of the policy, in its order. */
export type Answer = Refused | { readonly taken: readonly Taken[] }

type MaybeLater<T> = T | Promise<T>

export type IsMeant = (part: Part) => boolean

export interface Store {
  /** Gives back what the request took from the parts that are meant. */
  release(check: Check, isMeant: IsMeant): MaybeLater<boolean>
  peek(check: Check): MaybeLater<readonly Found[]>
  reset(check: Check): MaybeLater<void>
}
