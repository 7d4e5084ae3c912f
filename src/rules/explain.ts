/** Policies in words. */

import { inWholeUnits } from '../base/durations.ts'
import type { Kind, Lock, Policies, Rule, Window } from '../limiter/index.ts'
import { fields } from './fields.ts'
import { onlyJoinsOthers, timeOfUse } from './policies.ts'

export function explain(policies: Policies): string {
  return ownRulesOf(policies)
    .map(([policy, own]) => {
      const lines = own.map((rule) => `  ${rule.name}: ${sentenceOf(rule)}`)
      return [
        `${policy}, ${timeOfUse(policy)}:`,
        ...(lines.length > 0 ? lines : ['  No limits.']),
      ].join('\n')
    })
    .join('\n\n')
    .concat('\n')
}

/** The rules that each policy declares, without policies that only join others. */
export function ownRulesOf(policies: Policies): [policy: string, rules: Rule[]][] {
  return Object.entries(policies)
    .filter(([policy]) => !onlyJoinsOthers(policy))
    .map(([policy, rules]) => [policy, rules.filter((rule) => rule.policy === policy)])
}

export function sentenceOf(rule: Rule): string {
  const isNothing = rule.windows.every(({ limit }) => limit === 0)
  if (isNothing && rule.mode === 'enforce') return `Nothing passes for ${subjectOf(rule.fields)}.`
  const limit = limits[rule.kind](rule, subjectOf(rule.fields))
  return [limit, consequenceOf(rule), ...extrasOf(rule)].join('')
}

/** The limit in words, by kind. */
const limits: Readonly<Record<Kind, (rule: Rule, subject: string) => string>> = {
  sliding: ({ windows }, subject) =>
    `At most ${list(windows.map(perWindow('per')))} for ${subject}`,
  fixed: ({ windows }, subject) =>
    `At most ${list(windows.map(perWindow('within')))} of the first for ${subject}`,
  bucket: ({ windows: [first] }, subject) =>
    `At most ${number(first?.limit ?? 0)} at once, then ${first?.window}, for ${subject}`,
  calendar(
    { windows: [first], calendar: { cron, timezone } = { cron: '', timezone: '' } },
    subject,
  ) {
    return `At most ${number(first?.limit ?? 0)} from one "${cron}" (${timezone}) to the next for ${subject}`
  },
  lockout({ windows: [first], policy }, subject) {
    const one = policy === 'check' ? 'wrong code' : 'try'
    const many = policy === 'check' ? 'wrong codes' : 'tries'
    return `After ${count(first?.limit ?? 0, one, many)} within ${first?.window} by ${subject}`
  },
}

const perWindow =
  (per: string) =>
  ({ limit, window }: Window) =>
    `${number(limit)} ${per} ${window}`

function consequenceOf({ kind, mode, own, policy }: Rule): string {
  if (mode === 'observe') return '; more are counted and reported, and pass.'
  if (mode === 'challenge')
    return '; more need a challenge (calls with secret keys pass without one).'
  if (kind !== 'lockout') return '; more are refused.'
  const { lockMs, growth, maxLockMs } = own as Lock
  const grows =
    growth > 1 ? `, each further lock ${growth} times longer, up to ${duration(maxLockMs)}` : ''
  // The wrong code that uses up the limit of `check` begins the lock.
  const locks = policy === 'check' ? 'checks are locked for' : 'the next one locks for'
  return `, ${locks} ${duration(lockMs)}${grows}.`
}

function extrasOf({ permits, refund, scope, kind }: Rule): string[] {
  return [
    permits === 'price'
      ? " Each counts with its message's price."
      : typeof permits === 'string'
        ? ` Each counts with the value of its field ${permits}.`
        : permits > 1
          ? ` Each counts as ${number(permits)}.`
          : '',
    refund && kind !== 'lockout' ? ' The uses of a code are given back when it passes.' : '',
    scope === 'per-client' ? ' Every process counts separately.' : '',
  ]
}

/** The subject of a rule: `one recipient and one IP address of one app`. */
function subjectOf(names: readonly string[]): string {
  const isPerson = names.includes('to') || names.includes('mailbox')
  const named = [...new Set(names)]
    .filter((field) => field !== 'app' && !(field === 'channel' && isPerson))
    .map((field) => fields[field]?.noun ?? `one {${field}}`)
  const isOfApp = names.includes('app')
  if (named.length === 0) return isOfApp ? 'one app' : 'all requests together'
  return `${list(named)}${isOfApp ? ' of one app' : ''}`
}

function list(parts: readonly string[]): string {
  return parts.length < 2
    ? (parts[0] ?? '')
    : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`
}

const number = (value: number) => value.toLocaleString('en-US')
const count = (value: number, one: string, many: string) =>
  `${number(value)} ${value === 1 ? one : many}`

function duration(ms: number): string {
  const { count, unit } = inWholeUnits(ms)
  return `${number(count)} ${unit === 'm' ? 'min' : unit}`
}
