/** What policies look like as people write them, and what becomes of them. */
import { Cron } from 'croner'
import * as z from 'zod'
import { duration, durationText, parseDurationMs } from '../../base/durations.ts'
import { isObject } from '../../base/json.ts'
import type { Kind, RawInclude, Rule, Window } from './rule.ts'

/** Above it a limit is a typing error, and counts stay far from the end of their four bytes. */
const maxLimit = 1_000_000_000
/** A lockout keeps every try of its window. */
const maxTries = 100
const dayMs = 86_400_000
/** A wait must stay far from the end of what Lua can pack with its window. */
const maxRefillMs = 3_650 * dayMs

/** One schema is chosen by what stands there, because a union would not tell of a mistake where it is. */
function chosen<Output>(choose: (raw: unknown) => z.ZodType<Output>) {
  return z.unknown().transform((raw, context): Output => {
    const parsed = choose(raw).safeParse(raw)
    if (parsed.success) return parsed.data
    for (const issue of parsed.error.issues) context.addIssue({ ...issue })
    return z.NEVER
  })
}

const quota = (expected: string, example: string, least = 0) =>
  z.string(`expected ${expected}`).transform((text, context): Window => {
    const [, digits, window = ''] = /^(\d+) per (\S+)$/.exec(text) ?? []
    const limit = Number(digits)
    const windowMs = parseDurationMs(window)
    if (windowMs && limit >= least && limit <= maxLimit) return { limit, window, windowMs }
    context.addIssue(`"${text}" is not ${example}`)
    return z.NEVER
  })

const window = quota('a limit such as "5 per 1h", or a list of them', 'a limit such as "5 per 1h"')
const windowList = z
  .array(window)
  .min(1)
  .max(16)
  .refine(
    (list) => new Set(list.map((one) => one?.windowMs)).size === list.length,
    'two limits have the same window',
  )
const windows = chosen((raw) =>
  Array.isArray(raw) ? windowList : window.transform((one) => [one]),
)

const limit = z.number().int().min(0).max(maxLimit)

const rate = quota('a rate such as "10 per 1m"', 'a rate such as "10 per 1m"', 1)

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
    return { windows, rate: { refill, everyMs } }
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
    return { windows, lock: { lockMs, growth, maxLockMs } }
  })

/** The part of a rule that its kind decides. */
type Body = Pick<Rule, 'windows' | 'calendar' | 'lock' | 'rate'>

const windowsOnly = windows.transform((windows): Body => ({ windows }))

const bodies: Readonly<Record<Kind, z.ZodType<Body>>> = {
  sliding: windowsOnly,
  fixed: windowsOnly,
  bucket,
  calendar,
  lockout,
}
const kinds = Object.keys(bodies) as Kind[]
const eitherBody = Object.fromEntries(
  kinds.map((kind) => [kind, bodies[kind].optional()]),
) as Record<Kind, z.ZodOptional<z.ZodType<Body>>>

const name = z.string().regex(/^[a-z][a-z0-9_-]{0,63}$/i, 'a name is letters, digits, - and _')
const field = z.string().regex(/^[a-zA-Z_]\w*$/, 'a number, or the name of a field')

/** One rule, as it is written. */
export const ruleSchema = z
  .strictObject({
    name,
    key: z.string().min(1).max(500),
    ...eitherBody,
    permits: z.union([z.number().int().min(1).max(maxLimit), field]).default(1),
    scope: z.enum(['overall', 'per-client']).default('overall'),
    mode: z.enum(['enforce', 'observe', 'challenge']).default('enforce'),
    refund: z.literal('passed').optional(),
    message: z.string().min(1).optional(),
  })
  .transform((raw, context): RuleOfNoPolicy => {
    const problem = (path: string[], message: string) =>
      context.addIssue({ code: 'custom', path, message })
    const { name, key, permits, scope, mode, refund, message } = raw
    const shared = { name, key, permits, scope, mode, refund, message }
    const given = kinds.filter((kind) => raw[kind])
    if (given.length !== 1) {
      problem([], `a rule has exactly one of ${listOf(kinds)}`)
    }
    const [kind = 'sliding'] = given
    if (/[{}]/.test(shared.key.replaceAll(/\{[a-zA-Z_]\w*\}/g, ''))) {
      problem(['key'], `"${shared.key}" has a brace that is not part of a {field}`)
    }
    const rule: RuleOfNoPolicy = {
      ...shared,
      kind,
      fields: [...shared.key.matchAll(/\{(\w+)\}/g)].map(([braced]) => braced.slice(1, -1)),
      ...(raw[kind] ?? { windows: [] }),
    }
    if (rule.windows.some(({ limit }) => limit > 0 && Number(shared.permits) > limit)) {
      const most = kind === 'bucket' ? 'burst' : 'a limit'
      problem(['permits'], `permits are above ${most}, so nothing would ever pass`)
    }
    return rule
  })

type RuleOfNoPolicy = Omit<Rule, 'policy'>

const include = z.strictObject({ include: name })

const ruleOrInclude = chosen<RuleOfNoPolicy | RawInclude>((raw) =>
  isObject(raw) && 'include' in raw ? include : ruleSchema,
)

/** The schema of the policy file's `policies`; its output is `Policies`. */
export const policiesSchema = z
  .record(name, z.array(ruleOrInclude))
  .transform((declared, context) => {
    const entriesOf = new Map(Object.entries(declared))
    const policies: Record<string, Rule[]> = {}
    /** With those of the policies that it includes; undefined where one of them leads back to itself. */
    function rulesOf(policy: string, within: readonly string[]): Rule[] | undefined {
      if (within.includes(policy)) return undefined
      const found = (entriesOf.get(policy) ?? []).map((entry) => {
        if ('include' in entry) return rulesOf(entry.include, [...within, policy])
        // What has a mistake of its own is not a rule and has no name.
        return 'name' in entry ? [{ ...entry, policy }] : []
      })
      return found.includes(undefined) ? undefined : (found.flat() as Rule[])
    }
    for (const [name, entries] of entriesOf) {
      const names = new Set<string>()
      policies[name] = entries.flatMap((entry, index) => {
        const isInclude = 'include' in entry
        const problem = (message: string) => {
          const path = [name, index, isInclude ? 'include' : 'name']
          context.addIssue({ code: 'custom', path, message })
        }
        if (isInclude && !entriesOf.has(entry.include)) {
          problem(`there is no policy "${entry.include}"`)
        }
        const rules = isInclude
          ? rulesOf(entry.include, [name])
          : 'name' in entry
            ? [{ ...entry, policy: name }]
            : []
        if (!rules) {
          problem(`"${(entry as RawInclude).include}" leads into a circle of includes`)
          return []
        }
        for (const { name } of rules) {
          if (names.has(name)) problem(`two rules are named "${name}"`)
          names.add(name)
        }
        return rules
      })
    }
    return policies
  })

const listOf = (words: readonly string[]) => `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`

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
