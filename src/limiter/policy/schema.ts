/** What policies look like as people write them, and what becomes of them. */
import { Cron } from 'croner'
import * as z from 'zod'
import { duration, durationText, parseDurationMs } from '../../base/durations.ts'
import type { RawInclude, Rule, Window } from './rule.ts'

/** Above it a limit is a typing error, and counts stay far from the end of their four bytes. */
const maxLimit = 1_000_000_000
/** A lockout keeps every try of its window. */
const maxTries = 100
const dayMs = 86_400_000

const window = z.string().transform((text, context): Window => {
  const [, limit, window = ''] = /^(\d+) per (\S+)$/.exec(text) ?? []
  const windowMs = parseDurationMs(window)
  if (windowMs && Number(limit) <= maxLimit) return { limit: Number(limit), window, windowMs }
  context.addIssue(`"${text}" is not a limit such as "5 per 1h"`)
  return z.NEVER
})

const windowList = z
  .array(window)
  .min(1)
  .max(16)
  .refine((list) => new Set(list.map((one) => one?.windowMs)).size === list.length, {
    error: 'two limits have the same window',
  })

const windows = z
  .union([z.string(), z.array(z.string())], {
    error: 'expected a limit such as "5 per 1h", or a list of them',
  })
  .transform((raw, context) => {
    const parsed = windowList.safeParse(typeof raw === 'string' ? [raw] : raw)
    if (parsed.success) return parsed.data
    for (const { path, message } of parsed.error.issues) {
      const at = typeof raw === 'string' ? [] : [...path]
      context.addIssue({ code: 'custom', path: at, message })
    }
    return z.NEVER
  })

const limit = z.number().int().min(0).max(maxLimit)

const calendar = z
  .strictObject({
    limit,
    cron: z.string().refine(isCron, { error: 'not a cron expression that fires again' }),
    timezone: z.string().refine(isTimezone, { error: 'not a time zone such as Asia/Shanghai' }),
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
  .transform(({ limit, window, lock, growth, maxLock }, context) => {
    const maxLockMs = maxLock ?? (growth > 1 ? Math.max(lock, dayMs) : lock)
    if (maxLockMs < lock) {
      context.addIssue({ code: 'custom', path: ['maxLock'], message: 'maxLock is below lock' })
    }
    const windows = [{ limit, window, windowMs: parseDurationMs(window) ?? 0 }]
    return { windows, lock: { lockMs: lock, growth, maxLockMs } }
  })

const name = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,63}$/i, { error: 'a name is letters, digits, - and _' })
const field = z.string().regex(/^[a-zA-Z_]\w*$/, { error: 'a number, or the name of a field' })

/** One rule, as it is written. */
export const ruleSchema = z
  .strictObject({
    name,
    key: z.string().min(1).max(500),
    sliding: windows.optional(),
    fixed: windows.optional(),
    calendar: calendar.optional(),
    lockout: lockout.optional(),
    permits: z.union([z.number().int().min(1).max(maxLimit), field]).default(1),
    scope: z.enum(['overall', 'per-client']).default('overall'),
    mode: z.enum(['enforce', 'observe', 'challenge']).default('enforce'),
    refund: z.literal('passed').optional(),
    message: z.string().min(1).optional(),
  })
  .transform(
    (
      { sliding, fixed, calendar, lockout, refund, message, ...shared },
      context,
    ): RuleOfNoPolicy => {
      const problem = (path: string[], text: string) =>
        context.addIssue({ code: 'custom', path, message: text })
      if ([sliding, fixed, calendar, lockout].filter(Boolean).length !== 1) {
        problem([], 'a rule has exactly one of sliding, fixed, calendar and lockout')
      }
      if (/[{}]/.test(shared.key.replaceAll(/\{[a-zA-Z_]\w*\}/g, ''))) {
        problem(['key'], `"${shared.key}" has a brace that is not part of a {field}`)
      }
      const kind = lockout ? 'lockout' : calendar ? 'calendar' : fixed ? 'fixed' : 'sliding'
      const rule: RuleOfNoPolicy = {
        ...shared,
        kind,
        fields: [...shared.key.matchAll(/\{(\w+)\}/g)].map(([braced]) => braced.slice(1, -1)),
        windows: fixed ?? sliding ?? [],
        ...calendar,
        ...lockout,
        ...(refund ? { refund } : {}),
        ...(message ? { message } : {}),
      }
      if (rule.windows.some(({ limit }) => limit > 0 && Number(shared.permits) > limit)) {
        problem(['permits'], 'permits are above a limit, so nothing would ever pass')
      }
      return rule
    },
  )

type RuleOfNoPolicy = Omit<Rule, 'policy'>

const include = z.strictObject({ include: name })

/** One alternative is chosen by what stands there, so that a mistake in a rule is told as the rule's. */
const ruleOrInclude = z.unknown().transform((raw, context): RuleOfNoPolicy | RawInclude => {
  const isInclude = typeof raw === 'object' && raw !== null && 'include' in raw
  const parsed = (isInclude ? include : ruleSchema).safeParse(raw)
  if (parsed.success) return parsed.data
  for (const issue of parsed.error.issues) context.addIssue({ ...issue })
  return z.NEVER
})

/** The schema of the policy file's `policies`; its output is `Policies`. */
export const policiesSchema = z
  .record(name, z.array(ruleOrInclude))
  .transform((declared, context) => {
    const ownRules = (policy: string): Rule[] =>
      (declared[policy] ?? []).flatMap((one) => ('include' in one ? [] : [{ ...one, policy }]))
    const policies: Record<string, Rule[]> = {}
    for (const [policy, entries] of Object.entries(declared)) {
      const names = new Set<string>()
      policies[policy] = entries.flatMap((entry, index) => {
        const isIncluded = 'include' in entry
        const message = isIncluded && whyNotIncluded(entry.include, declared)
        if (message) context.addIssue({ code: 'custom', path: [policy, index, 'include'], message })
        const rules = isIncluded ? ownRules(entry.include) : [{ ...entry, policy }]
        for (const { name } of rules) {
          const message = `two rules are named "${name}"`
          const path = [policy, index, isIncluded ? 'include' : 'name']
          if (names.has(name)) context.addIssue({ code: 'custom', path, message })
          names.add(name)
        }
        return rules
      })
    }
    return policies
  })

function whyNotIncluded(policy: string, declared: Record<string, object[]>): string | undefined {
  if (!declared[policy]) return `there is no policy "${policy}"`
  return declared[policy].some((one) => 'include' in one)
    ? `"${policy}" includes another policy itself`
    : undefined
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
