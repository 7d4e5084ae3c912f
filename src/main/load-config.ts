import { resolve } from 'node:path'
import { channels } from '../base/channel.ts'
import type { SectionChecks } from '../config/cross-checks.ts'
import { type Environment, readEnvironment } from '../config/environment.ts'
import { parsePolicyFile, readPolicyFile } from '../config/policy-file.ts'
import type { PolicyFile } from '../config/policy-schema.ts'
import { providerPolicies } from '../delivery/provider-limits.ts'
import { loadTemplates, type Templates } from '../delivery/templates.ts'
import { parsePolicies } from '../limiter/index.ts'
import { findProviderKind, providerKinds } from '../providers/index.ts'
import { readTestRecipient } from '../recipient/test-recipients.ts'

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
