/**
 * The catalogue of Postern's policies. Other policies of the policy file are used by callers of the limiter and of
 * login attempts.
 *
 * Publishable keys have more rules than servers. So some policies join the rules for all callers with the rules for
 * pages. Each policy is one limit check, and a rule counts under the policy that declares it.
 */
import type { Policies, Rule } from '../limiter/index.ts'
import { checkFields, sendFields } from './key-fields.ts'

/** Checked before a send from a page: the rules of `captcha` and of `browser.rules`. */
export const pagePolicy = 'browser'
/** The rules of `browser.checkRules`. If no code lives, a check from a page is decided by these rules alone. */
export const pageCheckPolicy = 'browser-check'
/** Checked before a page's code is compared: the rules of `check` and of `browser.checkRules`. */
export const pageGuessPolicy = 'browser-guess'

interface OwnPolicy {
  readonly of: 'sends' | 'checks'
  /** The section of the policy file with its rules, if that is not `policies`. */
  readonly section?: string
  /** The time of the limit check, in words. Undefined for a policy that only joins other policies. */
  readonly use?: string
}

const catalogue: Readonly<Record<string, OwnPolicy>> = {
  captcha: { of: 'sends', use: 'before a code is sent' },
  notice: { of: 'sends', use: 'before a notice is sent' },
  check: { of: 'checks', use: 'before a code is compared' },
  [pagePolicy]: {
    of: 'sends',
    section: 'browser.rules',
    use: "together with captcha's rules, for publishable keys (browser.rules)",
  },
  [pageCheckPolicy]: {
    of: 'checks',
    section: 'browser.checkRules',
    use: "together with check's rules, for publishable keys (browser.checkRules); alone if there is no live code",
  },
  [pageGuessPolicy]: { of: 'checks', section: 'browser.checkRules' },
}

const names = Object.keys(catalogue)

/** The policies that declare rules. Sends and checks count under these names. */
export const declaringPolicies = names.filter((name) => catalogue[name]?.use)

export const isCheckPolicy = (policy: string): boolean => catalogue[policy]?.of === 'checks'
export const isSendPolicy = (policy: string): boolean => catalogue[policy]?.of === 'sends'

/** The fields that keys of its rules may use. */
export const fieldsOfPolicy = (policy: string): readonly string[] =>
  isCheckPolicy(policy) ? checkFields : sendFields

/** The names of the policies that decide sends and checks: Postern's own, and those that join `captcha`. */
export function policiesInUse(policies: Policies): string[] {
  const joining = Object.keys(policies).filter((name) => joinsCaptcha(policies[name]))
  return [...new Set([...declaringPolicies, ...joining])]
}

/** Every rule that decides sends or checks, once. Rules of included policies are among them. */
export function rulesInUse(policies: Policies): Rule[] {
  const rules = policiesInUse(policies).flatMap((name) => policies[name] ?? [])
  return [...new Map(rules.map((rule) => [`${rule.policy} ${rule.name}`, rule])).values()]
}

/** True for a policy that includes `captcha`. A plugin can name it for a send, in place of `captcha`. */
const joinsCaptcha = (rules: readonly Rule[] = []) =>
  rules.some(({ policy }) => policy === 'captcha')

export function timeOfUse(policy: string, policies: Policies): string {
  const use = catalogue[policy]?.use
  if (use) return use
  if (joinsCaptcha(policies[policy])) {
    return 'in place of captcha, for sends in process that name this policy'
  }
  const isIncluded = rulesInUse(policies).some((rule) => rule.policy === policy)
  return isIncluded
    ? 'as a part of other policies'
    : 'for callers of the limiter and of login attempts'
}

/** The requests that a rule counts. `uses`: of several kinds. */
export type Uses = 'sends' | 'checks' | 'tries' | 'uses'

export function usesOf({ policy, name }: Rule, policies: Policies): Uses {
  const holders = Object.keys(policies).filter((holder) =>
    policies[holder]?.some((rule) => rule.policy === policy && rule.name === name),
  )
  // A policy that others include is a part of them, unless Postern uses it.
  const others = policy in catalogue ? [] : holders.filter((holder) => holder !== policy)
  const kinds = (others.length > 0 ? others : holders).map((holder) =>
    isCheckPolicy(holder)
      ? 'checks'
      : isSendPolicy(holder) || joinsCaptcha(policies[holder])
        ? 'sends'
        : 'tries',
  )
  const [first = 'uses', ...more] = new Set<Uses>(kinds)
  return more.length > 0 ? 'uses' : first
}

/** True if it declares no rules. */
export const onlyJoinsOthers = (policy: string): boolean =>
  policy in catalogue && !declaringPolicies.includes(policy)

/** The section of the policy file whose rules have this name; undefined for the names under `policies`. */
export const pageSectionOf = (policy: string): string | undefined => catalogue[policy]?.section

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
 * A send to a test recipient uses a variant of its policy with separate counts: see policies-in-force.ts. Checks use the
 * normal policies, because attackers have more time to guess a fixed code than any other.
 */
export const testPolicyOf = (policy: string) => `${policy}-test`
