/** What the policy file allows and production should not, or not without having thought of it. */

import { about, type Finding } from '../base/finding.ts'
import type { Environment } from './environment.ts'
import type { PolicyFile } from './policy-schema.ts'

/** OWASP ASVS 5.0 (6.5.4) and NIST SP 800-63B ask a code for 20 bits. */
const standardDigits = 6
/** Both let a code live so long at most. */
const standardTtlMs = 600_000

/** `passing`: how many test recipients still pass by their fixed codes. */
export function examinePolicy(file: PolicyFile, passing: number): Finding[] {
  return [
    ...examineCode(file.code),
    ...examineTesting(file.testing, passing),
    ...examinePrices(file),
    ...examineDestinations(file),
  ]
}

function examineCode({ length, ttl }: PolicyFile['code']): Finding[] {
  const { ok, warning } = about('code')
  return [
    length >= standardDigits
      ? ok(`${length} digits, as OWASP ASVS and NIST SP 800-63B ask`)
      : warning(
          `${length} digits are below the 20 bits of OWASP ASVS 5.0 (6.5.4) and NIST SP 800-63B`,
          `set code.length: ${standardDigits}, or read "A code of four digits" in docs/operations.md`,
        ),
    ...(ttl > standardTtlMs
      ? [warning('a code passes for more than 10 minutes', 'set code.ttl: 10m or less')]
      : []),
  ]
}

function examineTesting({ recipients, until }: PolicyFile['testing'], passing: number): Finding[] {
  const { ok, warning, error } = about('test recipients')
  const count = recipients.length
  if (count === 0) return [ok('none')]
  if (until === undefined) {
    const message = `${count} without an end date: whoever knows one passes with its code for ever`
    return [error(message, 'set testing.until')]
  }
  if (passing === 0) return [ok(`their time was over on ${until}; they can be removed`)]
  return [warning(`${count} until ${until}: fixed codes, nothing is sent`, 'remove them before')]
}

/** As much of a rule as says whether it bounds spending. */
interface PricedRule {
  readonly name: string
  readonly key: string
  readonly mode?: string
  readonly refund?: string
}

function examinePrices({ prices, policies, browser }: PolicyFile): Finding[] {
  const { ok, warning } = about('prices')
  const forAll = pricedRules(policies.captcha, policies)
  const forPages = pricedRules(browser.rules, policies)
  const [bound] = forAll.filter((rule) => whyNoBound(rule) === undefined)
  if (bound && prices) return [ok(`the rule ${bound.name} bounds what codes may cost`)]
  const [any] = [...forAll, ...forPages]
  if (any && !prices) {
    const message = 'a rule takes price, and there are no prices: it counts messages'
    return [warning(message, 'set prices')]
  }
  const advice =
    'let one of captcha refuse: { name: spend, key: "{app}", sliding: 500000 per 24h, permits: price }'
  const found = [
    ...forAll.map((rule) => `${rule.name} ${whyNoBound(rule)}`),
    ...forPages.map(({ name }) => `${name} is asked for pages alone`),
  ]
  const message = ['no rule bounds what a day may cost', found.join('; ')]
    .filter(Boolean)
    .join(': ')
  return [warning(message, advice)]
}

/** The rules of a policy that take a message's price, those of included policies too. */
function pricedRules(
  entries: unknown,
  policies: PolicyFile['policies'],
  seen = new Set(),
): PricedRule[] {
  if (!Array.isArray(entries) || seen.has(entries)) return []
  seen.add(entries)
  return entries.flatMap((entry) => {
    if (entry.include !== undefined) return pricedRules(policies[entry.include], policies, seen)
    return entry.permits === 'price' ? [entry] : []
  })
}

/** Callers choose no other field than these as they like. */
const boundedFields = ['app', 'channel', 'country', 'keyId', 'template']

/** Undefined for a rule that refuses when its limit is reached, whoever asks and for whatever recipient. */
function whyNoBound({ key, mode, refund }: PricedRule): string | undefined {
  if (mode === 'observe') return 'only observes'
  if (mode === 'challenge') return 'lets solved challenges pass'
  if (refund === 'passed') return 'does not count codes that passed'
  const free = [...key.matchAll(/\{(\w+)\}/g)].find(
    ([, field = '']) => !boundedFields.includes(field),
  )
  return free && `counts apart for each ${free[0]}`
}

function examineDestinations({ recipients, routes }: PolicyFile): Finding[] {
  const { ok, warning } = about('destinations')
  if (routes.sms.length === 0) return [ok('no SMS is sent')]
  return recipients.countries
    ? [ok(`SMS to ${recipients.countries.join(', ')} alone`)]
    : [
        warning(
          'SMS may go to every country',
          'set recipients.countries: the best guard against SMS fraud',
        ),
      ]
}

/** Only an operator knows what stands before the API, so this says what the setting means. */
export function examineProxy({
  TRUST_PROXY_HOPS: hops,
}: Pick<Environment, 'TRUST_PROXY_HOPS'>): Finding[] {
  const { ok, warning } = about('proxy')
  if (hops === 0) {
    const message = 'TRUST_PROXY_HOPS is 0: the address of a caller is that of the connection'
    return [
      warning(message, 'fine without a proxy; behind one all callers share one limit, so set it'),
    ]
  }
  return [
    ok(
      `the last ${hops} address(es) of X-Forwarded-For are believed; make sure that every request passes the proxy`,
    ),
  ]
}
