/**
 * What a publishable key is asked: the rules of `captcha` and those of `browser.rules`, as one policy and so
 * in one step.
 */
export const pagePolicy = 'browser'

export function withPageRules(
  policies: Readonly<Record<string, unknown>>,
  pageRules: readonly unknown[],
): Record<string, unknown> {
  return { ...policies, [pagePolicy]: [{ include: 'captcha' }, ...pageRules] }
}
