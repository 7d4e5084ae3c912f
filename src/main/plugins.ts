/** The types of plugins. `config/plugins.ts` checks and starts them. */
import type { Router } from 'express'
import { createPluginList } from '../config/plugins.ts'
import type { PosternCalls } from '../http/in-process.ts'
import type { GivenTemplates } from '../notice/templates.ts'
import { createProviderKinds } from '../providers/kinds.ts'
import type { ProviderKind } from '../providers/provider-kind.ts'

export interface Plugin {
  /** The name in messages, log lines and metrics. By default the entry under `plugins:`. */
  readonly name: string
  /** Provider kinds by their `kind`. */
  // biome-ignore lint/suspicious/noExplicitAny: settings are the kind's own affair
  readonly providerKinds?: Readonly<Record<string, ProviderKind<any>>>
  /**
   * Policies by name, as under `policies` in the policy file. `sendCaptcha` can name one that includes `captcha`. That
   * policy then decides in place of `captcha`.
   */
  readonly policies?: Readonly<Record<string, readonly unknown[]>>
  /** Templates by name. The folder must not have a template of the same name. */
  readonly templates?: GivenTemplates
  /** `sendCaptcha` accepts codes that the caller in process made, also if the policy file does not set `code.own`. */
  readonly sendsOwnCodes?: true
  /**
   * Called once per API, before it listens. The router runs after all paths of Postern, and its errors become the
   * problem `internal`. Workers and commands never call it.
   */
  router?(postern: PosternCalls): Router | Promise<Router>
}

/** The additions that a host passes to `createPostern`. */
export interface Additions {
  /** Provider kinds by their `kind`. */
  readonly providerKinds?: Plugin['providerKinds']
  /** Plugins, or functions that return one. */
  readonly plugins?: readonly (Plugin | (() => Plugin | Promise<Plugin>))[]
}

export type Extensions = ReturnType<typeof createExtensions>

/** The provider kinds and plugins of one Postern. */
export function createExtensions(options?: { withinMs?: number }) {
  const kinds = createProviderKinds()
  return { kinds, ...createPluginList<Plugin>(kinds, options) }
}

/** The policies of all plugins, by name. */
export const policiesOf = (plugins: readonly Plugin[]): NonNullable<Plugin['policies']> =>
  Object.assign({}, ...plugins.map(({ policies }) => policies))
