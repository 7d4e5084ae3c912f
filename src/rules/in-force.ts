import { type Policies, parsePolicies, type RawPolicies } from '../limiter/index.ts'
import { type PageRules, withPageRules } from './policies.ts'
import { withTestPolicies } from './test-policies.ts'

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
