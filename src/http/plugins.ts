/**
 * The plugins of a host and of `plugins:` in the policy file: which values are plugins, and which parts they have. Faults
 * are reported at start with the name of the plugin, so a process never runs with only some of its plugins.
 */
import type { Router } from 'express'
import { isObject } from '../base/json.ts'
import type { GivenTemplates } from '../notice/templates.ts'
import type { ProviderKind } from '../providers/provider-kind.ts'
import type { PosternCalls } from './in-process.ts'
import { importPlugin, pluginError, startPlugin } from './plugin-module.ts'
import type { NamedRouter } from './plugin-router.ts'

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

/** Time limit for loading a plugin, and for making its router. */
const startWithinMs = 10_000

/**
 * The plugins of one Postern. `kinds` accepts their provider kinds, and throws for a wrong one. All `add` functions but
 * `addFacade` reject with an Error that names the plugin.
 */
export function createPluginList(
  kinds: { add(kind: unknown): void },
  { withinMs = startWithinMs } = {},
) {
  const plugins: Plugin[] = []

  function addKinds(providerKinds: unknown): void {
    if (!isObject(providerKinds)) throw new Error('providerKinds is not an object')
    for (const [name, kind] of Object.entries(providerKinds)) {
      try {
        kinds.add(kind)
        const { kind: own } = kind as { kind: string }
        if (own !== name) throw new Error(`has the kind "${own}"; both names must be the same`)
      } catch (error) {
        throw new Error(`providerKinds.${name}: ${(error as Error).message}`)
      }
    }
  }

  function addPlugin(given: unknown, name: unknown): void {
    if (!isObject(given)) throw new Error('is neither a plugin nor a provider kind')
    if ('create' in given) {
      kinds.add(given)
      return
    }
    const { providerKinds, policies, templates, sendsOwnCodes, router } = given
    if (!isPluginName(name)) throw new Error('its name is not 1 to 200 visible characters')
    if (plugins.some((other) => other.name === name)) {
      throw new Error('there is a plugin of this name already')
    }
    if (providerKinds === undefined && router === undefined) {
      throw new Error('has neither providerKinds nor router')
    }
    if (router !== undefined && typeof router !== 'function') {
      throw new Error('router is not a function')
    }
    for (const [part, value] of Object.entries({ policies, templates })) {
      if (value !== undefined && !isObject(value)) throw new Error(`${part} is not an object`)
    }
    if (providerKinds !== undefined) addKinds(providerKinds)
    const parts = { policies, templates, sendsOwnCodes, router: router?.bind(given) }
    plugins.push({ name, ...parts } as unknown as Plugin)
  }

  /** `load` returns a value of the host, or the default export of a module. `name` is used if the plugin has none. */
  async function add(name: string, load: () => unknown, late: string): Promise<void> {
    const given = await startPlugin(name, async () => madeBy(await load()), { late, withinMs })
    const { name: own = name } = isObject(given) ? given : {}
    try {
      addPlugin(given, own)
    } catch (error) {
      throw pluginError(isPluginName(own) ? own : name, error)
    }
  }

  return {
    plugins: plugins as readonly Plugin[],
    /** Adds a plugin of this package. */
    addFacade: (plugin: Plugin) => void plugins.push(plugin),
    /** Adds the provider kinds and the list of plugins that a host passes to `createPostern`. */
    async addOfHost(additions: Additions): Promise<void> {
      const { providerKinds = {}, plugins: given = [] } = additions
      addKinds(providerKinds)
      if (!Array.isArray(given)) throw new Error('plugins is not a list')
      for (const [index, plugin] of given.entries()) {
        await add(`plugins[${index}]`, () => plugin, 'its function did not return')
      }
    },
    /** Adds a module that the policy file at this path names. */
    addModule: (specifier: string, policyPath: string) =>
      add(specifier, () => importPlugin(policyPath, specifier), 'was not loaded'),
  }
}

const isPluginName = (name: unknown): name is string =>
  typeof name === 'string' && /^[^\p{C}]{1,200}$/u.test(name)

/** The policies of all plugins, by name. */
export const policiesOf = (plugins: readonly Plugin[]): NonNullable<Plugin['policies']> =>
  Object.assign({}, ...plugins.map(({ policies }) => policies))

/** The routers of the plugins, in their order. Rejects with an Error that names the plugin. */
export async function openRouters(
  plugins: readonly Plugin[],
  calls: PosternCalls,
  withinMs = startWithinMs,
): Promise<NamedRouter[]> {
  const routers: NamedRouter[] = []
  for (const plugin of plugins) {
    const { name } = plugin
    if (!plugin.router) continue
    const open = async () => {
      const router = await plugin.router?.(calls)
      if (typeof router !== 'function') throw new Error('router returned no express.Router')
      return router
    }
    const router = await startPlugin(name, open, { late: 'router did not return', withinMs })
    routers.push({ name, router })
  }
  return routers
}

/** If a plugin is given as a function, it is called once per process, even when the policy file is read again. */
async function madeBy(given: unknown): Promise<unknown> {
  if (typeof given !== 'function') return given
  const made = madeOnce.get(given) ?? (async () => given())()
  madeOnce.set(given, made)
  return made
}

const madeOnce = new WeakMap<object, Promise<unknown>>()
