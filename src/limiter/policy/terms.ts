/**
 * The terms of a rule, by kind: raw as people write them, and checked. The exported types don't lead on to those of zod,
 * because the types of the package lead here.
 */
import { Cron } from 'croner'
import * as z from 'zod'
import { duration, durationText, parseDurationMs } from '../../base/durations.ts'

/** A rule has exactly one of these members, which is named after the kind of the rule. */
export interface RawTerms {
  /** `5 per 1h`, or a list of such. */
  readonly sliding?: string | readonly string[] | undefined
  readonly fixed?: string | readonly string[] | undefined
  /** Up to `burst` permits at once; they come back one after the other at `rate`, e.g. `10 per 1m`. */
  readonly bucket?: { readonly rate: string; readonly burst: number } | undefined
  readonly calendar?:
    | { readonly limit: number; readonly cron: string; readonly timezone: string }
    | undefined
  readonly lockout?:
    | {
        readonly limit: number
        readonly window: string
        readonly lock: string
        /** Each further lock is that many times longer, up to `maxLock`. Default 1. */
        readonly growth?: number | undefined
        readonly maxLock?: string | undefined
      }
    | undefined
}

export type Kind = keyof RawTerms

/** At most `limit` uses within it. `window` is its length as the policy spells it; of a bucket, its rate. */
export interface Window {
  readonly limit: number
  readonly window: string
  /** 0 for a calendar rule, whose periods differ in length. Of a bucket, how long all of it takes to come back. */
  readonly windowMs: number
}

/** The first lock's length; each further one is `growth` times longer, up to `maxLockMs`. */
export interface Lock {
  readonly lockMs: number
  readonly growth: number
  readonly maxLockMs: number
}

/** `refill` permits come back to a bucket in every `everyMs`. */
export interface Rate {
  readonly refill: number
  readonly everyMs: number
}

export interface Terms {
  readonly windows: readonly Window[]
  readonly calendar?: { readonly cron: string; readonly timezone: string }
  /** Numbers that the kind needs beside windows. A value of such a rule has a head before its uses. */
  readonly own?: Lock | Rate
}

/** A schema of zod's, as far as it is used here. */
export interface Schema<Output> {
  safeParse(
    raw: unknown,
  ): { success: true; data: Output } | { success: false; error: { issues: readonly object[] } }
}

/** Above it a limit is a typing error, and counts stay far from the end of their four bytes. */
export const maxLimit = 1_000_000_000
/** A lockout keeps every try of its window. */
const maxTries = 100
const dayMs = 86_400_000
/** A wait must stay far from the end of what Lua can pack with its window. */
const maxRefillMs = 3_650 * dayMs

const quota = (example: string, orElse = '', least = 0) =>
  z.string(`expected ${example}${orElse}`).transform((text, context): Window => {
    const [, digits, window = ''] = /^(\d+) per (\S+)$/.exec(text) ?? []
    const limit = Number(digits)
    const windowMs = parseDurationMs(window)
    if (windowMs && limit >= least && limit <= maxLimit) return { limit, window, windowMs }
    context.addIssue(`"${text}" is not ${example}`)
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
  .transform((windows): Terms => ({ windows }))

const windows: Schema<Terms> = {
  safeParse: (raw) => (Array.isArray(raw) ? someWindows : oneWindow).safeParse(raw),
}

const limit = z.number().int().min(0).max(maxLimit)

const rate = quota('a rate such as "10 per 1m"', '', 1)

const bucket = z
  .strictObject({ rate, burst: z.number().int().min(1).max(maxLimit) })
  .transform(({ rate, burst }, context) => {
    const { limit: refill, windowMs: everyMs, window } = rate
    const problem = (message: string) =>
      context.addIssue({ code: 'custom', path: ['burst'], message })
    const windowMs = Math.ceil((burst * everyMs) / refill)
    if (windowMs > maxRefillMs) {
      problem('at this rate a burst would take more than ten years to come back')
    } else if ((burst + refill) * everyMs > Number.MAX_SAFE_INTEGER) {
      problem('too large to be counted exactly: give the rate a shorter duration')
    }
    const windows = [{ limit: burst, window: `${refill} per ${window}`, windowMs }]
    return { windows, own: { refill, everyMs } }
  })

const calendar = z
  .strictObject({
    limit,
    cron: z.string().refine(isCron, 'not a cron expression that fires again'),
    timezone: z.string().refine(isTimezone, 'not a time zone such as Asia/Shanghai'),
  })
  .transform(({ limit, ...calendar }) => {
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
  .transform(({ limit, window, lock: lockMs, growth, maxLock }, context) => {
    const maxLockMs = maxLock ?? (growth > 1 ? Math.max(lockMs, dayMs) : lockMs)
    if (maxLockMs < lockMs) {
      context.addIssue({ code: 'custom', path: ['maxLock'], message: 'maxLock is below lock' })
    }
    const windows = [{ limit, window, windowMs: parseDurationMs(window) ?? 0 }]
    return { windows, own: { lockMs, growth, maxLockMs } }
  })

/** The schema of what stands in a rule under the name of its kind. */
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
