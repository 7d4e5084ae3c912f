/** The state that Stryker shares with the changed code. */
interface StrykerState {
  activeMutant?: string
  currentTestId?: string
  mutantCoverage?: { static: Counts; perTest: Record<string, Counts> }
}
type Counts = Record<string, number>

const global = globalThis as { __stryker__?: StrykerState }

/** Undefined in the first run, which finds the mutants that each test reaches. */
export const activeMutant = () => global.__stryker__?.activeMutant

/** The current test has reached these mutants in another program. */
export function reached(mutants: readonly string[]): void {
  const state = global.__stryker__
  // A page may live longer than its test.
  if (!state?.currentTestId) return
  state.mutantCoverage ??= { static: {}, perTest: {} }
  const { static: atLoad, perTest } = state.mutantCoverage
  const counts = perTest[state.currentTestId] ?? {}
  perTest[state.currentTestId] = counts
  for (const mutant of mutants) if (!(mutant in atLoad)) counts[mutant] ??= 1
}
