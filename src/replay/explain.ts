/** Policies in words. */
import { pageGuessPolicy } from '../base/page-policy.ts'
import type { Kind, Policies, Rule, Window } from '../limiter/index.ts'

/** Of the policies the product itself asks; the others are asked by callers of the limiter. */
const asked: Readonly<Record<string, string>> = {
  captcha: 'asked before a code is sent',
  browser: "asked together with captcha's rules, for publishable keys (browser.rules)",
  notice: 'asked before a notice is sent',
  check: 'asked before a code is compared',
  'browser-check':
    "asked together with check's rules, for publishable keys (browser.checkRules); alone where no code lives",
}

export function explain(policies: Policies): string {
  return ownRulesOf(policies)
    .map(([policy, own]) => {
      const lines = own.map((rule) => `  ${rule.name}: ${sentenceOf(rule)}`)
      const when = asked[policy] ?? 'asked by callers of the limiter and of login attempts'
      return [`${policy}, ${when}:`, ...(lines.length > 0 ? lines : ['  No limits.'])].join('\n')
    })
    .join('\n\n')
    .concat('\n')
}

/** The rules that each policy declares, without policies that only put others together. */
export function ownRulesOf(policies: Policies): [policy: string, rules: Rule[]][] {
  return Object.entries(policies)
    .filter(([policy]) => policy !== pageGuessPolicy)
    .map(([policy, rules]) => [policy, rules.filter((rule) => rule.policy === policy)])
}

export function sentenceOf(rule: Rule): string {
  const isNothing = rule.windows.every(({ limit }) => limit === 0)
  if (isNothing && rule.mode === 'enforce') return `Nothing passes for ${subjectOf(rule.fields)}.`
  const limit = limits[rule.kind](rule, subjectOf(rule.fields))
  return [limit, consequenceOf(rule), ...extrasOf(rule)].join('')
}

/** The limit in words, by kind. */
const limits: Readonly<Record<Kind, (rule: Rule, whom: string) => string>> = {
  sliding: ({ windows }, whom) => `At most ${list(windows.map(perWindow('per')))} for ${whom}`,
  fixed: ({ windows }, whom) =>
    `At most ${list(windows.map(perWindow('within')))} of the first for ${whom}`,
  calendar({ windows: [first], calendar: { cron, timezone } = { cron: '', timezone: '' } }, whom) {
    return `At most ${number(first?.limit ?? 0)} from one "${cron}" (${timezone}) to the next for ${whom}`
  },
  lockout: ({ windows: [first] }, whom) =>
    `After ${count(first?.limit ?? 0, 'try', 'tries')} within ${first?.window} by ${whom}`,
}

const perWindow =
  (per: string) =>
  ({ limit, window }: Window) =>
    `${number(limit)} ${per} ${window}`

function consequenceOf({ kind, mode, lock }: Rule): string {
  if (mode === 'observe') return '; more are counted and reported, and pass.'
  if (mode === 'challenge')
    return '; more are asked for a challenge (secret keys are not, and pass).'
  if (kind !== 'lockout' || !lock) return '; more are refused.'
  const { lockMs, growth, maxLockMs } = lock
  const grows =
    growth > 1 ? `, each further lock ${growth} times longer, up to ${duration(maxLockMs)}` : ''
  return `, the next one locks for ${duration(lockMs)}${grows}.`
}

function extrasOf({ permits, refund, scope, kind }: Rule): string[] {
  return [
    permits === 'price'
      ? " Each takes its message's price."
      : typeof permits === 'string'
        ? ` Each takes what its field ${permits} says.`
        : permits > 1
          ? ` Each takes ${number(permits)}.`
          : '',
    refund && kind !== 'lockout' ? ' What a code took is given back when it passes.' : '',
    scope === 'per-client' ? ' Every process counts for itself.' : '',
  ]
}

const nouns: Readonly<Record<string, string>> = {
  to: 'one recipient',
  mailbox: 'one mailbox',
  dedupe: 'one message with the same words to the same recipient',
  ip: 'one IP address',
  prefix: 'one prefix of numbers or domain of mail',
  country: 'one country',
  channel: 'one channel',
  scene: 'one scene',
  template: 'one template',
  keyId: 'one API key',
  subject: 'one subject',
}

/** Whom a rule counts: `one recipient and one IP address of one app`. */
function subjectOf(fields: readonly string[]): string {
  const isPerson = fields.includes('to') || fields.includes('mailbox')
  const named = [...new Set(fields)]
    .filter((field) => field !== 'app' && !(field === 'channel' && isPerson))
    .map((field) => nouns[field] ?? `one {${field}}`)
  const isOfApp = fields.includes('app')
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

const units = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const

function duration(ms: number): string {
  const [unitMs, unit] = units.find(([unitMs]) => ms % unitMs === 0) ?? [1, 'ms']
  return `${number(ms / unitMs)} ${unit}`
}
