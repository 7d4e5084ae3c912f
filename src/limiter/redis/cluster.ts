/**
 * In a cluster the values of a check may lie in different slots. They are asked one slot after the other,
 * widest window first, and a refusal gives back what the earlier ones took. That is all or nothing in the
 * end, but for a moment another check may see what is about to be given back.
 */
import { holdFor, windowIndexOf } from '../memory/kinds.ts'
import type { Answer, Found, Refused, Taken } from '../store.ts'
import type { Slot } from './keys.ts'

export interface SlotCalls {
  acquire(slot: Slot): Promise<Answer>
  peek(slot: Slot): Promise<readonly Found[]>
  release(slot: Slot): Promise<unknown>
  /** Releases the slot as soon as Redis answers again. */
  giveUp(slot: Slot): void
}

export async function askSlots(calls: SlotCalls, slots: readonly Slot[]): Promise<Answer> {
  const taken: Taken[] = []
  const takenSlots: Slot[] = []
  let refused: Refused | undefined
  try {
    for (const slot of slots) {
      // After a refusal a slot only tells whether it holds longer; but a full lockout begins its lock.
      const isAsked = !refused || slot.check.parts.some(({ rule }) => rule.lock)
      const answer = isAsked ? await calls.acquire(slot) : refusalIn(slot, await calls.peek(slot))
      if (answer.taken) {
        takenSlots.push(slot)
        taken.push(...answer.taken)
      } else if (!refused || isStronger(slot, answer.hold, refused.hold)) refused = answer
    }
  } catch (error) {
    for (const slot of takenSlots) calls.giveUp(slot)
    throw error
  }
  if (!refused) return { taken: taken.sort((a, b) => a.part.index - b.part.index) }
  await Promise.all(takenSlots.map((slot) => calls.release(slot).catch(() => calls.giveUp(slot))))
  return refused
}

/** The refusal if a slot were asked; its hold is 0 if the permits fit. */
function refusalIn(slot: Slot, found: readonly Found[]): Refused {
  const holds = found.map(({ part, uses, now }, place) => {
    const { mode } = part.rule
    const isPassed = mode === 'observe' || (mode === 'challenge' && slot.check.isSolved)
    return isPassed ? 0 : holdFor(part, uses, slot.check.permits[place] ?? 1, now)
  })
  const hold = holds.reduce((a, b) => (isStronger(slot, b, a) ? b : a), 0)
  return { hold, isNewLock: false }
}

/** What is enforced goes before what asks for a challenge, then the longer one. */
function isStronger({ check: { policy } }: Slot, hold: number, other: number): boolean {
  if (hold === 0 || other === 0) return hold > 0
  const isEnforced = (one: number) => policy.windows[windowIndexOf(one)]?.rule.mode === 'enforce'
  return isEnforced(hold) === isEnforced(other) ? hold > other : isEnforced(hold)
}
