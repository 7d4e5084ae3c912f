/** Policies in words. The parts of the sentences are in the files of `src/i18n`. */

import { inWholeUnits } from '../base/durations.ts'
import { fill, type Language, shortTime, type Values, words } from '../base/words.ts'
import type { Kind, Lock, Policies, Rule } from '../limiter/index.ts'
import { onlyJoinsOthers, timeOfUse, type Uses, usesOf } from './policies.ts'

export function explain(policies: Policies): string {
  return ownRulesOf(policies)
    .map(([policy, own]) => {
      const included = (policies[policy] ?? []).map((rule) => rule.policy)
      const others = new Set(included.filter((name) => name !== policy))
      const lines = [
        ...own.map((rule) => `  ${rule.name}: ${sentenceOf(rule, policies)}`),
        ...[...others].map((name) => `  The rules of ${name}.`),
      ]
      return [
        `${policy}, ${timeOfUse(policy, policies)}:`,
        ...(lines.length > 0 ? lines : ['  No limits.']),
      ].join('\n')
    })
    .join('\n\n')
    .concat('\n')
}

/** The rules that each policy declares. Policies that only join other policies are left out. */
export function ownRulesOf(policies: Policies): [policy: string, rules: Rule[]][] {
  return Object.entries(policies)
    .filter(([policy]) => !onlyJoinsOthers(policy))
    .map(([policy, rules]) => [policy, rules.filter((rule) => rule.policy === policy)])
}

export function sentenceOf(rule: Rule, policies: Policies, language: Language = 'en'): string {
  const { rules } = words[language]
  const { kind, mode, own } = rule
  const subject = subjectOf(rule.fields, language)
  const isNothing = rule.windows.some(({ limit }) => limit === 0)
  if (isNothing && mode === 'enforce') return fill(rules.nothing, language, { subject })
  const uses = usesOf(rule, policies)
  const lock = kind === 'lockout' && mode === 'enforce' ? (own as Lock) : undefined
  const limit =
    kind === 'lockout'
      ? lockoutOf(rule, uses, lock, subject, language)
      : limitsOf[kind](rule, subject, language)
  const whole = lock ? limit : fill(rules[consequences[mode]], language, { limit })
  return extrasOf(rule, uses).reduce(
    (sentence, [word, values]) => fill(rules[word], language, { ...values, sentence }),
    whole,
  )
}

const consequences = { enforce: 'refused', observe: 'observed', challenge: 'challenged' } as const

type Sentence = (rule: Rule, subject: string, language: Language) => string

const limitsOf: Readonly<Record<Exclude<Kind, 'lockout'>, Sentence>> = {
  sliding: (rule, subject, language) => limitOf(rule, 'sliding', subject, language),
  fixed: (rule, subject, language) => limitOf(rule, 'fixed', subject, language),
  bucket({ windows: [first] }, subject, language) {
    const [refill = '', window] = first.window.split(' per ')
    const period = periodOf(window, language)
    return fill(words[language].rules.bucket, language, { n: first.limit, refill, period, subject })
  },
  calendar({ windows: [first], calendar: { cron, timezone } = noCalendar }, subject, language) {
    const values = { n: first.limit, cron, timezone, subject }
    return fill(words[language].rules.calendar, language, values)
  },
}

const noCalendar = { cron: '', timezone: '' }

function limitOf(rule: Rule, kind: 'sliding' | 'fixed', subject: string, language: Language) {
  const { rules } = words[language]
  const { each, text } = rules[kind]
  const windows = rule.windows.map(({ limit, window }) =>
    fill(each, language, { n: limit, period: periodOf(window, language) }),
  )
  return fill(text, language, { windows: joined(windows, rules.window), subject })
}

function lockoutOf(
  { windows: [first] }: Rule,
  uses: Uses,
  lock: Lock | undefined,
  subject: string,
  language: Language,
): string {
  const { rules } = words[language]
  const after = fill(rules.lockout, language, {
    uses: fill(rules.uses[uses], language, { n: first.limit }),
    period: periodOf(first.window, language),
    subject,
  })
  if (!lock) return after
  const time = (ms: number) => shortTime(inWholeUnits(ms), language)
  // If wrong codes are counted, the one that reaches the limit begins the lock. Otherwise the next use begins it.
  const locks = fill(rules.locks[uses], language, { after, time: time(lock.lockMs) })
  const { growth: factor, maxLockMs } = lock
  const longest = time(maxLockMs)
  const all = factor > 1 ? fill(rules.grows, language, { locks, factor, longest }) : locks
  return fill(rules.locked, language, { locks: all })
}

/** A window of the policy in the words of the language, in the same unit. */
function periodOf(window = '', language: Language): string {
  const { period } = words[language].rules
  const [, n = '', unit = ''] = /^(\d+)([a-z]+)$/.exec(window) ?? []
  return Object.hasOwn(period, unit)
    ? fill(period[unit as keyof typeof period], language, { n })
    : window
}

type Extra = 'price' | 'permits' | 'permitsOf' | 'refunded' | 'uncounted' | 'perClient'

function extrasOf(rule: Rule, uses: Uses): [word: Extra, values?: Values][] {
  const { permits, scope } = rule
  const extras: [Extra, Values?][] = []
  if (permits === 'price') extras.push(['price'])
  else if (typeof permits === 'string') extras.push(['permitsOf', { name: permits }])
  else if (permits > 1) extras.push(['permits', { n: permits }])
  const givenBack = givenBackOf(rule, uses)
  if (givenBack) extras.push([givenBack])
  if (scope === 'per-client') extras.push(['perClient'])
  return extras
}

/** The uses that a right code gives back: of its send, or of the check alone (guess-limits.ts). */
function givenBackOf({ kind, mode, refund }: Rule, uses: Uses): Extra | undefined {
  if (kind === 'lockout') return undefined
  if (uses === 'checks') return refund || mode === 'challenge' ? 'uncounted' : undefined
  return refund ? 'refunded' : undefined
}

/** The subject of a rule: `one recipient and one IP address of one app`. */
function subjectOf(names: readonly string[], language: Language): string {
  const { rules } = words[language]
  const isPerson = names.includes('to') || names.includes('mailbox')
  const nouns = [...new Set(names)]
    .filter((field) => field !== 'app' && !(field === 'channel' && isPerson))
    .map((field) => nounOf(field, language))
  const isOfApp = names.includes('app')
  if (nouns.length === 0) return isOfApp ? rules.nouns.app : rules.all
  const subject = joined(nouns, rules.noun)
  return isOfApp ? fill(rules.ofApp, language, { subject }) : subject
}

function nounOf(field: string, language: Language): string {
  const { nouns, otherNoun } = words[language].rules
  return Object.hasOwn(nouns, field)
    ? nouns[field as keyof typeof nouns]
    : fill(otherNoun, language, { name: `{${field}}` })
}

function joined(parts: readonly string[], { comma, and }: { comma: string; and: string }): string {
  if (parts.length < 2) return parts[0] ?? ''
  return `${parts.slice(0, -1).join(comma)}${and}${parts.at(-1)}`
}
