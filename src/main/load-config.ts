import { channels } from '../base/channel.ts'
import { facades } from '../compat/facades.ts'
import type { SectionChecks } from '../config/cross-checks.ts'
import { type Environment, readEnvironment } from '../config/environment.ts'
import { parsePolicyFile, readPolicyFile, settingsProblems } from '../config/policy-file.ts'
import type { PolicyFile } from '../config/policy-schema.ts'
import { limitProblems } from '../delivery/provider-limits.ts'
import { createPluginList, policiesOf } from '../http/plugins.ts'
import { parsePolicies } from '../limiter/index.ts'
import { readTemplates, type Templates } from '../notice/templates.ts'
import { createProviderKinds, type ProviderSetUp } from '../providers/kinds.ts'
import { readAddress } from '../recipient/normalise-recipient.ts'

export interface Config {
  readonly environment: Environment
  readonly file: PolicyFile
  readonly templates: Templates
  /** Providers by name. */
  readonly providers: ReadonlyMap<string, ProviderSetUp>
  readonly plugins: Extensions['plugins']
  readonly warnings: readonly string[]
  /** The secrets of `compat`, by their places in the policy file. */
  readonly facadeSecrets: Readonly<Record<string, string>>
}

/**
 * Reads the environment, the policy file (or its text) with its plugins, and the templates. Reports the problems of all
 * of them at once. `extensions` come from a host.
 */
export async function loadConfig(
  env: Readonly<Record<string, string | undefined>>,
  policy: string | { text: string; path: string } = env.POSTERN_CONFIG || './postern.yaml',
  extensions: Extensions = createExtensions(),
): Promise<{ ok: true; config: Config } | { ok: false; problems: string[] }> {
  const environment = readEnvironment(env)
  const checks = createSectionChecks(extensions)
  const file =
    typeof policy === 'string'
      ? await readPolicyFile(policy, env, checks)
      : await parsePolicyFile(policy.text, policy.path, env, checks)
  const { templates, ...found } = checks.found()
  if (environment.ok && file.ok && templates) {
    const { ok: _, ...read } = file
    const config = { environment: environment.environment, ...read, templates, ...found }
    return { ok: true, config }
  }
  const problems = [environment, file].flatMap((read) => (read.ok ? [] : read.problems))
  return { ok: false, problems }
}

export type Extensions = ReturnType<typeof createExtensions>

/** The provider kinds and plugins of one Postern. */
export function createExtensions(options?: { withinMs?: number }) {
  const kinds = createProviderKinds()
  return { kinds, ...createPluginList(kinds, options) }
}

/** The checks of other rooms for one reading of the file, and the values that they read. */
export function createSectionChecks(extensions = createExtensions()) {
  const { kinds, plugins } = extensions
  const providers = new Map<string, ProviderSetUp>()
  const facadeSecrets: Record<string, string> = {}
  let templates: Templates | undefined

  const checks: SectionChecks = {
    plugin: (specifier, path) =>
      extensions.addModule(specifier, path).then(
        () => undefined,
        ({ message }: Error) => message,
      ),
    facade(name, settings) {
      const facade = Object.hasOwn(facades, name) ? facades[name] : undefined
      if (!facade)
        return [{ path: [], message: `is not one of ${Object.keys(facades).join(', ')}` }]
      return settingsProblems(facade, settings, (read) => {
        extensions.addFacade(facade.create(read))
        for (const [place, secret] of Object.entries(facade.secretsIn?.(read) ?? {})) {
          facadeSecrets[`compat.${name}.${place}`] = secret
        }
      })
    },
    ownPolicies: () => policiesOf(plugins),
    provider(name, { kind, pace, quotas, settings }, path) {
      const known = kinds.find(kind)
      if (!known) {
        return [{ path: ['kind'], message: `"${kind}" is not one of ${kinds.names().join(', ')}` }]
      }
      return [
        ...limitProblems(name, { pace, quotas }, parsePolicies),
        ...settingsProblems(
          known,
          settings,
          (read) => providers.set(name, { kind: known, settings: read }),
          path,
        ),
      ]
    },
    readRecipient: (to, defaultCountry) => readAddress(to, defaultCountry)?.to,
    readMailbox: (to, defaultCountry) => readAddress(to, defaultCountry)?.mailbox,
    channelsOf(name, kind) {
      const setUp = providers.get(name)
      const chosen = setUp?.kind.channelsOf?.(setUp.settings)
      return chosen ?? kinds.find(kind)?.channels ?? channels
    },
    templates(folder) {
      const ofPlugins = Object.assign({}, ...plugins.map(({ templates }) => templates))
      const checked = readTemplates(folder, ofPlugins)
      if ('has' in checked) templates = checked
      return checked
    },
  }
  return { ...checks, found: () => ({ providers, plugins, templates, facadeSecrets }) }
}
