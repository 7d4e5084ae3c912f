/**
 * Compiles policies for the engines. A part is the unit that is stored: one value per subject. All exact windows of a
 * sliding rule share one part. Each larger sliding window, and each window of a fixed rule, is a separate part.
 */
import { hash } from 'node:crypto'
import { canonical, shortKey } from '../../base/canonical.ts'
import { InvalidPermits, InvalidPolicies, MissingField, UnknownPolicy } from '../errors.ts'
import { type Calendar, createCalendar } from './calendar.ts'
import { checkedPolicies } from './parse.ts'
import type { Fields, Rule } from './rule.ts'
import type { Window } from './terms.ts'

/** A sliding window with at most this limit is exact to the millisecond. */
const exactLimit = 128
/** In a larger window, times are rounded up to this many steps per window. So a use comes back late, never early. */
const granulesPerWindow = 128
/** Largest number of windows per policy. In Lua, one number contains the wait and the position of the window. */
export const maxWindows = 1_024
const hourMs = 3_600_000

let lastId = 0

export interface PolicyWindow extends Window {
  readonly rule: Rule
  /** Position among all windows of the policy. */
  readonly index: number
}

export interface Part {
  readonly rule: Rule
  /** Position among the parts of the policy. */
  readonly index: number
  /** A unique name that survives a reload: policy, rule, kind, and the window if the rule has several parts. */
  readonly name: string
  /** Six bytes that name the part, its key and its client in the memory of a request, also under other policies. */
  readonly id: string
  /** The beginning of each subject text of this part. Empty in process, where each part has a separate map. */
  readonly seed: string
  /** The text that separates the parts of one rule, also after a reload: the window, or empty. */
  readonly suffix: string
  /** With `scope: per-client` over Redis, the mark of this client, which ends its keys. Otherwise empty. */
  readonly client: string
  /** Sorted by limit, lowest first. */
  readonly windows: readonly [PolicyWindow, ...PolicyWindow[]]
  readonly longestMs: number
  /** Times of uses are multiples of this; 1 if they are exact. */
  readonly granuleMs: number
  /** A stored time that is more than this ahead of now was written by a wrong clock. */
  readonly trustMs: number
  readonly calendar: Calendar | undefined
  /** `empty`: the value of a subject without uses. `first`: the position in a value where uses begin. */
  readonly empty: number[]
  readonly first: number
}

export interface CompiledPolicy {
  readonly name: string
  /** An id that separates this policy from an earlier one with the same name. */
  readonly id: string
  readonly parts: readonly Part[]
  /** All windows of all parts, as declared. Answers name a window by its position here. */
  readonly windows: readonly PolicyWindow[]
  /** Some rule reads its number of permits from a field of the call. */
  readonly hasPermitsInFields: boolean
  /** A call for more permits can never pass. */
  readonly maxPermits: number
}

/** `clientId`, only with Redis: separates counts of rules with `scope: per-client`. Throws `InvalidPolicies`. */
export function compilePolicies(raw: unknown, clientId?: string): Map<string, CompiledPolicy> {
  const entries = Object.entries(checkedPolicies(raw))
  return new Map(entries.map(([name, rules]) => [name, compilePolicy(name, rules, clientId)]))
}

/** Throws `UnknownPolicy`, and `InvalidPermits` for permits that can never pass. */
export function policyOf(
  policies: ReadonlyMap<string, CompiledPolicy>,
  name: string,
  permits = 1,
): CompiledPolicy {
  const policy = policies.get(name)
  if (!policy) throw new UnknownPolicy(name)
  checkPermits(permits)
  if (permits <= policy.maxPermits) return policy
  throw new InvalidPermits(
    `policy ${name} never has more than ${policy.maxPermits} permits at once`,
    undefined,
    policy.maxPermits,
  )
}

function compilePolicy(name: string, rules: readonly Rule[], clientId?: string): CompiledPolicy {
  const parts: Part[] = []
  const windows: PolicyWindow[] = []
  for (const rule of rules) {
    const isOfClient = rule.scope === 'per-client' && clientId !== undefined
    const client = isOfClient ? hash('sha256', clientId, 'base64url').slice(0, 8) : ''
    const ruleName = canonical([rule.policy, rule.name, rule.kind])
    const seed = clientId === undefined ? '' : ruleName
    const calendar = rule.calendar && createCalendar(rule.calendar.cron, rule.calendar.timezone)
    const isExact = ({ limit }: Window) => rule.kind === 'sliding' && limit <= exactLimit
    const exact = rule.windows.filter(isExact)
    const others = rule.windows.filter((one) => !isExact(one)).map((one) => [one])
    for (const together of [exact, ...others]) {
      const declared = together.map((one, at) => ({ ...one, rule, index: windows.length + at }))
      windows.push(...declared)
      const [lowest, ...higher] = declared.sort((a, b) => a.limit - b.limit)
      if (!lowest) continue
      const isOwn = together !== exact
      const suffix = isOwn && rule.windows.length > 1 ? `:${lowest.windowMs}` : ''
      const longestMs = Math.max(...declared.map(({ windowMs }) => windowMs))
      const granuleMs =
        isOwn && rule.kind === 'sliding' ? Math.ceil(longestMs / granulesPerWindow) : 1
      const empty = rule.own ? [0, 0, 0] : [0]
      parts.push({
        rule,
        index: parts.length,
        name: ruleName + suffix,
        id: hash('sha256', canonical([ruleName, suffix, rule.key, client]), 'base64url').slice(
          0,
          6,
        ),
        seed,
        suffix,
        client,
        windows: [lowest, ...higher],
        longestMs,
        granuleMs,
        trustMs: hourMs + granuleMs,
        calendar,
        empty,
        first: empty.length - 1,
      })
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
  return {
    name,
    id: String(++lastId),
    parts,
    windows,
    hasPermitsInFields: rules.some(({ permits }) => typeof permits === 'string'),
    maxPermits: Math.min(...atOnce),
  }
}

/**
 * The text that identifies a subject of a part. Lone surrogates are replaced, as in Redis, whose keys are UTF-8. Throws
 * `MissingField`.
 */
export function subjectOf(policy: string, { seed, rule }: Part, fields: Fields): string {
  const values = rule.fields.map((field) => fieldOf(policy, rule, fields, field))
  // A single value is used as it is: V8 already knows the hash of that string.
  const text = seed === '' && values.length === 1 ? (values[0] ?? '') : seed + canonical(values)
  return shortKey(text.toWellFormed())
}

/** The number of uses that `permits` of a call take from a part. Throws `MissingField` and `InvalidPermits`. */
export function permitsOf(policy: string, part: Part, fields: Fields, permits: number): number {
  const { rule, windows } = part
  if (typeof rule.permits === 'number') return permits * rule.permits
  const each = Number(fieldOf(policy, rule, fields, rule.permits))
  checkPermits(each, rule.permits)
  const taken = permits * each
  const [{ limit }] = windows
  if (taken <= limit || limit === 0 || rule.mode === 'observe') return taken
  throw new InvalidPermits(
    `rule ${rule.name} never has more than ${limit} permits at once`,
    rule.permits,
    limit,
  )
}

/** Reads only own members: inherited members are not fields. */
function fieldOf(policy: string, rule: Rule, fields: Fields, field: string): string {
  const value: unknown = fields?.[field]
  if (typeof value === 'string') return value
  if (typeof value === 'number' && !Number.isNaN(value)) return String(value)
  throw new MissingField(policy, rule.name, field, value)
}

function checkPermits(permits: number, field?: string): void {
  if (Number.isSafeInteger(permits) && permits > 0) return
  throw new InvalidPermits(
    `${field ?? 'permits'} must be a whole number above 0, not ${permits}`,
    field,
  )
}
