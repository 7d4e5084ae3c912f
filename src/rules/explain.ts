/** Policies in words. */

import type { Lock, Policies, Rule } from '../limiter/index.ts'
import { fields } from './key-fields.ts'
import { onlyJoinsOthers, timeOfUse, type Uses, usesOf } from './policies.ts'
import { type Language, type RuleWords, ruleWords } from './rule-words.ts'

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
  const words = ruleWords[language]
  const { kind, mode, own } = rule
  const subject = subjectOf(rule.fields, language)
  const uses = usesOf(rule, policies)
  const isNothing = rule.windows.some(({ limit }) => limit === 0)
  if (isNothing && mode === 'enforce') return words.nothing(subject)
  const lock = kind === 'lockout' && mode === 'enforce' ? (own as Lock) : undefined
  const limit =
    kind === 'lockout'
      ? words.lockout(rule, uses, lock, subject)
      : words.limits[kind](rule, subject)
  return [limit, lock ? '' : words[consequences[mode]], ...extrasOf(rule, uses, words)].join('')
}

const consequences = { enforce: 'refused', observe: 'observed', challenge: 'challenged' } as const

function extrasOf(rule: Rule, uses: Uses, words: RuleWords): string[] {
  const { permits, scope } = rule
  return [
    permits === 'price'
      ? words.price
      : typeof permits === 'string'
        ? words.permitsOf(permits)
        : permits > 1
          ? words.permits(permits)
          : '',
    givenBackOf(rule, uses, words),
    scope === 'per-client' ? words.perClient : '',
  ]
}

/** The uses that a right code gives back: of its send, or of the check alone (guess-limits.ts). */
function givenBackOf({ kind, mode, refund }: Rule, uses: Uses, words: RuleWords): string {
  if (kind === 'lockout') return ''
  if (uses === 'checks') return refund || mode === 'challenge' ? words.uncounted : ''
  return refund ? words.refunded : ''
}

/** The subject of a rule: `one recipient and one IP address of one app`. */
function subjectOf(names: readonly string[], language: Language): string {
  const words = ruleWords[language]
  const isPerson = names.includes('to') || names.includes('mailbox')
  const nouns = [...new Set(names)]
    .filter((field) => field !== 'app' && !(field === 'channel' && isPerson))
    .map((field) => fields[field]?.noun[language] ?? words.field(field))
  return words.subject(nouns, names.includes('app'))
}
