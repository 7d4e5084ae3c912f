/**
 * What publishable keys are asked beside the policies of all callers. Each policy here is asked in one step, and its
 * rules count under the policy that declares them.
 */

/** Asked before a page's send: the rules of `captcha` and those of `browser.rules`. */
export const pagePolicy = 'browser'
/** The rules of `browser.checkRules`. Alone they are asked before a page's check where no code lives. */
export const pageCheckPolicy = 'browser-check'
/** Asked before a page's code is compared: the rules of `check` and those of `browser.checkRules`. */
export const pageGuessPolicy = 'browser-guess'

const checkPolicies: readonly string[] = ['check', pageCheckPolicy, pageGuessPolicy]
/** Whether a policy is asked of checks, and not of sends. */
export const isCheckPolicy = (policy: string): boolean => checkPolicies.includes(policy)

/** Where each is written in the policy file. */
export const pagePolicyPlaces: Readonly<Record<string, string>> = {
  [pagePolicy]: 'browser.rules',
  [pageCheckPolicy]: 'browser.checkRules',
  [pageGuessPolicy]: 'browser.checkRules',
}

export interface PageRules {
  readonly rules: readonly unknown[]
  readonly checkRules: readonly unknown[]
}

export function withPageRules(
  policies: Readonly<Record<string, unknown>>,
  { rules, checkRules }: PageRules,
): Record<string, unknown> {
  // A file that lacks one is told so, and not that its include is wrong.
  const included = (name: string) => (Object.hasOwn(policies, name) ? [{ include: name }] : [])
  return {
    ...policies,
    [pagePolicy]: [...included('captcha'), ...rules],
    [pageCheckPolicy]: checkRules,
    [pageGuessPolicy]: [...included('check'), { include: pageCheckPolicy }],
  }
}
