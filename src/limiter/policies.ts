/**
 * Policies as people write them, checked. The raw form is the `policies` part of the policy file;
 * `parsePolicies` either gives them typed or lists every problem with the path to it, so that whoever
 * read the file can show the line. Nothing after this file meets an unchecked policy.
 */
import { Cron } from 'croner'
import { z } from 'zod'
import { parseDurationMs } from '../base/durations.ts'

export type Kind = 'sliding' | 'fixed' | 'calendar' | 'lockout'

/** At most `limit` uses per window. `window` is spelled as in the policy file. */
export interface Quota {
  readonly limit: number
  readonly window: string
  readonly windowMs: number
}

export interface Rule {
  readonly name: string
  readonly kind: Kind
  /** What is counted apart: `{field}` placeholders and plain text between them. */
  readonly key: string
  readonly fields: readonly string[]
  readonly quotas: readonly Quota[]
  readonly calendar?: { readonly cron: string; readonly timezone: string }
  /** The first lock's length; each further one is `growth` times longer, up to `maxLockMs`. */
  readonly lock?: { readonly lockMs: number; readonly growth: number; readonly maxLockMs: number }
  /** What each permit of a call takes from this rule. */
  readonly permits: number
  readonly scope: 'overall' | 'per-client'
  readonly mode: 'enforce' | 'observe'
  readonly message?: string
}

export type Policies = Readonly<Record<string, readonly Rule[]>>

export interface PolicyProblem {
  /** From the policies object down, e.g. `['captcha', 0, 'sliding']`. */
  readonly path: readonly (string | number)[]
  readonly message: string
}

export type ParsedPolicies =
  | { readonly ok: true; readonly policies: Policies }
  | { readonly ok: false; readonly problems: readonly PolicyProblem[] }

/** Above it a limit is a typing error, and counts stay far from the end of their four bytes. */
const maxLimit = 1_000_000_000
/** A lock is written as a cell of 128 uses, which tries must never reach. */
const maxLockoutLimit = 100
const dayMs = 86_400_000

const duration = z.string().transform((text, context) => {
  const durationMs = parseDurationMs(text)
  if (durationMs !== undefined) return { text, durationMs }
  context.addIssue({
    code: 'custom',
    message: `"${text}" is not a duration such as 60s, 5m, 1h or 7d`,
  })
  return z.NEVER
})

function parseQuota(text: string): Quota | undefined {
  const match = /^(\d+) per (\S+)$/.exec(text)
  const windowMs = match && parseDurationMs(match[2] as string)
  if (!match || !windowMs || Number(match[1]) > maxLimit) return undefined
  return { limit: Number(match[1]), window: match[2] as string, windowMs }
}

/** `5 per 1h`, or a list of such. */
const quotas = z
  .union([z.string(), z.array(z.string()).min(1).max(16)], {
    error: 'expected a quota such as "5 per 1h", or a list of them',
  })
  .transform((raw, context): Quota[] => {
    const texts = typeof raw === 'string' ? [raw] : raw
    const parsed = texts.map(parseQuota)
    for (const [index, text] of texts.entries()) {
      if (parsed[index]) continue
      const path = typeof raw === 'string' ? [] : [index]
      context.addIssue({
        code: 'custom',
        path,
        message: `"${text}" is not a quota such as "5 per 1h"`,
      })
    }
    const quotas = parsed.filter((one) => one !== undefined)
    if (new Set(quotas.map((one) => one.windowMs)).size < quotas.length) {
      context.addIssue({ code: 'custom', message: 'two quotas have the same window' })
    }
    return quotas
  })

const limit = z.number().int().min(0)

const calendar = z
  .strictObject({
    limit: limit.max(maxLimit),
    cron: z.string().refine(isCron, { error: 'not a cron expression that fires again' }),
    timezone: z.string().refine(isTimezone, { error: 'not a time zone such as Asia/Shanghai' }),
  })
  .transform(({ limit, cron, timezone }) => ({ limit, calendar: { cron, timezone } }))

const lockout = z
  .strictObject({
    limit: limit.max(maxLockoutLimit),
    window: duration,
    lock: duration,
    growth: z.number().min(1).max(100).default(1),
    maxLock: duration.optional(),
  })
  .transform(({ limit, window, lock, growth, maxLock }, context) => {
    const grownMs = growth > 1 ? Math.max(lock.durationMs, dayMs) : lock.durationMs
    const maxLockMs = maxLock?.durationMs ?? grownMs
    if (maxLockMs < lock.durationMs) {
      context.addIssue({ code: 'custom', path: ['maxLock'], message: 'maxLock is below lock' })
    }
    return {
      quota: { limit, window: window.text, windowMs: window.durationMs },
      lock: { lockMs: lock.durationMs, growth, maxLockMs },
    }
  })

const rule = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z][a-z0-9_-]{0,63}$/i, { error: 'a name is letters, digits, - and _' }),
    key: z.string().min(1).max(500),
    sliding: quotas.optional(),
    fixed: quotas.optional(),
    calendar: calendar.optional(),
    lockout: lockout.optional(),
    permits: z.number().int().min(1).max(maxLimit).default(1),
    scope: z.enum(['overall', 'per-client']).default('overall'),
    mode: z.enum(['enforce', 'observe']).default('enforce'),
    message: z.string().min(1).optional(),
  })
  .transform((raw, context): Rule => {
    const { sliding, fixed, calendar, lockout, name, key, permits, scope, mode, message } = raw
    const problem = (path: string[], text: string) =>
      context.addIssue({ code: 'custom', path, message: text })
    if ([sliding, fixed, calendar, lockout].filter(Boolean).length !== 1) {
      problem([], 'a rule has exactly one of sliding, fixed, calendar and lockout')
    }
    if (/[{}]/.test(key.replaceAll(/\{[a-zA-Z_]\w*\}/g, ''))) {
      problem(['key'], `"${key}" has a brace that is not part of a {field}`)
    }
    const kind = sliding ? 'sliding' : fixed ? 'fixed' : calendar ? 'calendar' : 'lockout'
    const quotas =
      sliding ??
      fixed ??
      (calendar && [{ limit: calendar.limit, window: calendar.calendar.cron, windowMs: 0 }]) ??
      (lockout ? [lockout.quota] : [])
    if (quotas.some((one) => one.limit > 0 && permits > one.limit)) {
      problem(['permits'], 'permits are above a limit, so nothing would ever pass')
    }
    return {
      name,
      kind,
      key,
      fields: [...key.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string),
      quotas,
      permits,
      scope,
      mode,
      ...(calendar ? { calendar: calendar.calendar } : {}),
      ...(lockout ? { lock: lockout.lock } : {}),
      ...(message ? { message } : {}),
    }
  })

/** The schema of the policy file's `policies`; its output is `Policies`. */
export const policiesSchema = z.record(
  z.string().regex(/^[a-z][a-z0-9_-]{0,63}$/i, { error: 'a name is letters, digits, - and _' }),
  z.array(rule).superRefine((rules, context) => {
    const names = rules.map((one) => one?.name)
    names.forEach((name, index) => {
      if (name === undefined || names.indexOf(name) === index) return
      const message = `two rules are named "${name}"`
      context.addIssue({ code: 'custom', path: [index, 'name'], message })
    })
  }),
)

export type RawPolicies = z.input<typeof policiesSchema>

/** Every problem of raw policies; none if they hold. */
export function checkPolicies(raw: unknown): readonly PolicyProblem[] {
  const parsed = parsePolicies(raw)
  return parsed.ok ? [] : parsed.problems
}

export function parsePolicies(raw: unknown): ParsedPolicies {
  const parsed = policiesSchema.safeParse(raw)
  if (parsed.success) return { ok: true, policies: parsed.data }
  const problems = parsed.error.issues.flatMap((issue) => {
    const path = issue.path.map((key) => (typeof key === 'symbol' ? String(key) : key))
    return issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({ path: [...path, key], message: 'unknown key' }))
      : [{ path, message: issue.message }]
  })
  return { ok: false, problems }
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
    new Intl.DateTimeFormat('en', { timeZone: text })
    return true
  } catch {
    return false
  }
}
