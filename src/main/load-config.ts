import { type Environment, readEnvironment } from '../config/environment.ts'
import {
  type Finding,
  type PolicyFile,
  readPolicyFile,
  type SectionChecks,
} from '../config/policy-file.ts'
import { pacePolicies } from '../delivery/pace.ts'
import { type Policies, parsePolicies } from '../limiter/index.ts'
import { findProviderKind, providerKinds } from '../providers/index.ts'
import { loadTemplates, type Templates } from '../templates/templates.ts'

export interface Config {
  readonly environment: Environment
  readonly file: PolicyFile
  readonly templates: Templates
}

/** The environment, the policy file and the templates; every problem of all at once. */
export function loadConfig(
  env: Readonly<Record<string, string | undefined>>,
): { ok: true; config: Config } | { ok: false; problems: string[] } {
  const environment = readEnvironment(env)
  const path = env.POSTERN_CONFIG || './postern.yaml'
  const file = readPolicyFile(path, env, sectionChecks)
  const templates = file.ok ? readTemplates(file.file) : undefined
  if (environment.ok && file.ok && templates?.ok) {
    return {
      ok: true,
      config: {
        environment: environment.environment,
        file: file.file,
        templates: templates.templates,
      },
    }
  }
  return {
    ok: false,
    problems: [
      ...(environment.ok ? [] : environment.problems),
      ...(file.ok ? [] : file.problems),
      ...(templates && !templates.ok ? templates.problems : []),
    ],
  }
}

/** What the rooms behind say about their parts of the file. */
export const sectionChecks: SectionChecks = {
  policies(raw) {
    const parsed = parsePolicies(raw)
    return parsed.ok ? policyFindings(parsed.policies) : [...parsed.problems]
  },
  provider(name, { kind, pace, quotas, settings }) {
    const known = findProviderKind(String(kind))
    if (!known) {
      const kinds = providerKinds.map((each) => each.kind).join(', ')
      return [{ path: ['kind'], message: `"${kind}" is none of ${kinds}` }]
    }
    const limits = parsePolicies(pacePolicies({ [name]: { pace, quotas } }))
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
  channelsOf: (kind) => findProviderKind(kind)?.channels ?? ['sms', 'email'],
}

function readTemplates(
  file: PolicyFile,
): { ok: true; templates: Templates } | { ok: false; problems: string[] } {
  let templates: Templates
  try {
    templates = loadTemplates(file.templatesFolder)
  } catch (error) {
    return { ok: false, problems: (error as Error).message.split('\n') }
  }
  const problems = templatesNamedIn(file)
    .filter(({ template }) => !templates.has(template))
    .map(({ where, template }) => `${where}: there is no template "${template}"`)
  return problems.length > 0 ? { ok: false, problems } : { ok: true, templates }
}

/** Routes name templates, and so do providers that send by templates of their own. */
function templatesNamedIn(file: PolicyFile): { where: string; template: string }[] {
  const named: { where: string; template: string }[] = []
  for (const [name, { settings }] of Object.entries(file.providers)) {
    for (const template of Object.keys((settings.templates as object | undefined) ?? {})) {
      named.push({ where: `providers.${name}.templates`, template })
    }
  }
  for (const channel of ['email', 'sms'] as const) {
    file.routes[channel].forEach(({ match }, index) => {
      for (const template of match.template ?? []) {
        named.push({ where: `routes.${channel}.${index}.match.template`, template })
      }
    })
  }
  return named
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
