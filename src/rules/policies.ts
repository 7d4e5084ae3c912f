/**
 * The catalogue of Postern's policies. Other policies of the policy file are used by callers of the limiter and of
 * login attempts.
 *
 * Publishable keys have more rules than servers. So some policies join the rules for all callers with the rules for
 * pages. Each policy is one limit check, and a rule counts under the policy that declares it.
 */
import { checkFields, sendFields } from './key-fields.ts'

/** Checked before a send from a page: the rules of `captcha` and of `browser.rules`. */
export const pagePolicy = 'browser'
/** The rules of `browser.checkRules`. If no code lives, a check from a page is decided by these rules alone. */
export const pageCheckPolicy = 'browser-check'
/** Checked before a page's code is compared: the rules of `check` and of `browser.checkRules`. */
export const pageGuessPolicy = 'browser-guess'

interface OwnPolicy {
  readonly of: 'sends' | 'checks'
  /** The section of the policy file with its rules. */
  readonly place: string
  /** The time of the limit check, in words. Undefined for a policy that only joins other policies. */
  readonly use?: string
}

const catalogue: Readonly<Record<string, OwnPolicy>> = {
  captcha: { of: 'sends', place: 'policies.captcha', use: 'before a code is sent' },
  notice: { of: 'sends', place: 'policies.notice', use: 'before a notice is sent' },
  check: { of: 'checks', place: 'policies.check', use: 'before a code is compared' },
  [pagePolicy]: {
    of: 'sends',
    place: 'browser.rules',
    use: "together with captcha's rules, for publishable keys (browser.rules)",
  },
  [pageCheckPolicy]: {
    of: 'checks',
    place: 'browser.checkRules',
    use: "together with check's rules, for publishable keys (browser.checkRules); alone if there is no live code",
  },
  [pageGuessPolicy]: { of: 'checks', place: 'browser.checkRules' },
}

const names = Object.keys(catalogue)

/** The policies that declare rules. Sends and checks count under these names. */
export const declaringPolicies = names.filter((name) => catalogue[name]?.use)

/** True for a policy on checks, false for one on sends. */
export const isCheckPolicy = (policy: string): boolean => catalogue[policy]?.of === 'checks'

/** The fields that keys of its rules may use. */
export const fieldsOfPolicy = (policy: string): readonly string[] =>
  isCheckPolicy(policy) ? checkFields : sendFields

/** `includes`: the policies whose rules it includes. */
export function timeOfUse(policy: string, includes: readonly string[]): string {
  const ofOthers = includes.includes('captcha')
    ? 'in place of captcha, for sends in process that name this policy; the rules of captcha apply too'
    : 'for callers of the limiter and of login attempts'
  return catalogue[policy]?.use ?? ofOthers
}

/** True if it declares no rules. */
export const onlyJoinsOthers = (policy: string): boolean =>
  policy in catalogue && !declaringPolicies.includes(policy)

/** The section of the policy file whose rules have this name; undefined for the names under `policies`. */
export function pageSectionOf(policy: string): string | undefined {
  const place = catalogue[policy]?.place
  return place?.startsWith('browser.') ? place : undefined
}

/** The sections of the policy file for publishable keys. */
export interface PageRules {
  readonly rules: readonly unknown[]
  readonly checkRules: readonly unknown[]
}

export function withPageRules(
  policies: Readonly<Record<string, unknown>>,
  { rules, checkRules }: PageRules,
): Record<string, unknown> {
  // If the file lacks a policy, the missing policy is reported, not a wrong include.
  const included = (name: string) => (Object.hasOwn(policies, name) ? [{ include: name }] : [])
  return {
    ...policies,
    [pagePolicy]: [...included('captcha'), ...rules],
    [pageCheckPolicy]: checkRules,
    [pageGuessPolicy]: [...included('check'), { include: pageCheckPolicy }],
  }
}

/**
 * A send to a test recipient uses a variant of its policy with separate counts: see test-policies.ts. Checks use the
 * normal policies, because attackers have more time to guess a fixed code than any other.
 */
export const policiesWithTestVariant = names.filter((name) => !isCheckPolicy(name))

/** The variant for test recipients, or the policy itself if it has none. */
export const testPolicyOf = (policy: string) =>
  policiesWithTestVariant.includes(policy) ? `${policy}-test` : policy

/** Reserved names that no policy of an operator may have. */
export const testPolicyNames: readonly string[] = policiesWithTestVariant.map(testPolicyOf)
