/**
 * The meaning of the limiter in the plainest form: every admitted use is kept for ever, and each question is answered
 * from all of them. It shares only the parsed policies with the engines.
 */
import { Cron } from 'croner'
import type { Rule } from '../../src/limiter/policy/rule.ts'
import type { Lock as LockTerms, Rate, Window } from '../../src/limiter/policy/terms.ts'

interface Use {
  at: number
  permits: number
  requestId: string | undefined
}

/** Permits that were taken from a bucket. A negative number was given back to it. */
interface Pour {
  at: number
  permits: number
  requestId?: string | undefined
}

interface Lock {
  beganAt: number
  endsAt: number
  earlier: number
}

export type Verdict =
  | { admitted: true; left: number[]; nextInMs: number; observed: string[] }
  | (Held & { admitted: false; challenge: boolean; newLock?: Held | undefined })

interface Held {
  rule: string
  window: string
  retryAfterMs: number
}

const exactLimit = 128

export function createReference(rules: readonly Rule[]) {
  /** Keyed by window, because a window that starts with its first use forgets independently. */
  const uses = new Map(rules.flatMap((rule) => rule.windows.map((window) => [window, [] as Use[]])))
  const usesOf = (window: Window) => uses.get(window) as Use[]
  const locks = rules.map((): Lock[] => [])
  const pours = rules.map((): Pour[] => [])
  const crons = rules.map((rule) =>
    rule.calendar
      ? new Cron(rule.calendar.cron, { timezone: rule.calendar.timezone, paused: true })
      : undefined,
  )
  const requests = new Set<string>()

  const periodEnds = new Map<string, number>()
  function endOfPeriod(index: number, at: number): number {
    const key = `${index} ${at}`
    let endsAt = periodEnds.get(key)
    if (endsAt === undefined) {
      endsAt = (crons[index] as Cron).nextRun(new Date(at))?.getTime() ?? 0
      periodEnds.set(key, endsAt)
    }
    return endsAt
  }

  /** The time at which a use stops counting in a window. */
  function leavesAt(rule: Rule, index: number, window: Window, use: Use): number {
    if (rule.kind === 'calendar') return endOfPeriod(index, use.at)
    if (rule.kind === 'fixed') {
      let start = Number.NEGATIVE_INFINITY
      for (const { at } of [...usesOf(window), use]) {
        if (at <= use.at && at >= start + window.windowMs) start = at
      }
      return start + window.windowMs
    }
    if (rule.kind === 'lockout' || window.limit <= exactLimit) return use.at + window.windowMs
    const granule = Math.ceil(window.windowMs / 128)
    return Math.ceil(use.at / granule) * granule + window.windowMs
  }

  /** The permits that a bucket lacks at the end, times `everyMs`, and the use since which it was never full. */
  function bucketAt(index: number, now: number) {
    const { refill = 0, everyMs = 0 } = (rules[index]?.own ?? {}) as Partial<Rate>
    let [lack, at, first] = [0n, 0, 0]
    const all = [...(pours[index] ?? []), { at: now, permits: 0 }]
    for (const [place, pour] of all.entries()) {
      lack -= BigInt(refill) * BigInt(pour.at - at)
      if (lack <= 0n) [lack, first] = [0n, place]
      lack += BigInt(everyMs) * BigInt(pour.permits)
      at = pour.at
    }
    return { lack, first, refill, everyMs }
  }

  /** After `mine` more permits are taken: every missing permit, by the time at which it is back. */
  function lackingIn(index: number, now: number, mine: number) {
    const { lack, refill, everyMs } = bucketAt(index, now)
    const [every, drops] = [BigInt(everyMs), BigInt(refill)]
    const all = lack + BigInt(mine) * every
    const many = (all + every - 1n) / every
    return Array.from({ length: Number(many) }, (_, place) => {
      const left = (many - 1n - BigInt(place)) * every
      return { leaves: now + Number((all - left + drops - 1n) / drops), permits: 1 }
    })
  }

  /** Uses that count now, by the time at which they stop counting. */
  function counted(rule: Rule, index: number, window: Window, now: number) {
    if (rule.kind === 'bucket') return lackingIn(index, now, 0)
    const lock = locks[index]?.at(-1)
    return usesOf(window)
      .filter((use) => !lock || use.at >= lock.endsAt)
      .map((use) => ({ leaves: leavesAt(rule, index, window, use), permits: use.permits }))
      .filter(({ leaves }) => leaves > now)
  }

  /** Milliseconds until `permits` fit beside the current uses and `mine`, which are taken now. */
  function waitFor(
    rule: Rule,
    index: number,
    window: Window,
    now: number,
    counting: { leaves: number; permits: number }[],
    permits: number,
    mine = 0,
  ): number {
    const leavesIfTakenNow = () =>
      leavesAt(rule, index, window, { at: now, permits, requestId: undefined })
    const all = rule.kind === 'bucket' ? lackingIn(index, now, mine) : [...counting]
    if (mine > 0 && rule.kind !== 'bucket') all.push({ leaves: leavesIfTakenNow(), permits: mine })
    let used = all.reduce((sum, one) => sum + one.permits, 0)
    if (used + permits <= window.limit) return 0
    for (const { leaves, permits: freed } of all.sort((a, b) => a.leaves - b.leaves)) {
      used -= freed
      if (used + permits <= window.limit) return leaves - now
    }
    return leavesIfTakenNow() - now
  }

  return {
    acquire(now: number, permits: number, requestId?: string, isSolved = false): Verdict {
      const left: number[] = []
      const observed: string[] = []
      let refusal: Extract<Verdict, { admitted: false }> | undefined
      let newLock: Held | undefined
      let nextInMs = 0
      const isSeen = requestId !== undefined && requests.has(requestId)
      const taking: number[] = []
      for (const [index, rule] of rules.entries()) {
        const asked = permits * Number(rule.permits)
        const lock = locks[index]?.at(-1)
        const lockedMs = lock ? lock.endsAt - now : 0
        let held: { window: string; waitMs: number } | undefined
        // Large windows of a sliding rule are checked after the exact ones.
        const isLarge = (one: Window) => rule.kind === 'sliding' && one.limit > exactLimit
        const windows = [
          ...rule.windows.filter((one) => !isLarge(one)),
          ...rule.windows.filter(isLarge),
        ]
        for (const window of windows) {
          const counting = counted(rule, index, window, now)
          const used = counting.reduce((sum, one) => sum + one.permits, 0)
          let waitMs = lockedMs > 0 ? lockedMs : waitFor(rule, index, window, now, counting, asked)
          if (waitMs > 0 && rule.kind === 'lockout' && lockedMs <= 0 && !isSeen) {
            const config = rule.own as LockTerms
            const length = (earlier: number) =>
              Math.min(Math.floor(config.lockMs * config.growth ** earlier), config.maxLockMs)
            const isRemembered =
              lock && config.growth > 1 && now < lock.endsAt + length(lock.earlier)
            const earlier = isRemembered ? lock.earlier + 1 : 0
            waitMs = length(earlier)
            locks[index]?.push({ beganAt: now, endsAt: now + waitMs, earlier })
            const isPassed = rule.mode === 'observe' || (rule.mode === 'challenge' && isSolved)
            if (!isPassed && waitMs > (newLock?.retryAfterMs ?? 0)) {
              newLock = { rule: rule.name, window: window.window, retryAfterMs: waitMs }
            }
          }
          const isRefused = waitMs > 0
          const taken = isSeen ? 0 : asked
          const isFull = lockedMs > 0 || (isRefused && !isSeen)
          left.push(isFull ? 0 : Math.max(0, window.limit - used - taken))
          if (isRefused && (!held || waitMs > held.waitMs)) held = { window: window.window, waitMs }
          if (rule.mode === 'enforce') {
            const again = isSeen
              ? waitMs
              : waitFor(rule, index, window, now, counting, asked, asked)
            nextInMs = Math.max(nextInMs, again)
          }
        }
        if (!held) taking.push(index)
        else if (rule.mode === 'observe') observed.push(rule.name)
        else if (rule.mode === 'challenge' && isSolved) continue
        else {
          // Rules that refuse even solved challenges come before rules that only demand one.
          const challenge = rule.mode === 'challenge'
          const isLonger = held.waitMs > (refusal?.retryAfterMs ?? 0)
          if (refusal ? (refusal.challenge === challenge ? isLonger : refusal.challenge) : true) {
            const { window, waitMs: retryAfterMs } = held
            refusal = { admitted: false, rule: rule.name, window, retryAfterMs, challenge }
          }
        }
      }
      if (isSeen) return { admitted: true, left, nextInMs, observed: [] }
      if (refusal) return { ...refusal, newLock }
      for (const index of taking) {
        const { permits: weight, windows } = rules[index] as Rule
        const use = { at: now, permits: permits * Number(weight), requestId }
        pours[index]?.push(use)
        for (const window of windows) usesOf(window).push({ ...use })
      }
      if (requestId !== undefined) requests.add(requestId)
      return { admitted: true, left, nextInMs, observed }
    },

    release(requestId: string, now: number): boolean {
      if (!requests.delete(requestId)) return false
      for (const [index, rule] of rules.entries()) {
        if (rule.kind === 'bucket') {
          const list = pours[index] ?? []
          const place = list.findIndex((one) => one.requestId === requestId)
          const pour = list[place]
          if (!pour || place < bucketAt(index, now).first) continue
          pour.requestId = undefined
          list.push({ at: now, permits: -pour.permits })
          continue
        }
        for (const window of rule.windows) {
          const list = usesOf(window)
          const use = list.find((one) => one.requestId === requestId)
          if (!use) continue
          // The window of a fixed rule lasts while anything in it is used.
          const ends = leavesAt(rule, index, window, use)
          use.permits = 0
          use.requestId = undefined
          const together =
            rule.kind === 'fixed'
              ? list.filter((one) => leavesAt(rule, index, window, one) === ends)
              : [use]
          if (together.every((one) => one.permits === 0)) {
            uses.set(
              window,
              list.filter((one) => !together.includes(one)),
            )
          }
        }
      }
      return true
    },

    reset(): void {
      for (const list of uses.values()) list.length = 0
      for (const list of locks) list.length = 0
      for (const list of pours) list.length = 0
    },
  }
}
