/**
 * Plugins of the host and of `plugins:` in the policy file. A plugin adds provider kinds and a router. Faults are reported
 * at start with the name of the plugin, and a process never runs with only some of its plugins.
 */
import type { Router } from 'express'
import { isObject } from '../base/json.ts'
import { importPlugin, pluginError, startPlugin } from '../config/plugin-module.ts'
import type { PosternCalls } from '../http/in-process.ts'
import type { NamedRouter } from '../http/plugin-router.ts'
import type { GivenTemplates } from '../notice/templates.ts'
import { createProviderKinds } from '../providers/kinds.ts'
import type { ProviderKind } from '../providers/provider-kind.ts'

export interface Plugin {
  /** The name in messages, the log and metrics. Without it, the name is the entry under `plugins:`. */
  readonly name: string
  /** By the name that each has as `kind`. */
  // biome-ignore lint/suspicious/noExplicitAny: settings are the kind's own affair
  readonly providerKinds?: Readonly<Record<string, ProviderKind<any>>>
  /**
   * Policies by name, as under `policies` in the policy file. One that includes `captcha` can be named in `sendCaptcha`,
   * and then decides in its place.
   */
  readonly policies?: Readonly<Record<string, readonly unknown[]>>
  /** Templates by name. The folder must not have a template of the same name. */
  readonly templates?: GivenTemplates
  /** `sendCaptcha` accepts codes of the caller's own in process, also if the policy file does not set `code.own`. */
  readonly sendsOwnCodes?: true
  /**
   * Called once per API, before it listens. The router runs after all paths of Postern, and its errors become the problem
   * `internal`. Workers and commands never call it.
   */
  router?(postern: PosternCalls): Router | Promise<Router>
}

/** A plugin, or a function that returns it. */
export type PluginOrMaker = Plugin | (() => Plugin | Promise<Plugin>)

/** The additions that a host passes to `createPostern`. */
export interface Additions {
  /** By the name that each has as `kind`. */
  readonly providerKinds?: Plugin['providerKinds']
  readonly plugins?: readonly PluginOrMaker[]
}

/** The policies of all of them, by name. */
export const policiesOf = (plugins: readonly Plugin[]): NonNullable<Plugin['policies']> =>
  Object.assign({}, ...plugins.map(({ policies }) => policies))

export type Extensions = ReturnType<typeof createExtensions>

/** Time limit for loading a plugin, and for making its router. */
const startWithinMs = 10_000

/** The additions of one Postern. Both `add` functions reject with an Error that names the plugin. */
export function createExtensions({ withinMs = startWithinMs } = {}) {
  const kinds = createProviderKinds()
  const plugins: Plugin[] = []

  function addKinds(providerKinds: unknown): void {
    if (!isObject(providerKinds)) throw new Error('providerKinds is not an object')
    for (const [name, kind] of Object.entries(providerKinds)) {
      try {
        kinds.add(kind)
        const { kind: own } = kind as ProviderKind
        if (own !== name) throw new Error(`is the kind "${own}"; both names must be the same`)
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
    const { providerKinds, policies, templates, sendsOwnCodes, router } = given as Partial<Plugin>
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
    plugins.push({
      name,
      ...(policies ? { policies } : {}),
      ...(templates ? { templates } : {}),
      ...(sendsOwnCodes ? { sendsOwnCodes } : {}),
      ...(router ? { router: router.bind(given) } : {}),
    })
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
    kinds,
    plugins: plugins as readonly Plugin[],
    /** Adds a plugin of this package. */
    addFacade: (plugin: Plugin) => void plugins.push(plugin),
    async addOfHost({ providerKinds = {}, plugins: given = [] }: Additions): Promise<void> {
      addKinds(providerKinds)
      if (!Array.isArray(given)) throw new Error('plugins is not a list')
      for (const [index, plugin] of given.entries()) {
        await add(`plugins[${index}]`, () => plugin, 'was not made')
      }
    },
    /** Adds a module that the policy file at this path names. */
    addModule: (specifier: string, policyPath: string) =>
      add(specifier, () => importPlugin(policyPath, specifier), 'was not loaded'),
  }
}

const isPluginName = (name: unknown): name is string =>
  typeof name === 'string' && /^[^\p{C}]{1,200}$/u.test(name)

/** The routers of the plugins, in their order. Rejects with an Error that names the plugin. */
export async function openRouters(
  plugins: readonly Plugin[],
  postern: PosternCalls,
  withinMs = startWithinMs,
): Promise<NamedRouter[]> {
  const routers: NamedRouter[] = []
  for (const plugin of plugins) {
    const { name } = plugin
    if (!plugin.router) continue
    const open = async () => {
      const router = await plugin.router?.(postern)
      if (typeof router !== 'function') throw new Error('router returned no express.Router')
      return router
    }
    const router = await startPlugin(name, open, { late: 'router did not return', withinMs })
    routers.push({ name, router })
  }
  return routers
}

/** A function is called once per process, even when the policy file is read again. */
async function madeBy(given: unknown): Promise<unknown> {
  if (typeof given !== 'function') return given
  const made = madeOnce.get(given) ?? (async () => given())()
  madeOnce.set(given, made)
  return made
}

const madeOnce = new WeakMap<object, Promise<unknown>>()
