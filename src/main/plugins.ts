/**
 * Plugins of the host and of `plugins:` in the policy file. A plugin adds provider kinds and a router. Faults are reported
 * at start with the name of the plugin, and a process never runs with only some of its plugins.
 */
import { createRequire } from 'node:module'
import { dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { RequestHandler, Router } from 'express'
import { orLate } from '../base/deadline.ts'
import { isObject } from '../base/json.ts'
import type { PosternCalls } from '../http/in-process.ts'
import { createProviderKinds } from '../providers/kinds.ts'
import type { ProviderKind } from '../providers/provider-kind.ts'

export interface Plugin {
  /** The name in messages, the log and metrics. Without it, the name is the entry under `plugins:`. */
  readonly name: string
  /** By the name that each has as `kind`. */
  // biome-ignore lint/suspicious/noExplicitAny: settings are the kind's own affair
  readonly providerKinds?: Readonly<Record<string, ProviderKind<any>>>
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

export type Extensions = ReturnType<typeof createExtensions>

/** Time limit for loading a plugin, and for making its router. */
const defaultWithinMs = 10_000

/** The additions of one Postern. Both `add` functions reject with an Error that names the plugin. */
export function createExtensions({ startWithinMs = defaultWithinMs } = {}) {
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
        throw new Error(`providerKinds.${name}: ${messageOf(error)}`)
      }
    }
  }

  /** `given`: a value from the host, or the default export of a module. `name` is used if it has none. */
  async function add(given: unknown, name: string): Promise<void> {
    let label = name
    try {
      const made = typeof given === 'function' ? await madeBy(given as () => unknown) : given
      if (!isObject(made)) throw new Error('is neither a plugin nor a provider kind')
      if ('create' in made) {
        kinds.add(made)
        return
      }
      const { name: own = name, providerKinds, router } = made as Partial<Plugin>
      if (typeof own !== 'string' || !/^[^\p{C}]{1,200}$/u.test(own)) {
        throw new Error('its name is not 1 to 200 visible characters')
      }
      label = own
      if (providerKinds === undefined && router === undefined) {
        throw new Error('has neither providerKinds nor router')
      }
      if (router !== undefined && typeof router !== 'function') {
        throw new Error('router is not a function')
      }
      if (providerKinds !== undefined) addKinds(providerKinds)
      plugins.push({ name: own, ...(router ? { router: router.bind(made) } : {}) })
    } catch (error) {
      throw new Error(`plugin ${label}: ${messageOf(error)}`, { cause: error })
    }
  }

  return {
    kinds,
    plugins: plugins as readonly Plugin[],
    async addOfHost({ providerKinds = {}, plugins: given = [] }: Additions): Promise<void> {
      addKinds(providerKinds)
      for (const [index, plugin] of given.entries()) {
        const name = `plugins[${index}]`
        await inTime(add(plugin, name), startWithinMs, `plugin ${name}: was not made`)
      }
    },
    /** Adds a module that the policy file at this path names. */
    async addModule(specifier: string, policyPath: string): Promise<void> {
      const loading = importFrom(policyPath, specifier).then((given) => add(given, specifier))
      await inTime(loading, startWithinMs, `plugin ${specifier}: was not loaded`)
    },
  }
}

/** The routers of the plugins, in their order. Rejects with an Error that names the plugin. */
export async function openRouters(
  plugins: readonly Plugin[],
  postern: PosternCalls,
  startWithinMs = defaultWithinMs,
): Promise<{ name: string; router: RequestHandler }[]> {
  const routers: { name: string; router: RequestHandler }[] = []
  for (const plugin of plugins) {
    if (!plugin.router) continue
    const { name } = plugin
    try {
      const making = (async () => plugin.router?.(postern))()
      const router: unknown = await inTime(making, startWithinMs, 'router did not return')
      if (typeof router !== 'function') throw new Error('router returned no express.Router')
      routers.push({ name, router: router as RequestHandler })
    } catch (error) {
      throw new Error(`plugin ${name}: ${messageOf(error)}`, { cause: error })
    }
  }
  return routers
}

const inTime = <Result>(work: Promise<Result>, withinMs: number, late: string) =>
  orLate(work, withinMs, () => {
    throw new Error(`${late} within ${withinMs / 1_000} s`)
  })

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/** The default export of a module that the policy file at this path names. */
async function importFrom(policyPath: string, specifier: string): Promise<unknown> {
  try {
    const module: { default?: unknown } = await import(addressOf(policyPath, specifier))
    return module.default
  } catch (error) {
    const message = `plugin ${specifier}: can not be loaded: ${messageOf(error)}`
    throw new Error(message, { cause: error })
  }
}

/** A path is relative to the policy file. A package is searched beside the file, then beside Postern. */
function addressOf(policyPath: string, specifier: string): string {
  if (/^\.{0,2}\//.test(specifier)) {
    return pathToFileURL(resolve(dirname(policyPath), specifier)).href
  }
  try {
    return pathToFileURL(createRequire(resolve(policyPath)).resolve(specifier)).href
  } catch {
    return specifier
  }
}

/** Calls the function once per process, even when the policy file is read again. */
async function madeBy(maker: () => unknown): Promise<unknown> {
  const made = madeOnce.get(maker) ?? (async () => maker())()
  madeOnce.set(maker, made)
  return made
}

const madeOnce = new WeakMap<() => unknown, Promise<unknown>>()
