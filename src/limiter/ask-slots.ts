/**
 * One check over the slots that its values lie in. On one server that is a single slot and a single
 * atomic step. In a cluster the rules of a check may live in different slots: then they are asked one
 * slot after the other, widest window first, and a refusal gives back what the earlier ones took. That is
 * all or nothing in the end, but for a moment another check may see what is about to be given back.
 */
import type { Answer, Slot } from './check-batch.ts'

type Refused = Answer & { admitted: false }

export interface SlotCalls {
  acquire(slot: Slot, permits: number, giveUp: (() => void) | undefined): Promise<Answer>
  /** What would refuse these permits longest, by rules that are enforced. */
  lookForWait(slot: Slot, permits: number): Promise<{ waitMs: number; window: number }>
  /** Of these rules only, where they are named. */
  release(slot: Slot, ruleNames?: readonly string[]): Promise<unknown>
  /** Releases the slot as soon as Redis answers again. */
  giveUp(slot: Slot, ruleNames?: readonly string[]): void
}

export async function askSlots(
  calls: SlotCalls,
  slots: readonly Slot[],
  permits: number,
): Promise<Answer> {
  const left: number[] = []
  const taken: Slot[] = []
  let nextInMs = 0
  let refused: Refused | undefined
  try {
    for (const slot of slots) {
      if (refused && !slot.plan.parts.some((part) => part.rule.lock)) {
        // Refused already; this slot only tells whether it holds even longer.
        const { waitMs, window } = await calls.lookForWait(slot, permits)
        if (waitMs > refused.retryAfterMs) refused = { ...refused, window, retryAfterMs: waitMs }
        continue
      }
      const answer = await calls.acquire(slot, permits, () => calls.giveUp(slot))
      if (answer.admitted) {
        taken.push(slot)
        Object.assign(left, answer.left)
        nextInMs = Math.max(nextInMs, answer.nextInMs)
      } else if (!refused || answer.retryAfterMs > refused.retryAfterMs) refused = answer
    }
  } catch (error) {
    for (const slot of taken) calls.giveUp(slot)
    throw error
  }
  if (!refused) return { admitted: true, left, nextInMs }
  await Promise.all(taken.map((slot) => calls.release(slot).catch(() => calls.giveUp(slot))))
  return refused
}
