import { type Policies, type PolicyProblem, parsePolicies, type Rule } from '../limiter/index.ts'
import {
  declaringPolicies,
  fieldsOfPolicy,
  isCheckPolicy,
  type PageRules,
  pageCheckPolicy,
  pageGuessPolicy,
  pagePolicy,
  pageSectionOf,
  policiesInUse,
  testPolicyOf,
  withPageRules,
} from './policies.ts'

/** Sections of the policy file that are checked together. */
interface Sections {
  readonly policies?: Readonly<Record<string, unknown>> | undefined
  readonly pageRules: PageRules
  /** Prices for rules with `permits: price`, by name; undefined without the section. */
  readonly prices?: Prices | undefined
}

/**
 * Problems in the rules of a policy file. These are rules that the limiter can't read, and faults that the first
 * request would otherwise show as a 500. Rules for pages are checked together with the rules of all callers, as in
 * use.
 */
export function problemsOfPolicies({ policies, pageRules, prices }: Sections): PolicyProblem[] {
  if (policies === undefined) return []
  const taken = Object.keys(policies).filter((name) => pageSectionOf(name) !== undefined)
  if (taken.length > 0) {
    return taken.map((name) => ({
      path: ['policies', name],
      message: `"${name}" is a reserved name; its rules belong in ${pageSectionOf(name)}`,
    }))
  }
  const lists = withPageRules(policies, pageRules)
  const parsed = parsePolicies(lists)
  const problems = parsed.ok
    ? problemsOfParsed(parsed.policies, lists as Lists, prices)
    : parsed.problems
  return problems.flatMap(({ path, message }) => {
    const [policy = '', index, ...rest] = path
    if (policy === pagePolicy) {
      const first = Object.hasOwn(policies, 'captcha') ? 1 : 0
      // Problems of captcha's rules are reported under captcha.
      if (typeof index !== 'number' || index < first) return []
      return [{ path: ['browser', 'rules', index - first, ...rest], message }]
    }
    if (policy === pageCheckPolicy) {
      return [{ path: ['browser', 'checkRules', index ?? 0, ...rest], message }]
    }
    // The two lists were checked alone. Together, the only new mistake can be a name that both have.
    if (policy === pageGuessPolicy) {
      return index === 1 ? [{ path: ['browser', 'checkRules'], message }] : []
    }
    return [{ path: ['policies', ...path], message }]
  })
}

type Lists = Readonly<Record<string, readonly { name?: string; include?: string }[]>>

/** `lists`: the policies as they are written. */
function problemsOfParsed(
  policies: Policies,
  lists: Lists,
  prices: Prices | undefined,
): PolicyProblem[] {
  const inUse = policiesInUse(policies)
  const missing = declaringPolicies
    .filter((name) => !policies[name])
    .map((name) => ({ path: [], message: `${name} is missing; write "${name}: []" for no limits` }))
  const reserved = inUse
    .filter((name) => !isCheckPolicy(name))
    .map(testPolicyOf)
    .filter((name) => Object.hasOwn(policies, name))
    .map((name) => ({
      path: [name],
      message: 'is reserved for sends to test recipients; choose another name',
    }))
  const ofRules = inUse.flatMap((name) => {
    const known = fieldsOfPolicy(name)
    /** Where its own policy is in use with the same fields, the problem is reported there. */
    const isElsewhere = ({ policy }: Rule) =>
      policy !== name && inUse.includes(policy) && fieldsOfPolicy(policy) === known
    return (policies[name] ?? [])
      .filter((rule) => !isElsewhere(rule))
      .flatMap((rule) =>
        [...fieldProblems(rule, known), ...priceProblems(rule, prices)].map((problem) =>
          placed(problem, rule, name, lists[name] ?? []),
        ),
      )
  })
  return [...reserved, ...ofRules, ...missing]
}

/** The problem of a rule, at its place in the list of `policy`. An included rule has the place of its include. */
function placed(
  { path, message }: PolicyProblem,
  rule: Rule,
  policy: string,
  list: Lists[string],
): PolicyProblem {
  if (rule.policy === policy) {
    return { path: [policy, list.findIndex(({ name }) => name === rule.name), ...path], message }
  }
  const direct = list.findIndex(({ include }) => include === rule.policy)
  const index = direct >= 0 ? direct : list.findIndex(({ include }) => include !== undefined)
  return { path: [policy, index, 'include'], message: `${rule.policy}.${rule.name}: ${message}` }
}

type Prices = Readonly<Record<string, number>>

/** A message whose price is above a rule's limit could never be sent, and would cause a 500. */
function priceProblems({ permits, windows }: Rule, prices: Prices | undefined): PolicyProblem[] {
  if (permits !== 'price') return []
  if (!prices) return [{ path: ['permits'], message: 'price needs the section prices' }]
  const limits = windows.map(({ limit }) => limit).filter((limit) => limit > 0)
  const lowest = Math.min(...limits)
  return Object.entries(prices)
    .filter(([, price]) => price > lowest)
    .map(([name, price]) => ({
      path: ['permits'],
      message: `prices.${name} is ${price}, above the limit ${lowest} of this rule, so it could never be sent`,
    }))
}

/** Fields in a rule that requests do not have. */
function fieldProblems({ fields, permits }: Rule, known: readonly string[]): PolicyProblem[] {
  const unknown = fields.filter((field) => !known.includes(field))
  const problems: PolicyProblem[] = unknown.map((field) => ({
    path: ['key'],
    message: `there is no field {${field}} here; there are ${known.join(', ')}`,
  }))
  const hasPrice = known.includes('dedupe')
  if (typeof permits === 'string' && !(hasPrice && permits === 'price')) {
    const message = hasPrice ? 'must be a number, or price' : 'must be a number here'
    problems.push({ path: ['permits'], message })
  }
  return problems
}
