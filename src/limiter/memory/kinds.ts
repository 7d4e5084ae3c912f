/**
 * The kinds of rules: what a part of a rule answers to permits, from what it knows of a subject. The same
 * functions by the same names as in lua/acquire-N.lua, which decides where the state is in Redis; there a
 * value is a string, here a list of numbers: the time of a use and how many uses it stands for, oldest
 * first; in front of a lockout's uses the end of its last lock and how many locks came in a row.
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
  return waitMs * 1_024 + 1_023 - window.index
}
export const waitMsOf = (hold: number) => Math.floor(hold / 1_024)
export const windowIndexOf = (hold: number) => 1_023 - (hold % 1_024)

const timeAt = (uses: Uses, place: number) => uses[place] ?? 0
const countAt = (uses: Uses, place: number) => uses[place + 1] ?? 0

/** The time of the newest use; 0 if there is none. */
function newest(part: Part, uses: Uses): number {
  return uses.length > part.first ? timeAt(uses, uses.length - 2) : 0
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
 * Each use comes back a window after it was made. From the newest on, uses are counted until they and the
 * permits are more than the limit: that one must leave the window first. The lowest limit comes first.
 */
function sliding(part: Part, uses: Uses, permits: number, now: number): Look {
  const roundedNow = Math.ceil(now / part.granuleMs) * part.granuleMs
  let hold = 0
  let used = permits
  let time = roundedNow
  let place = uses.length - 2
  for (const window of part.windows) {
    while (used <= window.limit && place >= part.first) {
      time = timeAt(uses, place)
      used += countAt(uses, place)
      place -= 2
    }
    if (used <= window.limit) break
    const waitMs = time + window.windowMs - now
    if (waitMs > 0) hold = Math.max(hold, holdOf(waitMs, window))
  }
  if (hold > 0) return { hold, uses: undefined, at: 0 }
  return { hold, uses, at: Math.max(roundedNow, newest(part, uses)) }
}

/** All uses come back together, a window after the first of them. Of a calendar, when its cron expression fires. */
function fixed(part: Part, uses: Uses, permits: number, now: number): Look {
  const [window] = part.windows
  const isOver = leavesAt(part, window, newest(part, uses), now) <= now
  const at = isOver ? now : newest(part, uses)
  const used = isOver ? 0 : countAt(uses, uses.length - 2)
  if (used + permits <= window.limit) return { hold: 0, uses: [at, used], at }
  return { hold: holdOf(leavesAt(part, window, at, now) - now, window), uses: undefined, at }
}

function lockMs({ lockMs, growth, maxLockMs }: Lock, locks: number): number {
  return Math.min(Math.floor(lockMs * growth ** (locks - 1)), maxLockMs)
}

/** As sliding, but the try that does not fit begins a lock, and the tries before it are forgotten. */
function lockout(part: Part, lock: Lock, uses: Uses, permits: number, now: number): Look {
  const [window] = part.windows
  let endsAt = timeAt(uses, 0)
  let locks = countAt(uses, 0)
  const lockedMs = lockedForMs(part, uses, now)
  if (lockedMs > 0) return { hold: holdOf(lockedMs, window), uses: undefined, at: now }
  if (endsAt > now || lock.growth === 1 || now - endsAt >= lockMs(lock, locks)) {
    endsAt = 0
    locks = 0
  }
  const { hold, at } = sliding(part, uses, permits, now)
  if (hold === 0) return { hold, uses: [endsAt, locks].concat(uses.slice(part.first)), at }
  const ms = lockMs(lock, locks + 1)
  return { hold: holdOf(ms, window), uses: [now + ms, locks + 1], at: now }
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
  if (uses.length === part.first) return uses.concat([at, permits])
  if (newest(part, uses) === at) {
    uses.splice(-1, 1, countAt(uses, uses.length - 2) + permits)
    return uses
  }
  let oldest = part.first
  while (oldest < uses.length && timeAt(uses, oldest) + part.longestMs <= now) oldest += 2
  if (oldest > part.first) uses.splice(part.first, oldest - part.first)
  uses.push(at, permits)
  return uses
}

// What callers are told, over Redis too, is told from values by these alone.

/** How long a lockout goes on to hold its lock. */
export function lockedForMs(part: Part, uses: Uses, now: number): number {
  if (!part.rule.lock) return 0
  const endsAt = timeAt(uses, 0)
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
  const startsAt = part.calendar?.periodAt(now).startsAt ?? 0
  let used = 0
  for (let place = uses.length - 2; place >= part.first; place -= 2) {
    const at = timeAt(uses, place)
    if (part.calendar ? at < startsAt : at + window.windowMs <= now) break
    used += countAt(uses, place)
  }
  return used
}

/** When the newest use leaves a window; now, if nothing is in it. */
export function freeAt(part: Part, window: PolicyWindow, value: Uses, now: number): number {
  const at = newest(part, trusted(part, value, now))
  return Math.max(now, now + lockedForMs(part, value, now), leavesAt(part, window, at, now))
}

/** Without so many uses of that time, as far as they are still there; see lua/release-N.lua. */
export function remove(part: Part, uses: Uses, at: number, permits: number): Uses {
  for (let place = uses.length - 2; place >= part.first; place -= 2) {
    const rest = countAt(uses, place) - permits
    if (timeAt(uses, place) !== at || rest < 0) continue
    return uses.slice(0, place).concat(rest > 0 ? [at, rest] : [], uses.slice(place + 2))
  }
  return uses
}
