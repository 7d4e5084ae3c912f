/**
 * In a cluster the values of a check may lie in different slots. They are asked one slot after the other, and
 * a refusal gives back what the earlier ones took. That is all or nothing in the end, but for a moment another
 * check may see what is about to be given back. So lockouts come last, because a lock that it began would
 * stay; the others by their width, the widest window first.
 */
import { holdFor, windowIndexOf } from '../memory/kinds.ts'
import type { Answer, Found, Refused, Taken } from '../store.ts'
import type { Slot } from './keys.ts'

export interface SlotCalls {
  acquire(slot: Slot): Promise<Answer>
  peek(slot: Slot): Promise<readonly Found[]>
  takeBack(slot: Slot): Promise<unknown>
  /** Takes it back as soon as Redis answers again. */
  giveUp(slot: Slot): void
}

export async function askSlots(calls: SlotCalls, slots: readonly Slot[]): Promise<Answer> {
  const taken: Taken[] = []
  const takenSlots: Slot[] = []
  let refused: Refused | undefined
  try {
    for (const slot of slots) {
      const answer = await (refused ? askAfterRefusal(calls, slot) : calls.acquire(slot))
      if (answer.taken) {
        takenSlots.push(slot)
        taken.push(...answer.taken)
      } else if (!refused || isStronger(slot, answer.hold, refused.hold)) refused = answer
    }
  } catch (error) {
    for (const slot of takenSlots) calls.giveUp(slot)
    throw error
  }
  if (!refused) return { taken: taken.sort(byPart) }
  await Promise.all(takenSlots.map((slot) => calls.takeBack(slot).catch(() => calls.giveUp(slot))))
  return refused
}

/** Tells only whether a slot holds longer, with a hold of 0 if the permits fit; but a full lockout begins its lock. */
async function askAfterRefusal(calls: SlotCalls, slot: Slot): Promise<Answer> {
  let hold = 0
  for (const { ask, uses, now } of await calls.peek(slot)) {
    const { mode, lock } = ask.part.rule
    const own = holdFor(ask.part, uses, ask.permits, now)
    if (own > 0 && lock) return calls.acquire(slot)
    const isPassed = mode === 'observe' || (mode === 'challenge' && slot.check.isSolved)
    if (!isPassed && isStronger(slot, own, hold)) hold = own
  }
  return { hold, isNewLock: false }
}

export const byPart = (a: Found, b: Found) => a.ask.part.index - b.ask.part.index

/** What is enforced goes before what asks for a challenge, then the longer one. */
function isStronger({ check: { policy } }: Slot, hold: number, other: number): boolean {
  if (hold === 0 || other === 0) return hold > 0
  const isEnforced = (one: number) => policy.windows[windowIndexOf(one)]?.rule.mode === 'enforce'
  return isEnforced(hold) === isEnforced(other) ? hold > other : isEnforced(hold)
}
