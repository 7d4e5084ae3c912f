/**
 * The terms of a rule, by kind: raw as people write them, and checked. The exported types do not contain types of zod,
 * because users of the package see them.
 */
import { Cron } from 'croner'
import * as z from 'zod'
import {
  duration,
  durationText,
  isTooLong,
  longestDuration,
  parseDurationMs,
} from '../../base/durations.ts'
import type { missingInWords } from '../../base/schema-problems.ts'

/** A rule has exactly one of these members. Its name is the kind of the rule. */
export interface RawTerms {
  /** `5 per 1h`, or a list of such limits. */
  readonly sliding?: string | readonly string[] | undefined
  readonly fixed?: string | readonly string[] | undefined
  /** At most `burst` permits at once. They come back one by one at `rate`, e.g. `10 per 1m`. */
  readonly bucket?: { readonly rate: string; readonly burst: number } | undefined
  readonly calendar?:
    | { readonly limit: number; readonly cron: string; readonly timezone: string }
    | undefined
  readonly lockout?:
    | {
        readonly limit: number
        readonly window: string
        readonly lock: string
        /** The factor from one lock to the next, up to `maxLock`. Default 1. */
        readonly growth?: number | undefined
        readonly maxLock?: string | undefined
      }
    | undefined
}

export type Kind = keyof RawTerms

/** At most `limit` uses within the window. `window` is its length as written; for a bucket, its rate. */
export interface Window {
  readonly limit: number
  readonly window: string
  /** 0 for a calendar rule, because its periods differ in length. For a bucket, the time until an empty one is full. */
  readonly windowMs: number
}

/** The length of the first lock, and the factor from one lock to the next, up to `maxLockMs`. */
export interface Lock {
  readonly lockMs: number
  readonly growth: number
  readonly maxLockMs: number
}

/** The length of the nth lock in a row. */
export function lockMsOf({ lockMs, growth, maxLockMs }: Lock, nth: number): number {
  return Math.min(Math.floor(lockMs * growth ** (nth - 1)), maxLockMs)
}

/** Every `everyMs`, `refill` permits come back to a bucket. */
export interface Rate {
  readonly refill: number
  readonly everyMs: number
}

export interface Terms {
  readonly windows: readonly [Window, ...Window[]]
  readonly calendar?: { readonly cron: string; readonly timezone: string }
  /** Additional numbers of a lockout or a bucket. In a stored value, two numbers then stand before the uses. */
  readonly own?: Lock | Rate
}

/** The part of zod's schema type that is used here. */
export interface Schema<Output> {
  safeParse(
    raw: unknown,
    words?: typeof missingInWords,
  ): { success: true; data: Output } | { success: false; error: { issues: readonly object[] } }
}

/** A higher limit is a typing error. Counts also must fit in four bytes. */
export const maxLimit = 1_000_000_000
/** A lockout stores every try in its window. */
const maxTries = 100
const dayMs = 86_400_000
/** The wait and its window are packed into one number in Lua, and must not exceed its range. */
const maxRefillMs = 3_650 * dayMs

const quota = (example: string, orElse = '', least = 0) =>
  z.string(`expected ${example}${orElse}`).transform((text, context): Window => {
    const [, digits, window = ''] = /^(\d+) per (\S+)$/.exec(text) ?? []
    const limit = Number(digits)
    const windowMs = parseDurationMs(window)
    if (windowMs && limit >= least && limit <= maxLimit) return { limit, window, windowMs }
    const isAbove = limit > maxLimit || isTooLong(window)
    const problem = isAbove ? `above ${maxLimit} per ${longestDuration}` : `not ${example}`
    context.addIssue(`"${text}" is ${problem}`)
    return z.NEVER
  })

const window = quota('a limit such as "5 per 1h"', ', or a list of them')
const oneWindow = window.transform((one): Terms => ({ windows: [one] }))
const someWindows = z
  .array(window)
  .min(1)
  .max(16)
  .refine(
    (list) => new Set(list.map((one) => one?.windowMs)).size === list.length,
    'two limits have the same window',
  )
  .transform((windows): Terms => ({ windows: windows as [Window, ...Window[]] }))

const windows: Schema<Terms> = {
  safeParse: (raw) => (Array.isArray(raw) ? someWindows : oneWindow).safeParse(raw),
}

const limit = z.number().int().min(0).max(maxLimit)

const rate = quota('a rate such as "10 per 1m"', '', 1)

const bucket = z
  .strictObject({ rate, burst: z.number().int().min(1).max(maxLimit) })
  .transform(({ rate, burst }, context): Terms => {
    const { limit: refill, windowMs: everyMs, window } = rate
    const problem = (message: string) =>
      context.addIssue({ code: 'custom', path: ['burst'], message })
    const windowMs = Math.ceil((burst * everyMs) / refill)
    if (windowMs > maxRefillMs) {
      problem('at this rate a burst would take more than ten years to come back')
    } else if ((burst + refill) * everyMs > Number.MAX_SAFE_INTEGER) {
      problem('too large to be counted exactly: give the rate a shorter duration')
    }
    const whole = { limit: burst, window: `${refill} per ${window}`, windowMs }
    return { windows: [whole], own: { refill, everyMs } }
  })

const calendar = z
  .strictObject({
    limit,
    cron: z.string().refine(isCron, 'must be a cron expression that fires again'),
    timezone: z.string().refine(isTimezone, 'must be a time zone such as Asia/Shanghai'),
  })
  .transform(({ limit, ...calendar }): Terms => {
    return { calendar, windows: [{ limit, window: calendar.cron, windowMs: 0 }] }
  })

const lockout = z
  .strictObject({
    limit: limit.max(maxTries),
    window: durationText,
    lock: duration,
    growth: z.number().min(1).max(100).default(1),
    maxLock: duration.optional(),
  })
  .transform(({ limit, window, lock: lockMs, growth, maxLock }, context): Terms => {
    const maxLockMs = maxLock ?? (growth > 1 ? Math.max(lockMs, dayMs) : lockMs)
    if (maxLockMs < lockMs) {
      context.addIssue({ code: 'custom', path: ['maxLock'], message: 'maxLock is below lock' })
    }
    const tries = { limit, window, windowMs: parseDurationMs(window) ?? 0 }
    return { windows: [tries], own: { lockMs, growth, maxLockMs } }
  })

/** The schema for each kind's member of a rule. */
export const terms: Readonly<Record<Kind, Schema<Terms>>> = {
  sliding: windows,
  fixed: windows,
  bucket,
  calendar,
  lockout,
}

function isCron(text: string): boolean {
  try {
    return new Cron(text, { paused: true }).nextRun() !== null
  } catch {
    return false
  }
}

function isTimezone(text: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: text }))
  } catch {
    return false
  }
}
