import { type Environment, readEnvironment } from '../config/environment.ts'
import {
  type Finding,
  type PolicyFile,
  readPolicyFile,
  type SectionChecks,
} from '../config/policy-file.ts'
import { type Policies, parsePolicies } from '../limiter/index.ts'
import { findProviderKind, providerKinds } from '../providers/index.ts'

export interface Config {
  readonly environment: Environment
  readonly file: PolicyFile
}

/** The environment and the policy file; every problem of both at once. */
export function loadConfig(
  env: Readonly<Record<string, string | undefined>>,
): { ok: true; config: Config } | { ok: false; problems: string[] } {
  const environment = readEnvironment(env)
  const path = env.POSTERN_CONFIG || './postern.yaml'
  const file = readPolicyFile(path, env, sectionChecks)
  if (environment.ok && file.ok) {
    return { ok: true, config: { environment: environment.environment, file: file.file } }
  }
  return {
    ok: false,
    problems: [...(environment.ok ? [] : environment.problems), ...(file.ok ? [] : file.problems)],
  }
}

/** What the rooms behind say about their parts of the file. */
export const sectionChecks: SectionChecks = {
  policies(raw) {
    const parsed = parsePolicies(raw)
    return parsed.ok ? policyFindings(parsed.policies) : [...parsed.problems]
  },
  provider(_name, { kind, ...settings }) {
    const known = findProviderKind(String(kind))
    if (!known) {
      const kinds = providerKinds.map((each) => each.kind).join(', ')
      return [{ path: ['kind'], message: `"${kind}" is none of ${kinds}` }]
    }
    const parsed = known.settings.safeParse(settings)
    if (parsed.success) return []
    return parsed.error.issues.flatMap((issue) => {
      const at = issue.path as (string | number)[]
      return issue.code === 'unrecognized_keys'
        ? issue.keys.map((key) => ({ path: [...at, key], message: 'unknown key' }))
        : [{ path: at, message: issue.message }]
    })
  },
}

const checkFields = ['to', 'channel', 'scene', 'app', 'ip', 'country']
const sendFields = [...checkFields, 'template', 'dedupe']

/** The policies the product itself asks, and the fields it has for their keys. */
const ownPolicies: Readonly<Record<string, readonly string[]>> = {
  captcha: sendFields,
  notice: sendFields,
  check: checkFields,
}

/** What would otherwise be found out by the first request, as a 500. */
function policyFindings(policies: Policies): Finding[] {
  return Object.entries(ownPolicies).flatMap(([name, fields]): Finding[] => {
    const rules = policies[name]
    if (!rules) {
      return [{ path: [], message: `${name} is missing; write "${name}: []" for no limits` }]
    }
    return rules.flatMap((rule, index) =>
      rule.fields
        .filter((field) => !fields.includes(field))
        .map((field) => ({
          path: [name, index, 'key'],
          message: `there is no field {${field}} here; there are ${fields.join(', ')}`,
        })),
    )
  })
}
