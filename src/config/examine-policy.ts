/** Settings that the policy file allows, but that production should avoid or choose on purpose. */
import { about, type Finding } from '../base/finding.ts'
import { pagePolicy, rulesInUse } from '../rules/policies.ts'
import { policiesInForce } from '../rules/policies-in-force.ts'
import type { Environment } from './environment.ts'
import type { PolicyFile } from './policy-schema.ts'

/** OWASP ASVS 5.0 (6.5.4) and NIST SP 800-63B require 20 bits for a code. */
const standardDigits = 6
/** The longest life of a code by both standards. */
const standardTtlMs = 600_000

/**
 * `passing`: the number of test recipients whose fixed codes still pass. `serves`: whether a provider serves numbers of a
 * country.
 */
export function examinePolicy(file: PolicyFile, passing: number, serves: Serves): Finding[] {
  return [
    ...examineCode(file.code),
    ...examineTesting(file.testing, passing),
    ...examinePrices(file),
    ...examineDestinations(file, serves),
  ]
}

function examineCode({ length, ttl }: PolicyFile['code']): Finding[] {
  const { ok, warning } = about('code')
  return [
    length >= standardDigits
      ? ok(`${length} digits, as OWASP ASVS and NIST SP 800-63B require`)
      : warning(
          `${length} digits have fewer than the 20 bits of OWASP ASVS 5.0 (6.5.4) and NIST SP 800-63B`,
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
    const message = `${count} without an end date: their fixed codes pass for ever`
    return [error(message, 'set testing.until')]
  }
  if (passing === 0) return [ok(`expired on ${until}; they can be removed`)]
  return [
    warning(
      `${count} until ${until}: fixed codes, nothing is sent`,
      'remove them when the tests have ended',
    ),
  ]
}

function examinePrices(file: PolicyFile): Finding[] {
  const { ok, warning } = about('prices')
  const { prices } = file
  const { policies } = policiesInForce(file)
  const pricedRules = (name: string) =>
    (policies[name] ?? []).filter(({ permits }) => permits === 'price')
  const forAll = pricedRules('captcha')
  const forPages = pricedRules(pagePolicy).filter(({ policy }) => policy === pagePolicy)
  const [bound] = forAll.filter((rule) => whyNoBound(rule) === undefined)
  if (bound && prices) return [ok(`the rule ${bound.name} limits the cost of codes`)]
  const [any] = [...forAll, ...forPages]
  if (any && !prices) {
    const message = 'a rule has permits: price, but the file has no prices, so it counts messages'
    return [warning(message, 'set prices')]
  }
  const [present] = forAll
  const rule = `{ name: ${present?.name ?? 'spend'}, key: "{app}", sliding: 500000 per 24h, permits: price }`
  const advice = `${present ? 'replace it by' : 'add to captcha'}: ${rule}`
  const found = [
    ...forAll.map((rule) => `${rule.name} ${whyNoBound(rule)}`),
    ...forPages.map(({ name }) => `${name} applies to pages only`),
  ]
  const message = ['no rule limits the cost of a day', found.join('; ')].filter(Boolean).join(': ')
  return [warning(message, advice)]
}

/** The fields with a limited number of values; callers can choose other fields freely. */
const boundedFields = ['app', 'channel', 'country', 'keyId', 'template']

type PricedRule = ReturnType<typeof rulesInUse>[number]

/** Undefined for a rule that limits spending for every caller and recipient. */
function whyNoBound({ fields, mode, refund }: PricedRule): string | undefined {
  if (mode === 'observe') return 'only observes'
  if (mode === 'challenge') return 'lets solved challenges pass'
  if (refund === 'passed') return 'does not count codes that passed'
  const free = fields.find((field) => !boundedFields.includes(field))
  return free && `has a separate count for each {${free}}`
}

type Serves = (provider: string, country: string) => boolean

function examineDestinations(
  { recipients: { countries }, routes, providers }: PolicyFile,
  serves: Serves,
): Finding[] {
  const { ok, warning } = about('destinations')
  const { email: _, ...toNumbers } = routes
  const used = Object.entries(toNumbers).filter(([, list]) => list.length > 0)
  if (used.length === 0) return [ok('no SMS is sent')]
  const by = used.map(([channel]) => (channel === 'sms' ? 'SMS' : channel)).join(', ')
  if (!countries) {
    const advice = 'set recipients.countries: the best guard against SMS fraud'
    return [warning(`${by} may go to every country`, advice)]
  }
  const isServed = (country: string) =>
    used
      .flatMap(([, list]) => list)
      .filter(({ match }) => match.country?.includes(country) ?? true)
      .flatMap(({ use }) => use)
      .some(({ provider }) => !providers[provider]?.disabled && serves(provider, country))
  const unserved = countries.filter((country) => !isServed(country)).join(', ')
  if (unserved) {
    const message = `no route serves ${unserved}, which recipients.countries lists`
    return [warning(message, 'add a route or a sender, or remove it from the list')]
  }
  return [ok(`${by} only to ${countries.join(', ')}`)]
}

/** Only an operator knows which proxies exist, so the finding explains the setting. */
export function examineProxy({
  TRUST_PROXY_HOPS: hops,
}: Pick<Environment, 'TRUST_PROXY_HOPS'>): Finding[] {
  const { ok, warning } = about('proxy')
  if (hops === 0) {
    const message = 'TRUST_PROXY_HOPS is 0: the address of the connection counts as the caller'
    return [
      warning(
        message,
        'correct without a proxy; behind a proxy set it, so that callers do not share one limit',
      ),
    ]
  }
  return [
    ok(
      `the last ${hops} address(es) of X-Forwarded-For are trusted; allow connections only from the proxy`,
    ),
  ]
}

/**
 * Finds rules for sends and checks that all apps share. Without `app` in the key of a rule, the keys of every app can see,
 * change and reset its counts.
 */
export function examineApps(
  file: Pick<PolicyFile, 'policies' | 'browser' | 'testing'>,
  appsOfKeys: readonly string[],
): Finding[] {
  const { ok, warning } = about('apps')
  const apps = new Set(appsOfKeys)
  if (apps.size < 2) return [ok('only one app has keys')]
  const shared = rulesInUse(policiesInForce(file).policies)
    .filter(({ fields }) => !fields.includes('app') && !fields.includes('keyId'))
    .map(({ policy, name }) => `${policy}.${name}`)
  if (shared.length === 0) return [ok(`${apps.size} apps, and every rule counts them separately`)]
  const message = `${apps.size} apps share the counts of ${shared.join(', ')}, so a key of one app sees and resets the counts of all`
  return [warning(message, 'add {app} to their keys, unless this is intended')]
}

const neededNode = 24

/** `problems`: the reasons why no process can start with the environment, the policy file and the templates. */
export function examineSettings(problems: readonly string[]): Finding[] {
  const { ok, error } = about('settings')
  const { node } = process.versions
  return [
    ...(problems.length === 0
      ? [ok('environment, policy file and templates are correct')]
      : problems.map((problem) => error(problem, 'correct it; until then no process can start'))),
    Number.parseInt(node, 10) >= neededNode
      ? ok(`Node ${node}`)
      : error(`Node ${node} is too old`, `install Node ${neededNode} or later`),
  ]
}
