/**
 * The kinds of rules: what a part of a rule answers to permits, from what it knows of a subject. The same
 * functions by the same names as in lua/acquire-N.lua, which decides where the state is in Redis; there a
 * value is a string, here a list of the same numbers: of a lockout the end of its last lock and how many
 * locks came in a row; then how many uses were made before the oldest that is kept; and of every use, oldest
 * first, when it was and how many were made up to it.
 */
import type { Part, PolicyWindow } from '../policy/compile.ts'
import type { Lock } from '../policy/rule.ts'

export type Uses = number[]

export interface Look {
  /** 0: the permits fit. */
  readonly hold: number
  /** What to add the permits to, if they fit; on a refusal only what begins a lock. */
  readonly uses: Uses | undefined
  /** The time that the permits get. */
  readonly at: number
}

/**
 * A wait and the window that asks for it as one number: the greatest is the longest wait, and of equal
 * ones that of the first window.
 */
function holdOf(waitMs: number, window: PolicyWindow): number {
  return waitMs > 0 ? waitMs * 1_024 + 1_023 - window.index : 0
}
export const waitMsOf = (hold: number) => Math.floor(hold / 1_024)
export const windowIndexOf = (hold: number) => 1_023 - (hold % 1_024)

const total = (uses: Uses) => uses[uses.length - 1] ?? 0
const timeAt = (uses: Uses, place: number) => uses[place + 1] ?? 0
/** How many uses there are from the one at a place on. */
const usedFrom = (uses: Uses, place: number) => total(uses) - (uses[place] ?? 0)

/** Where the newest use stands, if there is one. */
const newestPlace = (uses: Uses) => uses.length - 3

/** The time of the newest use; 0 if there is none. */
function newest(part: Part, uses: Uses): number {
  return newestPlace(uses) < part.first ? 0 : timeAt(uses, newestPlace(uses))
}

/** Without the uses that a clock far ahead of this one has written. */
function trusted(part: Part, uses: Uses, now: number): Uses {
  let kept = uses
  while (newest(part, kept) > now + part.trustMs) kept = kept.slice(0, -2)
  return kept
}

/** When a use leaves a window. */
function leavesAt(part: Part, window: PolicyWindow, at: number, now: number): number {
  if (!part.calendar) return at + window.windowMs
  const { startsAt, endsAt } = part.calendar.periodAt(now)
  return at < startsAt ? now : endsAt
}

/**
 * Each use comes back a window after it was made. The newest that is too many beside the permits must leave
 * the window first: looked for from where it stands if every use is one permit, because none is less. A list
 * has some 128 uses at most. The lowest limit comes first: where all uses fit, they fit below a higher one.
 */
function sliding(part: Part, uses: Uses, permits: number, now: number): Look {
  const roundedNow = Math.ceil(now / part.granuleMs) * part.granuleMs
  const count = (uses.length - 1 - part.first) / 2
  let hold = 0
  for (const window of part.windows) {
    const room = window.limit - permits
    if (usedFrom(uses, part.first) <= room) break
    let tooMany = Math.max(1, count - room)
    while (tooMany < count && usedFrom(uses, part.first + tooMany * 2) > room) tooMany++
    const at = room < 0 ? roundedNow : timeAt(uses, part.first + (tooMany - 1) * 2)
    hold = Math.max(hold, holdOf(at + window.windowMs - now, window))
  }
  if (hold > 0) return { hold, uses: undefined, at: 0 }
  return { hold, uses, at: Math.max(roundedNow, newest(part, uses)) }
}

/** All uses come back together, a window after the first of them. Of a calendar, when its cron expression fires. */
function fixed(part: Part, uses: Uses, permits: number, now: number): Look {
  const [window] = part.windows
  const isOver = leavesAt(part, window, newest(part, uses), now) <= now
  const at = isOver ? now : newest(part, uses)
  const used = isOver ? 0 : usedFrom(uses, newestPlace(uses))
  if (used + permits <= window.limit) return { hold: 0, uses: [0, at, used], at }
  return { hold: holdOf(leavesAt(part, window, at, now) - now, window), uses: undefined, at }
}

function lockMs({ lockMs, growth, maxLockMs }: Lock, locks: number): number {
  return Math.min(Math.floor(lockMs * growth ** (locks - 1)), maxLockMs)
}

/** As sliding, but the try that does not fit begins a lock, and the tries before it are forgotten. */
function lockout(part: Part, lock: Lock, uses: Uses, permits: number, now: number): Look {
  const [window] = part.windows
  let [endsAt = 0, locks = 0] = uses
  const lockedMs = lockedForMs(part, uses, now)
  if (lockedMs > 0) return { hold: holdOf(lockedMs, window), uses: undefined, at: now }
  if (endsAt > now || lock.growth === 1 || now - endsAt >= lockMs(lock, locks)) {
    endsAt = 0
    locks = 0
  }
  const { hold, at } = sliding(part, uses, permits, now)
  if (hold === 0) return { hold, uses: [endsAt, locks].concat(uses.slice(part.first)), at }
  const ms = lockMs(lock, locks + 1)
  return { hold: holdOf(ms, window), uses: [now + ms, locks + 1, 0], at: now }
}

/** What a part answers to permits; changes nothing. */
export function decide(part: Part, value: Uses, permits: number, now: number): Look {
  const uses = trusted(part, value, now)
  const { kind, lock } = part.rule
  if (lock) return lockout(part, lock, uses, permits, now)
  return (kind === 'sliding' ? sliding : fixed)(part, uses, permits, now)
}

/**
 * The uses with the permits as their newest, and without those that have left every window. They are
 * changed in place, because copies of thousands of lists would be garbage that has grown old; `part.empty`
 * is everybody's.
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

// What callers are told, over Redis too, is told from values by these alone.

/** How long a lockout goes on to hold its lock. */
export function lockedForMs(part: Part, uses: Uses, now: number): number {
  if (!part.rule.lock) return 0
  const [endsAt = 0] = uses
  return endsAt > now && endsAt <= now + part.trustMs ? endsAt - now : 0
}

/** The hold if permits were asked for and nobody tried: a question begins no lock. */
export function holdFor(part: Part, uses: Uses, permits: number, now: number): number {
  const isOpen = part.rule.lock && lockedForMs(part, uses, now) === 0
  return (isOpen ? sliding : decide)(part, uses, permits, now).hold
}

/** How many uses a window holds. */
export function usedIn(part: Part, window: PolicyWindow, value: Uses, now: number): number {
  if (lockedForMs(part, value, now) > 0) return window.limit
  const uses = trusted(part, value, now)
  const startsAt = part.calendar?.periodAt(now).startsAt ?? now - window.windowMs + 1
  let place = newestPlace(uses)
  while (place >= part.first && timeAt(uses, place) >= startsAt) place -= 2
  return usedFrom(uses, place + 2)
}

/** When the newest use leaves a window; now, if nothing is in it. */
export function freeAt(part: Part, window: PolicyWindow, value: Uses, now: number): number {
  const at = newest(part, trusted(part, value, now))
  return Math.max(now, now + lockedForMs(part, value, now), leavesAt(part, window, at, now))
}

/** Without so many uses of that time, as far as they are still there; see lua/release-N.lua. */
export function remove(part: Part, uses: Uses, at: number, permits: number): Uses {
  let place = newestPlace(uses)
  while (place >= part.first && timeAt(uses, place) !== at) place -= 2
  const made = usedFrom(uses, place) - usedFrom(uses, place + 2)
  if (place < part.first || made < permits) return uses
  const later = uses
    .slice(place + 2)
    .map((number, index) => number - (index % 2 === 0 ? permits : 0))
  return uses.slice(0, made > permits ? place + 2 : place).concat(later)
}
