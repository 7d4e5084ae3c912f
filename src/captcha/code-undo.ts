import type { createUntilAnswered } from '../base/until-answered.ts'
import type { EndedCode } from './code-answers.ts'

/**
 * Returns a function that undoes a step at once, and again when Redis answers, because the step may still be under way.
 * `undoStep` returns a code that stays used, because a repeat has passed. `onKept` is called once with it.
 */
export function createUndo(unanswered: ReturnType<typeof createUntilAnswered>) {
  return function undo(
    name: string,
    undoStep: () => Promise<EndedCode | undefined>,
    onKept?: (ended: EndedCode) => void,
  ): void {
    let announce = onKept
    async function run(): Promise<void> {
      const kept = await undoStep()
      if (!kept) return
      announce?.(kept)
      announce = undefined
    }
    run().catch(() => {})
    unanswered.add(name, run)
  }
}
