/**
 * The kinds of rules: the kernel of both engines. A kind decides about permits from the uses of one subject. Each
 * function has the name of its twin in lua/acquire-N.lua, which decides where the uses lie in Redis. There a value
 * is a string; here it is a list of the same numbers:
 *
 *   of a lockout only: the end of its last lock, and how many locks came in a row
 *   of a bucket only: since when permits come back, and how many of the uses had come back then
 *   how many uses were made before the oldest one that is kept
 *   of every use, oldest first: its time, and how many uses were made up to it
 */
import type { Part, PolicyWindow } from './policy/compile.ts'
import type { Kind, Lock, Rate } from './policy/rule.ts'

export type Uses = number[]

/** The window that refuses, and for how long. */
export interface Hold {
  /** Above 0. */
  readonly waitMs: number
  readonly window: PolicyWindow
}

export interface Look {
  /** Undefined: the permits fit. */
  readonly hold: Hold | undefined
  /** If the permits fit, the uses to add them to. On a refusal, the uses that begin a lock. */
  readonly uses: Uses | undefined
  /** The time that the permits get. */
  readonly at: number
}

type Decide = (part: Part, uses: Uses, permits: number, now: number) => Look

/** The longer hold; of equal ones that of the window declared first. */
export function longer(one: Hold | undefined, other: Hold | undefined): Hold | undefined {
  if (!one || !other) return one ?? other
  if (one.waitMs === other.waitMs) return one.window.index <= other.window.index ? one : other
  return one.waitMs > other.waitMs ? one : other
}

function holdOf(waitMs: number, window: PolicyWindow): Hold | undefined {
  return waitMs > 0 ? { waitMs, window } : undefined
}

const total = (uses: Uses) => uses[uses.length - 1] ?? 0
const timeAt = (uses: Uses, place: number) => uses[place + 1] ?? 0
/** How many uses there are from the one at a place on. */
const usedFrom = (uses: Uses, place: number) => total(uses) - (uses[place] ?? 0)

/** The place of the newest use, if there is one. */
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
 * Each use comes back a window after it was made. The newest use that is too many beside the permits must leave
 * the window first. The search begins where that use stands if every use is one permit, because none is less. A
 * list has some 128 uses at most. The lowest limit comes first: where all uses fit, they fit below a higher one.
 */
function sliding(part: Part, uses: Uses, permits: number, now: number): Look {
  const roundedNow = Math.ceil(now / part.granuleMs) * part.granuleMs
  const count = (uses.length - 1 - part.first) / 2
  let hold: Hold | undefined
  for (const window of part.windows) {
    const room = window.limit - permits
    if (usedFrom(uses, part.first) <= room) break
    let tooMany = Math.max(1, count - room)
    while (tooMany < count && usedFrom(uses, part.first + tooMany * 2) > room) tooMany++
    const at = room < 0 ? roundedNow : timeAt(uses, part.first + (tooMany - 1) * 2)
    hold = longer(hold, holdOf(at + window.windowMs - now, window))
  }
  if (hold) return { hold, uses: undefined, at: 0 }
  return { hold, uses, at: Math.max(roundedNow, newest(part, uses)) }
}

/** All uses come back together, a window after the first of them. Of a calendar, when its cron expression fires. */
function fixed(part: Part, uses: Uses, permits: number, now: number): Look {
  const [window] = part.windows
  const isOver = leavesAt(part, window, newest(part, uses), now) <= now
  const at = isOver ? now : newest(part, uses)
  const used = isOver ? 0 : usedFrom(uses, newestPlace(uses))
  if (used + permits <= window.limit) return { hold: undefined, uses: [0, at, used], at }
  return { hold: holdOf(leavesAt(part, window, at, now) - now, window), uses: undefined, at }
}

/** When so many permits of a bucket are back. */
function backAt(part: Part, since: number, permits: number): number {
  const { refill, everyMs } = part.rule.rate as Rate
  return since + Math.ceil((permits * everyMs) / refill)
}

/**
 * How many permits a bucket lacked when the latest whole `everyMs` ended, and when that was: whole numbers, so no fraction
 * is lost between two checks. A bucket lacks no more than its rate and burst allow. A reload may have changed them.
 */
function refilling(part: Part, uses: Uses, now: number): { since: number; lacks: number } {
  const { refill, everyMs } = part.rule.rate as Rate
  const [since = 0, refilled = 0] = uses
  // Both numbers go on from 0 after 2^32, and what was given back may leave fewer uses than came back.
  const lacks = Math.min((total(uses) - refilled) | 0, part.windows[0].limit + refill)
  if (lacks <= 0 || since > now + part.trustMs || backAt(part, since, lacks) <= now) {
    return { since: now, lacks: 0 }
  }
  const turns = Math.max(0, Math.floor((now - since) / everyMs))
  return { since: since + turns * everyMs, lacks: lacks - turns * refill }
}

/**
 * Permits come back one after the other. All uses since the bucket was full are one use, with the time of the first of
 * them. So they can be given back until the bucket is full again.
 */
function bucket(part: Part, uses: Uses, permits: number, now: number): Look {
  const [window] = part.windows
  const { since, lacks } = refilling(part, uses, now)
  const [at, made] = lacks > 0 ? [newest(part, uses), total(uses)] : [now, 0]
  const tooMany = lacks + permits - window.limit
  const hold = tooMany > 0 ? holdOf(backAt(part, since, tooMany) - now, window) : undefined
  return { hold, uses: hold ? undefined : [since, made - lacks, 0, at, made], at }
}

function lockMs({ lockMs, growth, maxLockMs }: Lock, locks: number): number {
  return Math.min(Math.floor(lockMs * growth ** (locks - 1)), maxLockMs)
}

/** As sliding, but the try that does not fit begins a lock, and the tries before it are forgotten. */
function lockout(part: Part, uses: Uses, permits: number, now: number): Look {
  const lock = part.rule.lock as Lock
  const [window] = part.windows
  let [endsAt = 0, locks = 0] = uses
  const lockedMs = lockedForMs(part, uses, now)
  if (lockedMs > 0) return { hold: holdOf(lockedMs, window), uses: undefined, at: now }
  if (endsAt > now || lock.growth === 1 || now - endsAt >= lockMs(lock, locks)) {
    endsAt = 0
    locks = 0
  }
  const { hold, at } = sliding(part, uses, permits, now)
  if (!hold) return { hold, uses: [endsAt, locks].concat(uses.slice(part.first)), at }
  const ms = lockMs(lock, locks + 1)
  return { hold: holdOf(ms, window), uses: [now + ms, locks + 1, 0], at: now }
}

const kinds: Readonly<Record<Kind, Decide>> = { sliding, fixed, bucket, calendar: fixed, lockout }

/** What a part answers to permits; changes nothing. */
export function decide(part: Part, value: Uses, permits: number, now: number): Look {
  return kinds[part.rule.kind](part, trusted(part, value, now), permits, now)
}

/**
 * The uses with the permits as the newest, and without those that have left every window. The list is changed in
 * place, because copies of thousands of lists would become old garbage. All subjects share `part.empty`, so that
 * one is copied.
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

// The functions from here on report to callers. Redis has no twins of them: its values are read and judged here.

/** How long a lockout goes on to hold its lock. */
export function lockedForMs(part: Part, uses: Uses, now: number): number {
  if (!part.rule.lock) return 0
  const [endsAt = 0] = uses
  return endsAt > now && endsAt <= now + part.trustMs ? endsAt - now : 0
}

/** The hold if permits were asked for now. A question begins no lock. */
export function holdFor(part: Part, uses: Uses, permits: number, now: number): Hold | undefined {
  const isUnlocked = part.rule.lock && lockedForMs(part, uses, now) === 0
  return (isUnlocked ? sliding : decide)(part, uses, permits, now).hold
}

/** How many uses a window holds. */
export function usedIn(part: Part, window: PolicyWindow, value: Uses, now: number): number {
  if (lockedForMs(part, value, now) > 0) return window.limit
  const uses = trusted(part, value, now)
  if (part.rule.rate) {
    const { refill, everyMs } = part.rule.rate
    const { since, lacks } = refilling(part, uses, now)
    return lacks - Math.floor((Math.max(0, now - since) * refill) / everyMs)
  }
  const startsAt = part.calendar?.periodAt(now).startsAt ?? now - window.windowMs + 1
  let place = newestPlace(uses)
  while (place >= part.first && timeAt(uses, place) >= startsAt) place -= 2
  return usedFrom(uses, place + 2)
}

/** When the newest use leaves a window; now, if nothing is in it. */
export function freeAt(part: Part, window: PolicyWindow, value: Uses, now: number): number {
  const uses = trusted(part, value, now)
  if (part.rule.rate) {
    const { since, lacks } = refilling(part, uses, now)
    return backAt(part, since, lacks)
  }
  const at = newest(part, uses)
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
