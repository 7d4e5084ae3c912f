/**
 * Policies compiled: each rule becomes one or more parts, and each part is one value per subject.
 * All exact windows of a sliding rule share one part; a large sliding window and every window of a
 * fixed rule is a part of its own. Both engines, and the script, work on parts only.
 */
import { canonical } from '../base/canonical.ts'
import { type Calendar, createCalendar } from './calendar.ts'
import type { Kind, Policies, Quota, Rule } from './policies.ts'

/** Windows of at most this many uses are exact to the millisecond. */
export const exactLimit = 128
/** A larger sliding window is this many granules long. */
export const granulesPerWindow = 128

export type Fields = Readonly<Record<string, string | number>>

export interface Window extends Quota {
  readonly rule: Rule
}

export interface WindowLimit {
  readonly rule: string
  readonly kind: Kind
  readonly window: string
  readonly limit: number
  /** 0 for a calendar rule, whose periods differ in length. */
  readonly windowMs: number
}

export interface Part {
  /** Position of the rule in its policy. */
  readonly ruleIndex: number
  readonly rule: Rule
  /** Tells the parts of one rule apart, also after a reload: empty, or the window. */
  readonly suffix: string
  /** Position of `windows[0]` among all windows of the policy. */
  readonly firstWindow: number
  readonly windows: readonly Quota[]
  readonly longestMs: number
  /** 0 but for a lockout. */
  readonly maxLockMs: number
  /** Every use is a time of its own; otherwise a cell of uses has one. */
  readonly isExact: boolean
  /** In process: times and counts need more than 4 bytes and 1. */
  readonly wide: boolean
  /** 1 where the window is exact. */
  readonly granuleMs: number
  /** Fixed and calendar: a use joins the last cell as long as that is in its window. */
  readonly isWhole: boolean
  readonly calendar?: Calendar
  /** How many cells can matter at once. */
  readonly maxCells: number
}

export interface CompiledPolicy {
  readonly name: string
  readonly rules: readonly Rule[]
  readonly parts: readonly Part[]
  /** Every window of every part; refusals and remainders refer to them by position. */
  readonly windows: readonly Window[]
  /** The same for callers. */
  readonly windowLimits: readonly WindowLimit[]
  /** Above it an acquire can never pass; Infinity without an enforcing rule. */
  readonly maxPermits: number
  /** One unambiguous text per rule: policy, rule and the values of its key's fields. Throws `MissingField`. */
  subjectsOf(fields: Fields): string[]
  /** One unambiguous text for the values of all fields; undefined if one is missing. */
  valuesOf(fields: Fields): string | undefined
}

/** A caller's mistake: a key needs a field which the call does not have. */
export class MissingField extends Error {
  override name = 'MissingField'
  readonly policy: string
  readonly rule: string
  readonly field: string
  constructor(policy: string, rule: string, field: string) {
    super(`policy ${policy}, rule ${rule}: the field ${field} of its key is missing`)
    this.policy = policy
    this.rule = rule
    this.field = field
  }
}

/** Four bytes of milliseconds reach 24.8 days either way, and a cell can be two windows old before it goes. */
export const narrowReachMs = 12 * 86_400_000

/**
 * `clientId` keeps the counts of rules with `scope: per-client` apart. Without one, each rule has its
 * subjects to itself, and their text need not begin with its name.
 */
export function compilePolicies(
  policies: Policies,
  clientId?: string,
): Map<string, CompiledPolicy> {
  return new Map(
    Object.entries(policies).map(([name, rules]) => [name, compilePolicy(name, rules, clientId)]),
  )
}

function compilePolicy(name: string, rules: readonly Rule[], clientId?: string): CompiledPolicy {
  const parts: Part[] = []
  const windows: Window[] = []
  for (const [ruleIndex, rule] of rules.entries()) {
    for (const quotas of partition(rule)) {
      const isAlone = quotas.length === rule.quotas.length || isExact(rule, quotas)
      parts.push({
        ...shape(rule, quotas),
        ruleIndex,
        rule,
        suffix: isAlone ? '' : `:${(quotas[0] as Quota).windowMs}`,
        firstWindow: windows.length,
        windows: quotas,
      })
      windows.push(...quotas.map((quota) => ({ ...quota, rule })))
    }
  }
  const enforced = windows.filter((one) => one.rule.mode === 'enforce' && one.limit > 0)
  const allFields = [...new Set(rules.flatMap((rule) => rule.fields))]
  const seeds = rules.map((rule) => {
    if (clientId === undefined) return ''
    return canonical([name, rule.name, ...(rule.scope === 'per-client' ? [clientId] : [])])
  })
  return {
    name,
    rules,
    parts,
    windows,
    windowLimits: windows.map(({ rule, window, limit, windowMs }) => ({
      rule: rule.name,
      kind: rule.kind,
      window,
      limit,
      windowMs,
    })),
    maxPermits: Math.min(...enforced.map((one) => Math.floor(one.limit / one.rule.permits))),
    subjectsOf(fields) {
      const subjects: string[] = []
      for (let index = 0; index < rules.length; index++) {
        const { name: ruleName, fields: ruleFields } = rules[index] as Rule
        let subject = seeds[index] as string
        for (let at = 0; at < ruleFields.length; at++) {
          const text = textOf(fields[ruleFields[at] as string])
          if (text === undefined) {
            throw new MissingField(name, ruleName, ruleFields[at] as string)
          }
          // One field alone is its own text, whose hash the engine of the language already knows.
          if (subject === '' && ruleFields.length === 1) subject = text
          else subject += `${text.length}:${text}`
        }
        subjects.push(subject)
      }
      return subjects
    },
    valuesOf(fields) {
      let values = ''
      for (const field of allFields) {
        const text = textOf(fields[field])
        if (text === undefined) return undefined
        values = allFields.length === 1 ? text : `${values}${text.length}:${text}`
      }
      return values
    },
  }
}

/** Undefined for what is not a field's value, such as an inherited member. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return typeof value === 'number' ? String(value) : undefined
}

function isExact(rule: Rule, quotas: readonly Quota[]): boolean {
  return (
    rule.kind === 'lockout' ||
    (rule.kind === 'sliding' && quotas.every((one) => one.limit <= exactLimit))
  )
}

function partition(rule: Rule): Quota[][] {
  if (rule.kind !== 'sliding') return rule.quotas.map((one) => [one])
  const exact = rule.quotas.filter((one) => isExact(rule, [one]))
  const large = rule.quotas.filter((one) => !isExact(rule, [one]))
  return [...(exact.length > 0 ? [exact] : []), ...large.map((one) => [one])]
}

function shape(rule: Rule, quotas: readonly Quota[]) {
  const longest = quotas.reduce((a, b) => (b.windowMs > a.windowMs ? b : a))
  const longestMs = longest.windowMs
  const isCellPerUse = isExact(rule, quotas)
  const isWhole = rule.kind === 'fixed' || rule.kind === 'calendar'
  const reachMs = Math.max(longestMs, rule.lock?.maxLockMs ?? 0)
  return {
    longestMs,
    maxLockMs: rule.lock?.maxLockMs ?? 0,
    isExact: isCellPerUse,
    wide: !isCellPerUse || reachMs > narrowReachMs,
    granuleMs: isCellPerUse || isWhole ? 1 : Math.ceil(longestMs / granulesPerWindow),
    isWhole,
    // A lock that is remembered stays in front of the tries.
    maxCells: isWhole ? 1 : isCellPerUse ? longest.limit + 2 : granulesPerWindow + 2,
    ...(rule.calendar
      ? { calendar: createCalendar(rule.calendar.cron, rule.calendar.timezone) }
      : {}),
  }
}
