/**
 * What sends to test recipients are asked: the policies without the rules that count the recipient, so that one may be
 * sent to all day; those by address, key or app hold. Checks are asked what all checks are asked: a fixed code is
 * guessed at for longer than any other. They are policies of their own, with counts of their own: what is
 * tested takes nothing from what is sent. A stand-in for the recipient would leave a new count behind with
 * every request, which is what an open test number must not do.
 */
import { fieldsThat } from './fields.ts'
import { policiesWithTestVariant, testPolicyOf } from './policies.ts'

/** Also of the price: nothing is sent, so nothing is spent. */
const ofRecipient = fieldsThat(({ isOfRecipient }) => isOfRecipient)

type Rule = { readonly key: string; readonly permits?: unknown }
type Entry = Rule | { readonly include: string }

/** Takes policies that have been checked, by name. */
export function withTestPolicies<Policy extends readonly Entry[]>(
  all: Readonly<Record<string, Policy>>,
): Record<string, Policy> {
  const made = policiesWithTestVariant.map((name) => {
    const rules = rulesOf(all, name).filter((rule) => !isAboutRecipient(rule))
    return [testPolicyOf(name), rules as unknown as Policy] as const
  })
  return { ...all, ...Object.fromEntries(made) }
}

function rulesOf(all: Readonly<Record<string, readonly Entry[]>>, name: string): Rule[] {
  return (all[name] ?? []).flatMap((entry) =>
    'include' in entry ? rulesOf(all, entry.include) : [entry],
  )
}

function isAboutRecipient({ key, permits }: Rule): boolean {
  return ofRecipient.some((field) => key.includes(`{${field}}`) || permits === field)
}
