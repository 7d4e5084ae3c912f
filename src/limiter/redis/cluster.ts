/**
 * In a cluster the values of a check may lie in different slots. They are asked one slot after the other,
 * widest window first, and a refusal gives back what the earlier ones took. That is all or nothing in the
 * end, but for a moment another check may see what is about to be given back.
 */

import { holdFor, windowIndexOf } from '../memory/kinds.ts'
import type { CompiledPolicy } from '../policy/compile.ts'
import type { Answer, Found, Refused, Taken } from '../store.ts'
import type { Slot } from './batch.ts'

export interface SlotCalls {
  acquire(slot: Slot): Promise<Answer>
  peek(slot: Slot): Promise<readonly Found[]>
  release(slot: Slot): Promise<unknown>
  /** Releases the slot as soon as Redis answers again. */
  giveUp(slot: Slot): void
}

export async function askSlots(
  policy: CompiledPolicy,
  calls: SlotCalls,
  slots: readonly Slot[],
): Promise<Answer> {
  const taken: Taken[] = []
  const takenSlots: Slot[] = []
  let refused: Refused | undefined
  try {
    for (const slot of slots) {
      // After a refusal a slot only tells whether it holds longer; but a full lockout begins its lock.
      const isAsked = !refused || slot.parts.some(({ kind }) => kind === 'lockout')
      const answer: Answer = isAsked ? await calls.acquire(slot) : await lookAt(slot)
      if (answer.taken) {
        takenSlots.push(slot)
        taken.push(...answer.taken)
      } else if (!refused || isStronger(answer.hold, refused.hold)) {
        refused = { ...answer, sentAt: refused?.sentAt ?? answer.sentAt }
      }
    }
  } catch (error) {
    for (const slot of takenSlots) calls.giveUp(slot)
    throw error
  }
  if (!refused) return { hold: 0, taken: taken.sort((a, b) => a.part.index - b.part.index) }
  await Promise.all(takenSlots.map((slot) => calls.release(slot).catch(() => calls.giveUp(slot))))
  return refused

  async function lookAt(slot: Slot): Promise<Refused> {
    const found = await calls.peek(slot)
    const holds = found.map(({ part, uses, now }, index) =>
      part.rule.mode === 'observe' || (part.rule.mode === 'challenge' && slot.isSolved)
        ? 0
        : holdFor(part, uses, slot.permits[index] ?? 1, now),
    )
    const hold = holds.reduce((a, b) => (isStronger(b, a) ? b : a), 0)
    return { hold, isNewLock: false, sentAt: 0 }
  }

  /** What is enforced goes before what asks for a challenge, then the longer one. */
  function isStronger(hold: number, other: number): boolean {
    if (hold === 0 || other === 0) return hold > 0
    const isEnforced = (one: number) => policy.windows[windowIndexOf(one)]?.rule.mode === 'enforce'
    return isEnforced(hold) === isEnforced(other) ? hold > other : isEnforced(hold)
  }
}
