/**
 * Policies compiled for the engines. What a rule knows of a subject is one value, or several where its
 * windows can't share one: then the rule has several parts. The exact windows of a sliding rule share a
 * value; each large one, and each window of a fixed rule, has its own.
 */
import { canonical } from '../../base/canonical.ts'
import { InvalidPermits, InvalidPolicies, MissingField, UnknownPolicy } from '../errors.ts'
import { type Calendar, createCalendar } from './calendar.ts'
import type { Fields, Kind, Lock, Policies, Quota, Rule } from './rule.ts'

/** Sliding windows of at most this many uses are exact to the millisecond. */
const exactLimit = 128
/** Of a larger one the times are rounded up, to so many steps per window: a use comes back late, never early. */
const granulesPerWindow = 128
/** A hold is one number, the wait and the window. */
const maxWindows = 1_024
/** What is further ahead of now, a wrong clock has written. */
const hourMs = 3_600_000

export interface Window extends Quota {
  readonly rule: Rule
  /** Position among all windows of the policy. */
  readonly index: number
}

interface PartBase {
  readonly rule: Rule
  /** Position among the parts of the policy, and of the rule in it. */
  readonly index: number
  readonly ruleIndex: number
  /** Unambiguous, also after a reload: of policy, rule, kind and, where a rule has several parts, window. */
  readonly name: string
  /** Tells the parts of one rule apart, also after a reload: empty, or the window. */
  readonly suffix: string
  /** The lowest limit first. */
  readonly windows: readonly [Window, ...Window[]]
  readonly longestMs: number
  /** Times of uses are multiples of it; 1 where they are exact. */
  readonly granuleMs: number
  readonly trustMs: number
  /** What it knows of a subject that has used nothing, and where the uses begin in that. */
  readonly empty: readonly number[]
  readonly first: 0 | 2
}

export type Part = PartBase &
  (
    | { readonly kind: 'sliding' }
    | { readonly kind: 'fixed' }
    | { readonly kind: 'calendar'; readonly calendar: Calendar }
    | { readonly kind: 'lockout'; readonly lock: Lock }
  )

export interface WindowLimit {
  readonly rule: string
  readonly kind: Kind
  readonly window: string
  readonly limit: number
  /** 0 for a calendar rule, whose periods differ in length. */
  readonly windowMs: number
}

export interface CompiledPolicy {
  readonly name: string
  readonly rules: readonly Rule[]
  readonly parts: readonly Part[]
  /** Every window of every part, as declared; refusals and remainders refer to them by position. */
  readonly windows: readonly Window[]
  readonly windowLimits: readonly WindowLimit[]
  /** More permits can never pass. */
  readonly maxPermits: number
  /** By rule: what it counts apart, as one unambiguous text. Throws `MissingField`. */
  subjectsOf(fields: Fields): string[]
  /** By rule: the permits that so many of a call take from it. Throws `MissingField` and `InvalidPermits`. */
  permitsOf(fields: Fields, permits: number): number[]
}

/**
 * `clientId` keeps the counts of rules with `scope: per-client` apart. Without one each part has its
 * subjects to itself, and their text need not begin with names.
 */
export function compilePolicies(
  policies: Policies,
  clientId?: string,
): Map<string, CompiledPolicy> {
  const entries = Object.entries(policies)
  return new Map(entries.map(([name, rules]) => [name, compilePolicy(name, rules, clientId)]))
}

/** Throws for a policy that does not exist, and for permits that could never pass. */
export function policyOf<P extends CompiledPolicy>(
  policies: ReadonlyMap<string, P>,
  name: string,
  permits = 1,
): P {
  const policy = policies.get(name)
  if (!policy) throw new UnknownPolicy(name)
  checkPermits(permits)
  if (permits > policy.maxPermits) {
    const most = `policy ${name} never has more than ${policy.maxPermits} permits at once`
    throw new InvalidPermits(most)
  }
  return policy
}

function compilePolicy(name: string, rules: readonly Rule[], clientId?: string): CompiledPolicy {
  const parts: Part[] = []
  const windows: Window[] = []
  for (const [ruleIndex, rule] of rules.entries()) {
    for (const shared of partition(rule)) {
      const declared = shared.map((quota, at) => ({ ...quota, rule, index: windows.length + at }))
      windows.push(...declared)
      const [lowest, ...others] = declared.sort((a, b) => a.limit - b.limit)
      if (!lowest) continue
      const isMain = rule.kind === 'sliding' && isExact(lowest)
      const suffix = isMain || rule.quotas.length === 1 ? '' : `:${lowest.windowMs}`
      const partName = canonical([name, rule.name, rule.kind, suffix])
      const place = { index: parts.length, ruleIndex, name: partName, suffix }
      parts.push({ ...kindOf(rule), ...place, ...timesOf(rule, [lowest, ...others]) })
    }
  }
  if (windows.length > maxWindows) {
    throw new InvalidPolicies([{ path: [name], message: `more than ${maxWindows} windows` }])
  }
  const atOnce = windows.map(({ rule, limit }) =>
    rule.mode === 'observe' || limit === 0 || typeof rule.permits === 'string'
      ? Number.POSITIVE_INFINITY
      : Math.floor(limit / rule.permits),
  )
  const seeds = rules.map(({ name: ruleName, kind, scope }) => {
    if (clientId === undefined) return ''
    return canonical([name, ruleName, kind, scope === 'per-client' ? clientId : ''])
  })
  return {
    name,
    rules,
    parts,
    windows,
    windowLimits: windows.map(({ rule, window, limit, windowMs }) => {
      return { rule: rule.name, kind: rule.kind, window, limit, windowMs }
    }),
    maxPermits: Math.min(...atOnce),
    subjectsOf: (fields) =>
      rules.map((rule, index) => {
        const values = rule.fields.map((field) => fieldOf(name, rule, fields, field))
        const seed = seeds[index] ?? ''
        // One value alone is its own text, whose hash the engine of the language already knows.
        return seed === '' && values.length === 1 ? (values[0] ?? '') : seed + canonical(values)
      }),
    permitsOf: (fields, permits) =>
      rules.map((rule) => {
        if (typeof rule.permits === 'number') return permits * rule.permits
        const each = Number(fieldOf(name, rule, fields, rule.permits))
        checkPermits(each)
        return permits * each
      }),
  }
}

/** Inherited members are not fields. */
function fieldOf(policy: string, rule: Rule, fields: Fields, field: string): string {
  const value = fields[field]
  if (typeof value === 'string') return value
  if (typeof value === 'number') return String(value)
  throw new MissingField(policy, rule.name, field)
}

function checkPermits(permits: number): void {
  if (Number.isSafeInteger(permits) && permits > 0) return
  throw new InvalidPermits(`permits must be a whole number above 0, not ${permits}`)
}

const isExact = ({ limit }: Quota) => limit <= exactLimit

/** Which windows of a rule share a value. */
function partition(rule: Rule): Quota[][] {
  if (rule.kind !== 'sliding') return rule.quotas.map((one) => [one])
  const exact = rule.quotas.filter(isExact)
  const large = rule.quotas.filter((one) => !isExact(one)).map((one) => [one])
  return exact.length > 0 ? [exact, ...large] : large
}

function kindOf({ kind, lock, calendar }: Rule) {
  if (lock) return { kind: 'lockout', lock, first: 2, empty: [0, 0] } as const
  const shared = { first: 0, empty: [] } as const
  if (!calendar) return { ...shared, kind: kind === 'fixed' ? 'fixed' : 'sliding' } as const
  const periods = createCalendar(calendar.cron, calendar.timezone)
  return { ...shared, kind: 'calendar', calendar: periods } as const
}

function timesOf(rule: Rule, windows: Part['windows']) {
  const longestMs = Math.max(...windows.map(({ windowMs }) => windowMs))
  const isRounded = rule.kind === 'sliding' && !isExact(windows[0])
  const granuleMs = isRounded ? Math.ceil(longestMs / granulesPerWindow) : 1
  const trustMs = hourMs + granuleMs + (rule.lock?.maxLockMs ?? 0)
  return { rule, windows, longestMs, granuleMs, trustMs }
}
