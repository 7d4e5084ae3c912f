import { resolve } from 'node:path'
import { channels } from '../base/channel.ts'
import type { SectionChecks } from '../config/cross-checks.ts'
import { type Environment, readEnvironment } from '../config/environment.ts'
import type { Finding } from '../config/located-yaml.ts'
import { parsePolicyFile, readPolicyFile } from '../config/policy-file.ts'
import type { PolicyFile } from '../config/policy-schema.ts'
import { providerPolicies } from '../delivery/provider-limits.ts'
import { loadTemplates, type Templates } from '../delivery/templates.ts'
import { type Policies, parsePolicies, type Rule } from '../limiter/index.ts'
import { findProviderKind, providerKinds } from '../providers/index.ts'
import { readTestRecipient } from '../recipient/test-recipients.ts'
import {
  declaringPolicies,
  fieldsOfPolicy,
  pagePolicy,
  testPolicyNames,
} from '../rules/policies.ts'

export interface Config {
  readonly environment: Environment
  readonly file: PolicyFile
  readonly templates: Templates
}

/** The environment, the policy file (or its text) and the templates; every problem of all at once. */
export function loadConfig(
  env: Readonly<Record<string, string | undefined>>,
  policy: string | { text: string; path: string } = env.POSTERN_CONFIG || './postern.yaml',
): { ok: true; config: Config } | { ok: false; problems: string[] } {
  const environment = readEnvironment(env)
  let templates: Templates | undefined
  const checks: SectionChecks = {
    ...sectionChecks,
    templates(folder) {
      const checked = readTemplates(folder)
      if ('has' in checked) templates = checked
      return checked
    },
  }
  const file =
    typeof policy === 'string'
      ? readPolicyFile(policy, env, checks)
      : parsePolicyFile(policy.text, policy.path, env, checks)
  if (environment.ok && file.ok && templates) {
    return {
      ok: true,
      config: { environment: environment.environment, file: file.file, templates },
    }
  }
  return {
    ok: false,
    problems: [...(environment.ok ? [] : environment.problems), ...(file.ok ? [] : file.problems)],
  }
}

/** What the rooms behind say about their parts of the file. */
export const sectionChecks: SectionChecks = {
  policies(raw, prices) {
    const parsed = parsePolicies(raw)
    return parsed.ok ? policyFindings(parsed.policies, prices) : [...parsed.problems]
  },
  provider(name, { kind, pace, quotas, settings }) {
    const known = findProviderKind(String(kind))
    if (!known) {
      const kinds = providerKinds.map((each) => each.kind).join(', ')
      return [{ path: ['kind'], message: `"${kind}" is none of ${kinds}` }]
    }
    const limits = parsePolicies(providerPolicies({ [name]: { pace, quotas } }))
    const ofLimits = limits.ok ? [] : limits.problems
    const parsed = known.settings.safeParse(settings)
    const ofSettings = parsed.success ? [] : parsed.error.issues
    return [
      ...ofLimits.map(({ path, message }) => ({
        path: [pace !== undefined && path[1] === 0 ? 'pace' : 'quotas'],
        message,
      })),
      ...ofSettings.flatMap((issue) => {
        const at = issue.path as (string | number)[]
        return issue.code === 'unrecognized_keys'
          ? issue.keys.map((key) => ({ path: [...at, key], message: 'unknown key' }))
          : [{ path: at, message: issue.message }]
      }),
    ]
  },
  readRecipient: (to, defaultCountry) => readTestRecipient(to, defaultCountry)?.to,
  channelsOf: (kind) => findProviderKind(kind)?.channels ?? channels,
  templates: readTemplates,
}

function readTemplates(folder: string): Templates | { problems: string[] } {
  try {
    return loadTemplates(folder)
  } catch (error) {
    const [, ...problems] = (error as Error).message.split('\n')
    return { problems: problems.map((problem) => resolve(folder, problem)) }
  }
}

/** What would otherwise be found out by the first request, as a 500. */
function policyFindings(policies: Policies, prices: Prices | undefined): Finding[] {
  const reserved = testPolicyNames.filter((name) => Object.hasOwn(policies, name))
  const ofNames = reserved.map((name) => ({
    path: [name],
    message: 'is the name of what test recipients are asked; choose another',
  }))
  const ofRules = declaringPolicies.flatMap((name): Finding[] => {
    const rules = policies[name]
    if (!rules) {
      return [{ path: [], message: `${name} is missing; write "${name}: []" for no limits` }]
    }
    // What a policy includes is looked at where it is declared; it stands in one place before the rest.
    const own = rules.filter(({ policy }) => policy === name)
    const isBehindCaptcha = name === pagePolicy && policies.captcha !== undefined
    const first = own.length < rules.length || isBehindCaptcha ? 1 : 0
    return own.flatMap((rule, index) =>
      [...fieldFindings(rule, fieldsOfPolicy(name)), ...priceFindings(rule, prices)].map(
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
function priceFindings({ permits, windows }: Rule, prices: Prices | undefined): Finding[] {
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
function fieldFindings({ fields, permits }: Rule, known: readonly string[]): Finding[] {
  const unknown = fields.filter((field) => !known.includes(field))
  const findings: Finding[] = unknown.map((field) => ({
    path: ['key'],
    message: `there is no field {${field}} here; there are ${known.join(', ')}`,
  }))
  const hasPrice = known.includes('dedupe')
  if (typeof permits === 'string' && !(hasPrice && permits === 'price')) {
    const message = hasPrice ? 'is a number, or price' : 'is a number here'
    findings.push({ path: ['permits'], message })
  }
  return findings
}
