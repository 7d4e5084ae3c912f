/** One small bug, as a tired engineer could write it. */
export interface Mutant {
  /** What it breaks, in words. */
  readonly breaks: string
  /** Text that stands exactly once in `src`, `lua` and `prisma`, wherever its file has moved to. */
  readonly find: string
  readonly replace: string
  /** Tests that should notice, as beginnings of paths, where they are not the room's own. */
  readonly tests?: readonly string[]
  /** Why it may live. It counts as a survivor all the same. */
  readonly mayLive?: string
}

export interface MutantRoom {
  /** The tests that should notice a bug in this room, as beginnings of paths. */
  readonly tests: readonly string[]
  readonly mutants: readonly Mutant[]
}
