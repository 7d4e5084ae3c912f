/**
 * The kinds of rules, for both engines. A kind decides about permits from the uses of one subject. Each function has
 * the name of its twin in lua/kinds.lua, which decides in Redis.
 */
import type { Part, PolicyWindow } from './policy/compile.ts'
import { type Kind, type Lock, lockMsOf, type Rate } from './policy/terms.ts'
import { newest, newestPlace, roundedUp, timeAt, total, type Uses, usedFrom } from './uses.ts'

/** A window that refuses, and its wait. */
export interface Hold {
  /** Above 0. */
  readonly waitMs: number
  readonly window: PolicyWindow
}

export interface Look {
  /** Undefined if the permits fit. */
  readonly hold: Hold | undefined
  /** If the permits fit: the uses to which they are added. If not: the uses with a new lock, or undefined. */
  readonly uses: Uses | undefined
  /** The time with which the new uses are stored. */
  readonly at: number
}

type Decide = (part: Part, uses: Uses, permits: number, now: number) => Look

/** Returns the longer hold. Of two equal holds, it returns the one whose window is declared first. */
export function longer(one: Hold | undefined, other: Hold | undefined): Hold | undefined {
  if (!one || !other) return one ?? other
  if (one.waitMs === other.waitMs) return one.window.index <= other.window.index ? one : other
  return one.waitMs > other.waitMs ? one : other
}

/** A rule in mode enforce is stronger than one in mode challenge. Of two equal modes, the longer hold is stronger. */
export function stronger(one: Hold | undefined, other: Hold | undefined): Hold | undefined {
  if (!one || !other) return one ?? other
  const isEnforced = ({ window }: Hold) => window.rule.mode === 'enforce'
  if (isEnforced(one) === isEnforced(other)) return longer(one, other)
  return isEnforced(one) ? one : other
}

function holdOf(waitMs: number, window: PolicyWindow): Hold | undefined {
  return waitMs > 0 ? { waitMs, window } : undefined
}

/** The time at which a use leaves a window. */
function leavesAt(part: Part, window: PolicyWindow, at: number, now: number): number {
  if (!part.calendar) return at + window.windowMs
  const { startsAt, endsAt } = part.calendar.periodAt(now)
  return at < startsAt ? now : endsAt
}

/**
 * Each use comes back one window after it was made. The permits fit when enough uses have left, so the hold ends with
 * the newest use that must leave. Each entry of the list has one use or more, and the list has some 128 entries at
 * most. So the search for that use can begin `room` entries from the end. Windows are sorted by their limit: uses that
 * fit below one limit fit below all higher ones.
 */
function sliding(part: Part, uses: Uses, permits: number, now: number): Look {
  const roundedNow = roundedUp(part, now)
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

/** All uses come back together: one window after the first, or at the next firing of a calendar's cron expression. */
function fixed(part: Part, uses: Uses, permits: number, now: number): Look {
  const [window] = part.windows
  const isOver = leavesAt(part, window, newest(part, uses), now) <= now
  const at = isOver ? now : newest(part, uses)
  const used = isOver ? 0 : usedFrom(uses, newestPlace(uses))
  if (used + permits <= window.limit) return { hold: undefined, uses: [0, at, used], at }
  return { hold: holdOf(leavesAt(part, window, at, now) - now, window), uses: undefined, at }
}

/** The time at which this many permits of a bucket are back. */
function backAt(part: Part, since: number, permits: number): number {
  const { refill, everyMs } = part.rule.own as Rate
  return since + Math.ceil((permits * everyMs) / refill)
}

/**
 * The number of missing permits at the last whole `everyMs`, and its time. Both are whole numbers, so no fraction is
 * lost between two checks. A reload may have changed rate and burst, so the number is capped by both.
 */
function refilling(part: Part, uses: Uses, now: number): { since: number; lacks: number } {
  const { refill, everyMs } = part.rule.own as Rate
  const [since = 0, refilled = 0] = uses
  // Both counters start again at 0 after 2^32. After a release, the counted uses can be fewer than the permits that
  // came back.
  const lacks = Math.min((total(uses) - refilled) | 0, part.windows[0].limit + refill)
  if (lacks <= 0 || since > now + part.trustMs || backAt(part, since, lacks) <= now) {
    return { since: now, lacks: 0 }
  }
  const turns = Math.max(0, Math.floor((now - since) / everyMs))
  return { since: since + turns * everyMs, lacks: lacks - turns * refill }
}

/**
 * Permits come back one by one. All uses since the bucket was last full are stored as one use with the time of the
 * first. They can be released until the bucket is full again.
 */
function bucket(part: Part, uses: Uses, permits: number, now: number): Look {
  const [window] = part.windows
  const { since, lacks } = refilling(part, uses, now)
  const [at, made] = lacks > 0 ? [newest(part, uses), total(uses)] : [now, 0]
  const tooMany = lacks + permits - window.limit
  const hold = tooMany > 0 ? holdOf(backAt(part, since, tooMany) - now, window) : undefined
  return { hold, uses: hold ? undefined : [since, made - lacks, 0, at, made], at }
}

function lockMsLeft(part: Part, [endsAt = 0]: Uses, now: number): number {
  const { maxLockMs } = part.rule.own as Lock
  return endsAt > now && endsAt <= now + part.trustMs + maxLockMs ? endsAt - now : 0
}

/** The value without the tries from before the end of its last lock, which no longer count. */
function sinceLock(part: Part, uses: Uses): Uses {
  const [endsAt = 0, locks = 0] = uses
  let place = part.first
  while (place <= newestPlace(uses) && timeAt(uses, place) < endsAt) place += 2
  return place === part.first ? uses : [endsAt, locks].concat(uses.slice(place))
}

/**
 * Like `sliding`, but the first try above the limit begins a lock. The counted tries stay in the value until the lock
 * ends, so that in Redis a lock can be undone.
 */
function lockout(part: Part, all: Uses, permits: number, now: number): Look {
  const lock = part.rule.own as Lock
  const [window] = part.windows
  let [endsAt = 0, locks = 0] = all
  const lockedMs = lockMsLeft(part, all, now)
  if (lockedMs > 0) return { hold: holdOf(lockedMs, window), uses: undefined, at: now }
  const uses = sinceLock(part, all)
  if (endsAt > now || lock.growth === 1 || now - endsAt >= lockMsOf(lock, locks)) {
    endsAt = 0
    locks = 0
  }
  const { hold, at } = sliding(part, uses, permits, now)
  const tries = uses.slice(part.first)
  if (!hold) return { hold, uses: [endsAt, locks].concat(tries), at }
  const ms = lockMsOf(lock, locks + 1)
  return { hold: holdOf(ms, window), uses: [now + ms, locks + 1].concat(tries), at: now }
}

/** The number of uses in a window. */
function usedInWindow(part: Part, window: PolicyWindow, uses: Uses, now: number): number {
  const startsAt = part.calendar?.periodAt(now).startsAt ?? now - window.windowMs + 1
  let place = newestPlace(uses)
  while (place >= part.first && timeAt(uses, place) >= startsAt) place -= 2
  return usedFrom(uses, place + 2)
}

/** The time at which the newest use leaves a window; `now` if the window is empty. */
function freeInWindow(part: Part, window: PolicyWindow, uses: Uses, now: number): number {
  return Math.max(now, leavesAt(part, window, newest(part, uses), now))
}

/** The functions of a kind. Only `decide` has a twin in Lua. The others report on values, also from Redis. */
interface KindRules {
  /** Decides about permits, and changes nothing. */
  readonly decide: Decide
  /** Decides like `decide`, but begins no lock. For calls that take nothing. */
  readonly ask: Decide
  /** The number of uses in a window. */
  readonly usedIn: (part: Part, window: PolicyWindow, uses: Uses, now: number) => number
  /** The time at which the window is empty and the last lock has ended; `now` if both are the case. */
  readonly freeAt: (part: Part, window: PolicyWindow, uses: Uses, now: number) => number
  readonly beginsLocks: boolean
  /** The remaining time of the last lock; 0 without a lock. */
  readonly lockedForMs: (part: Part, uses: Uses, now: number) => number
}

const byUses = {
  usedIn: usedInWindow,
  freeAt: freeInWindow,
  beginsLocks: false,
  lockedForMs: () => 0,
}

const kinds: Readonly<Record<Kind, KindRules>> = {
  sliding: { decide: sliding, ask: sliding, ...byUses },
  fixed: { decide: fixed, ask: fixed, ...byUses },
  calendar: { decide: fixed, ask: fixed, ...byUses },
  bucket: {
    ...byUses,
    decide: bucket,
    ask: bucket,
    usedIn(part, _, uses, now) {
      const { refill, everyMs } = part.rule.own as Rate
      const { since, lacks } = refilling(part, uses, now)
      return lacks - Math.floor((Math.max(0, now - since) * refill) / everyMs)
    },
    freeAt(part, _, uses, now) {
      const { since, lacks } = refilling(part, uses, now)
      return backAt(part, since, lacks)
    },
  },
  lockout: {
    decide: lockout,
    ask: (part, uses, permits, now) =>
      lockMsLeft(part, uses, now) > 0
        ? lockout(part, uses, permits, now)
        : sliding(part, sinceLock(part, uses), permits, now),
    usedIn: (part, window, uses, now) =>
      lockMsLeft(part, uses, now) > 0
        ? window.limit
        : usedInWindow(part, window, sinceLock(part, uses), now),
    freeAt: (part, window, uses, now) =>
      lockMsLeft(part, uses, now) > 0
        ? now + lockMsLeft(part, uses, now)
        : freeInWindow(part, window, sinceLock(part, uses), now),
    beginsLocks: true,
    lockedForMs: lockMsLeft,
  },
}

export function kindOf({ rule }: Part): KindRules {
  return kinds[rule.kind]
}
