import { type Policies, type PolicyProblem, parsePolicies, type Rule } from '../limiter/index.ts'
import {
  declaringPolicies,
  fieldsOfPolicy,
  type PageRules,
  pageCheckPolicy,
  pageGuessPolicy,
  pagePolicy,
  pageSectionOf,
  testPolicyNames,
  withPageRules,
} from './policies.ts'

/** The sections of the policy file that are looked at together. */
interface Sections {
  readonly policies?: Readonly<Record<string, unknown>> | undefined
  readonly pageRules: PageRules
  /** What rules with `permits: price` take, by name; undefined where the file has none. */
  readonly prices?: Prices | undefined
}

/**
 * What is wrong with the rules of a policy file: what the limiter can't read, and what would otherwise be found out by the first
 * request, as a 500. The rules for pages are checked as the policies that they and the rules of all callers are together.
 */
export function problemsOfPolicies({ policies, pageRules, prices }: Sections): PolicyProblem[] {
  if (policies === undefined) return []
  const taken = Object.keys(policies).filter((name) => pageSectionOf(name) !== undefined)
  if (taken.length > 0) {
    return taken.map((name) => ({
      path: ['policies', name],
      message: `"${name}" is the name of ${pageSectionOf(name)}`,
    }))
  }
  const parsed = parsePolicies(withPageRules(policies, pageRules))
  const problems = parsed.ok ? problemsOfParsed(parsed.policies, prices) : parsed.problems
  return problems.flatMap(({ path, message }) => {
    const [policy = '', index, ...rest] = path
    if (policy === pagePolicy) {
      const first = Object.hasOwn(policies, 'captcha') ? 1 : 0
      // What is wrong with captcha's rules is said of them.
      if (typeof index !== 'number' || index < first) return []
      return [{ path: ['browser', 'rules', index - first, ...rest], message }]
    }
    if (policy === pageCheckPolicy) {
      return [{ path: ['browser', 'checkRules', index ?? 0, ...rest], message }]
    }
    // Only a name that stands in both lists is wrong with them together.
    if (policy === pageGuessPolicy) {
      return index === 1 ? [{ path: ['browser', 'checkRules'], message }] : []
    }
    return [{ path: ['policies', ...path], message }]
  })
}

function problemsOfParsed(policies: Policies, prices: Prices | undefined): PolicyProblem[] {
  const reserved = testPolicyNames.filter((name) => Object.hasOwn(policies, name))
  const ofNames = reserved.map((name) => ({
    path: [name],
    message: 'is the name of what test recipients are asked; choose another',
  }))
  const ofRules = declaringPolicies.flatMap((name): PolicyProblem[] => {
    const rules = policies[name]
    if (!rules) {
      return [{ path: [], message: `${name} is missing; write "${name}: []" for no limits` }]
    }
    // What a policy includes is looked at where it is declared; it stands in one place before the rest.
    const own = rules.filter(({ policy }) => policy === name)
    const isBehindCaptcha = name === pagePolicy && policies.captcha !== undefined
    const first = own.length < rules.length || isBehindCaptcha ? 1 : 0
    return own.flatMap((rule, index) =>
      [...fieldProblems(rule, fieldsOfPolicy(name)), ...priceProblems(rule, prices)].map(
        ({ path, message }) => ({
          path: [name, first + index, ...path],
          message,
        }),
      ),
    )
  })
  return [...ofNames, ...ofRules]
}

type Prices = Readonly<Record<string, number>>

/** A message that costs more than a rule ever gives could never be sent, and would be a 500. */
function priceProblems({ permits, windows }: Rule, prices: Prices | undefined): PolicyProblem[] {
  if (permits !== 'price') return []
  if (!prices) return [{ path: ['permits'], message: 'price needs the section prices' }]
  const limits = windows.map(({ limit }) => limit).filter((limit) => limit > 0)
  const lowest = Math.min(...limits)
  return Object.entries(prices)
    .filter(([, price]) => price > lowest)
    .map(([name, price]) => ({
      path: ['permits'],
      message: `prices.${name} is ${price}, and this rule never has more than ${lowest}`,
    }))
}

/** What a rule asks for that requests do not have. */
function fieldProblems({ fields, permits }: Rule, known: readonly string[]): PolicyProblem[] {
  const unknown = fields.filter((field) => !known.includes(field))
  const problems: PolicyProblem[] = unknown.map((field) => ({
    path: ['key'],
    message: `there is no field {${field}} here; there are ${known.join(', ')}`,
  }))
  const hasPrice = known.includes('dedupe')
  if (typeof permits === 'string' && !(hasPrice && permits === 'price')) {
    const message = hasPrice ? 'is a number, or price' : 'is a number here'
    problems.push({ path: ['permits'], message })
  }
  return problems
}
