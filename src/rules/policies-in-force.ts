/**
 * The policies for sends to test recipients: without the rules that count the recipient, so that a test recipient may
 * get sends all day. Rules by address, key or app apply. Checks use the normal policies, because attackers have more
 * time to guess a fixed code.
 *
 * These policies have separate counts, so tests take nothing from real sends. A stand-in for the recipient would
 * create a new count with every request, and anyone can send to an open test number.
 */
import { type Policies, parsePolicies, type RawPolicies } from '../limiter/index.ts'
import { fieldsThatAre } from './key-fields.ts'
import { isSendPolicy, type PageRules, testPolicyOf, withPageRules } from './policies.ts'

/** Rules by price are left out too: nothing is sent, so nothing is spent. */
const ofRecipient = fieldsThatAre('ofRecipient')

type Rule = { readonly key: string; readonly permits?: unknown }
type Entry = Rule | { readonly include: string }

/** `all`: checked policies, by name. */
export function withTestPolicies<Policy extends readonly Entry[]>(
  all: Readonly<Record<string, Policy>>,
): Record<string, Policy> {
  const names = Object.keys(all).filter(
    (name) => isSendPolicy(name) || includes(all, name, 'captcha'),
  )
  const made = names.map((name) => {
    const rules = rulesOf(all, name).filter((rule) => !isAboutRecipient(rule))
    return [testPolicyOf(name), rules as unknown as Policy] as const
  })
  return { ...all, ...Object.fromEntries(made) }
}

/** True if its list includes `other`, also through other policies. `all` has no circles. */
function includes(
  all: Readonly<Record<string, readonly Entry[]>>,
  name: string,
  other: string,
): boolean {
  return (all[name] ?? []).some(
    (entry) =>
      'include' in entry && (entry.include === other || includes(all, entry.include, other)),
  )
}

function rulesOf(all: Readonly<Record<string, readonly Entry[]>>, name: string): Rule[] {
  return (all[name] ?? []).flatMap((entry) =>
    'include' in entry ? rulesOf(all, entry.include) : [entry],
  )
}

function isAboutRecipient({ key, permits }: Rule): boolean {
  return ofRecipient.some((field) => key.includes(`{${field}}`) || permits === field)
}

/**
 * The policies that a checked policy file puts in force: its policies, the policies for pages, and if the file has test
 * recipients, the variants for them.
 */
export function policiesInForce(file: {
  readonly policies: Readonly<Record<string, unknown>>
  readonly browser: PageRules
  readonly testing: { readonly recipients: readonly unknown[] }
}): { raw: RawPolicies; policies: Policies } {
  const all = withPageRules(file.policies, file.browser) as RawPolicies
  const raw = file.testing.recipients.length > 0 ? withTestPolicies(all) : all
  const parsed = parsePolicies(raw)
  return { raw, policies: parsed.ok ? parsed.policies : {} }
}
