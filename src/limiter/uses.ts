/**
 * The uses of one subject in one part of a rule. In Redis, a value is a string of bytes. Here it is a list of the same
 * numbers:
 *
 *   of a lockout only: the end of its last lock, and the number of locks in a row.
 *   of a bucket only: the time since which permits come back, and how many had come back by then.
 *   the number of uses before the oldest stored one.
 *   for each use, oldest first: its time, and the number of uses up to and including it.
 */
import type { Part } from './policy/compile.ts'
import { type Lock, lockMsOf } from './policy/terms.ts'

export type Uses = number[]

export const total = (uses: Uses) => uses[uses.length - 1] ?? 0
export const timeAt = (uses: Uses, place: number) => uses[place + 1] ?? 0
/** The number of uses from the given position to the newest. */
export const usedFrom = (uses: Uses, place: number) => total(uses) - (uses[place] ?? 0)

/** The position of the newest use. Below `part.first` if there is none. */
export const newestPlace = (uses: Uses) => uses.length - 3

/** The time of the newest use; 0 if there is none. */
export function newest(part: Part, uses: Uses): number {
  return newestPlace(uses) < part.first ? 0 : timeAt(uses, newestPlace(uses))
}

/** The time of a use that is made now. */
export const roundedUp = ({ granuleMs }: Part, now: number) =>
  Math.ceil(now / granuleMs) * granuleMs

/**
 * Corrects uses that a clock ahead of this one has written. Uses from far ahead are removed; others count from now on,
 * as one use. A bucket refills from now on, and a lock is as long as if it began now.
 */
export function correct(part: Part, uses: Uses, now: number): Uses {
  const latest = roundedUp(part, now)
  const [head = 0, number = 0] = uses
  const hasHead = part.rule.own !== undefined
  if (newest(part, uses) <= latest && !(hasHead && head > now)) return uses
  let kept = uses
  while (newest(part, kept) > now + part.trustMs) kept = kept.slice(0, -2)
  if (newest(part, kept) > latest) {
    let place = newestPlace(kept)
    while (place > part.first && timeAt(kept, place - 2) >= latest) place -= 2
    kept = kept.slice(0, place + 1).concat([latest, total(kept)])
  }
  const lock = part.rule.kind === 'lockout' ? (part.rule.own as Lock) : undefined
  const latestHead = lock ? now + lockMsOf(lock, number) : now
  if (!hasHead || head <= latestHead || head > now + part.trustMs + (lock?.maxLockMs ?? 0))
    return kept
  return [latestHead, number].concat(kept.slice(2))
}

/**
 * Adds permits as the newest uses, and removes uses that have left every window. The list is changed in place, because
 * copies of thousands of lists would become old garbage. The shared list `part.empty` is copied.
 */
export function add(part: Part, uses: Uses, at: number, permits: number, now: number): Uses {
  const made = total(uses) + permits
  if (uses === part.empty) return uses.concat([at, made])
  if (newest(part, uses) === at) uses[uses.length - 1] = made
  else uses.push(at, made)
  let oldest = part.first
  while (oldest < newestPlace(uses) && timeAt(uses, oldest) + part.longestMs <= now) oldest += 2
  if (oldest > part.first) uses.splice(part.first, oldest - part.first)
  return uses
}

/**
 * Removes this many uses of that time, if they are still in the list. A clock that was ahead may have been corrected since.
 * Then the uses have an earlier time, and are the newest in the list. See lua/release-N.lua.
 */
export function remove(part: Part, uses: Uses, at: number, permits: number): Uses {
  let place = newestPlace(uses)
  while (place >= part.first && timeAt(uses, place) > at) place -= 2
  const made = usedFrom(uses, place) - usedFrom(uses, place + 2)
  const isFound = timeAt(uses, place) === at || place === newestPlace(uses)
  if (place < part.first || !isFound || made < permits) return uses
  const later = uses
    .slice(place + 2)
    .map((number, index) => number - (index % 2 === 0 ? permits : 0))
  return uses.slice(0, made > permits ? place + 2 : place).concat(later)
}
