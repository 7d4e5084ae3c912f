/**
 * The catalogue of policies that the product itself asks. Other policies of the policy file are asked by callers of the
 * limiter and of login attempts.
 *
 * A publishable key is asked more than a server. So some policies put the rules of all callers and the rules for pages
 * together. Each policy is asked in one step, and a rule counts under the policy that declares it.
 */
import { checkFields, sendFields } from './fields.ts'

/** Asked before a page's send: the rules of `captcha` and those of `browser.rules`. */
export const pagePolicy = 'browser'
/** The rules of `browser.checkRules`. Alone they are asked before a page's check where no code lives. */
export const pageCheckPolicy = 'browser-check'
/** Asked before a page's code is compared: the rules of `check` and those of `browser.checkRules`. */
export const pageGuessPolicy = 'browser-guess'

interface OwnPolicy {
  readonly of: 'sends' | 'checks'
  /** Where its rules are written in the policy file. */
  readonly place: string
  /** When it is asked, in words. Undefined for a policy that only puts others together. */
  readonly asked?: string
}

const catalogue: Readonly<Record<string, OwnPolicy>> = {
  captcha: { of: 'sends', place: 'policies.captcha', asked: 'asked before a code is sent' },
  notice: { of: 'sends', place: 'policies.notice', asked: 'asked before a notice is sent' },
  check: { of: 'checks', place: 'policies.check', asked: 'asked before a code is compared' },
  [pagePolicy]: {
    of: 'sends',
    place: 'browser.rules',
    asked: "asked together with captcha's rules, for publishable keys (browser.rules)",
  },
  [pageCheckPolicy]: {
    of: 'checks',
    place: 'browser.checkRules',
    asked:
      "asked together with check's rules, for publishable keys (browser.checkRules); alone where no code lives",
  },
  [pageGuessPolicy]: { of: 'checks', place: 'browser.checkRules' },
}

const names = Object.keys(catalogue)

/** The policies that declare rules: what sends and checks count lies under these names. */
export const declaringPolicies = names.filter((name) => catalogue[name]?.asked)

/** Whether a policy is asked of checks, and not of sends. */
export const isCheckPolicy = (policy: string): boolean => catalogue[policy]?.of === 'checks'

/** The fields that keys of its rules may use. */
export const fieldsOfPolicy = (policy: string): readonly string[] =>
  isCheckPolicy(policy) ? checkFields : sendFields

export function whenAsked(policy: string): string {
  return catalogue[policy]?.asked ?? 'asked by callers of the limiter and of login attempts'
}

/** Whether it declares no rule of its own. */
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
  // For a file without one of these, the finding is that it is missing, and not that its include is wrong.
  const included = (name: string) => (Object.hasOwn(policies, name) ? [{ include: name }] : [])
  return {
    ...policies,
    [pagePolicy]: [...included('captcha'), ...rules],
    [pageCheckPolicy]: checkRules,
    [pageGuessPolicy]: [...included('check'), { include: pageCheckPolicy }],
  }
}

/**
 * A send to a test recipient is asked a variant of its policy, with counts of its own: see test-policies.ts. A check
 * is asked what all checks are asked, because a fixed code can be guessed at for longer than any other.
 */
export const policiesWithTestVariant = names.filter((name) => !isCheckPolicy(name))

/** The policy itself where test recipients are asked nothing else. */
export const testPolicyOf = (policy: string) =>
  policiesWithTestVariant.includes(policy) ? `${policy}-test` : policy

/** No policy of an operator may have one of these names. */
export const testPolicyNames: readonly string[] = policiesWithTestVariant.map(testPolicyOf)
