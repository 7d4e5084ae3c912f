/**
 * The kinds of rules: the kernel of both engines. A kind decides about permits from the uses of one subject. Each
 * function has the name of its twin in lua/kinds.lua, which decides where the uses lie in Redis.
 */
import type { Part, PolicyWindow } from './policy/compile.ts'
import type { Kind, Lock, Rate } from './policy/terms.ts'
import { newest, newestPlace, timeAt, total, type Uses, usedFrom } from './uses.ts'

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
  const { refill, everyMs } = part.rule.own as Rate
  return since + Math.ceil((permits * everyMs) / refill)
}

/**
 * How many permits a bucket lacked when the latest whole `everyMs` ended, and when that was: whole numbers, so no fraction
 * is lost between two checks. A bucket lacks no more than its rate and burst allow. A reload may have changed them.
 */
function refilling(part: Part, uses: Uses, now: number): { since: number; lacks: number } {
  const { refill, everyMs } = part.rule.own as Rate
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

function lockMsLeft(part: Part, [endsAt = 0]: Uses, now: number): number {
  const { maxLockMs } = part.rule.own as Lock
  return endsAt > now && endsAt <= now + part.trustMs + maxLockMs ? endsAt - now : 0
}

/** As sliding, but the try that does not fit begins a lock, and the tries before it are forgotten. */
function lockout(part: Part, uses: Uses, permits: number, now: number): Look {
  const lock = part.rule.own as Lock
  const [window] = part.windows
  let [endsAt = 0, locks = 0] = uses
  const lockedMs = lockMsLeft(part, uses, now)
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

/** How many uses a window holds. */
function usedInWindow(part: Part, window: PolicyWindow, uses: Uses, now: number): number {
  const startsAt = part.calendar?.periodAt(now).startsAt ?? now - window.windowMs + 1
  let place = newestPlace(uses)
  while (place >= part.first && timeAt(uses, place) >= startsAt) place -= 2
  return usedFrom(uses, place + 2)
}

/** When the newest use leaves a window; now, if nothing is in it. */
function freeInWindow(part: Part, window: PolicyWindow, uses: Uses, now: number): number {
  return Math.max(now, leavesAt(part, window, newest(part, uses), now))
}

/** The decision of a kind, and its reports to callers. The reports have no twins in Lua: values from Redis are read here. */
interface KindRules {
  /** Decides about permits. Changes nothing. */
  readonly decide: Decide
  /** The decision of a question, which begins no lock. */
  readonly ask: Decide
  /** How many uses a window holds. */
  readonly usedIn: (part: Part, window: PolicyWindow, uses: Uses, now: number) => number
  /** When the newest use leaves a window, and the last lock ended; now, if nothing is in it. */
  readonly freeAt: (part: Part, window: PolicyWindow, uses: Uses, now: number) => number
  readonly beginsLocks: boolean
  /** How long the last lock goes on; 0 if there is none. */
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
      (lockMsLeft(part, uses, now) > 0 ? lockout : sliding)(part, uses, permits, now),
    usedIn: (part, window, uses, now) =>
      lockMsLeft(part, uses, now) > 0 ? window.limit : usedInWindow(part, window, uses, now),
    freeAt: (part, window, uses, now) =>
      Math.max(now + lockMsLeft(part, uses, now), freeInWindow(part, window, uses, now)),
    beginsLocks: true,
    lockedForMs: lockMsLeft,
  },
}

export function kindOf({ rule }: Part): KindRules {
  return kinds[rule.kind]
}
