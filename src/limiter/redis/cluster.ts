/**
 * In a cluster, the values of one check can be in different slots. The slots are called one after the other. After a
 * refusal, the uses of the earlier slots are given back. So the result is all or nothing, but for a moment other checks
 * can see uses that will be given back.
 *
 * Slots with a lockout come last, because a lock that has begun stays after a refusal. If a slot gives no answer, it is
 * undone. The other slots are in the order of their longest window, longest first.
 */
import { type Hold, kindOf, longer, stronger } from '../kinds.ts'
import type { Answer, Found, RefusedAnswer, Taken } from '../store.ts'
import type { ScriptCall } from './keys.ts'

export interface SlotCalls {
  acquire(slot: ScriptCall): Promise<Answer>
  peek(slot: ScriptCall): Promise<readonly Found[]>
  takeBack(slot: ScriptCall): Promise<unknown>
  /** Gives the uses back, and undoes a lock that began, when Redis answers again. */
  giveUp(slot: ScriptCall): void
}

export async function askSlots(calls: SlotCalls, slots: readonly ScriptCall[]): Promise<Answer> {
  const taken: Taken[] = []
  const takenSlots: ScriptCall[] = []
  const lockedSlots: ScriptCall[] = []
  let refused: RefusedAnswer | undefined
  try {
    for (const slot of slots) {
      const answer = await (refused ? askAfterRefusal(calls, slot) : calls.acquire(slot))
      if (answer?.taken) {
        takenSlots.push(slot)
        taken.push(...answer.taken)
      } else if (answer) {
        if (answer.newLock) lockedSlots.push(slot)
        const hold = stronger(refused?.hold, answer.hold) ?? answer.hold
        refused = { hold, newLock: longer(refused?.newLock, answer.newLock) }
      }
    }
  } catch (error) {
    for (const slot of [...takenSlots, ...lockedSlots]) calls.giveUp(slot)
    throw error
  }
  if (!refused) return { taken: taken.sort(byPart) }
  await Promise.all(takenSlots.map((slot) => calls.takeBack(slot).catch(() => calls.giveUp(slot))))
  return refused
}

/** The refusal of this slot, or undefined. If a lockout is full, calls `acquire` to begin its lock. */
async function askAfterRefusal(calls: SlotCalls, slot: ScriptCall): Promise<Answer | undefined> {
  let hold: Hold | undefined
  for (const { ask, uses, now } of await calls.peek(slot)) {
    const { part, permits } = ask
    const kind = kindOf(part)
    const own = kind.ask(part, uses, permits, now).hold
    if (own && kind.beginsLocks) return calls.acquire(slot)
    const { mode } = part.rule
    const isPassed = mode === 'observe' || (mode === 'challenge' && slot.check.isSolved)
    if (!isPassed) hold = stronger(hold, own)
  }
  return hold && { hold }
}

export const byPart = (a: Found, b: Found) => a.ask.part.index - b.ask.part.index
