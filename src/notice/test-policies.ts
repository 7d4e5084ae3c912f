/**
 * What test recipients are asked: the policies without the rules that count the recipient, so that one may be sent
 * to all day; those by address, key or app hold. They are policies of their own, with counts of their own: what is
 * tested takes nothing from what is sent. A stand-in for the recipient would leave a new count behind with
 * every request, which is what an open test number must not do.
 */
const policies = ['captcha', 'notice', 'check', 'browser'] as const

export const testPolicyOf = (policy: string) => `${policy}-test`

/** No policy of an operator may have one of these names. */
export const testPolicyNames: readonly string[] = policies.map(testPolicyOf)

/** Also the price: nothing is sent, so nothing is spent. */
const aboutRecipient = ['to', 'mailbox', 'prefix', 'country', 'dedupe', 'price']

type Rule = { readonly key: string; readonly permits?: unknown }
type Entry = Rule | { readonly include: string }

/** Takes policies that have been checked, by name. */
export function withTestPolicies<Policy extends readonly Entry[]>(
  all: Readonly<Record<string, Policy>>,
): Record<string, Policy> {
  const made = policies.map((name) => {
    // What is included includes nothing itself.
    const entries = (all[name] ?? []).flatMap((entry) =>
      'include' in entry ? (all[entry.include] ?? []) : [entry],
    )
    const rules = entries.filter((entry) => 'key' in entry && !isAboutRecipient(entry))
    return [testPolicyOf(name), rules as unknown as Policy] as const
  })
  return { ...all, ...Object.fromEntries(made) }
}

function isAboutRecipient({ key, permits }: Rule): boolean {
  return aboutRecipient.some((field) => key.includes(`{${field}}`) || permits === field)
}
