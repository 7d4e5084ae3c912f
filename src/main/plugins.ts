/**
 * Additions to Postern by its host and by the policy file's `plugins:`: provider kinds, and routers beside ours. What is
 * wrong with one is reported at start, by the plugin's name; a process never runs with half of what its file names.
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
  /** In messages, the log and metrics. In a file it may be missing: then it is the file as `plugins:` names it. */
  readonly name: string
  /** By the name that each has as `kind`. */
  // biome-ignore lint/suspicious/noExplicitAny: settings are the kind's own affair
  readonly providerKinds?: Readonly<Record<string, ProviderKind<any>>>
  /**
   * Called once per API, before it listens. The router is asked after all paths of Postern; what it throws is answered as
   * `internal`. Workers and commands never call it.
   */
  router?(postern: PosternCalls): Router | Promise<Router>
}

/** A plugin, or a function that makes it. */
export type PluginOrMaker = Plugin | (() => Plugin | Promise<Plugin>)

/** What a host hands to `createPostern`. */
export interface Additions {
  /** By the name that each has as `kind`. */
  readonly providerKinds?: Plugin['providerKinds']
  readonly plugins?: readonly PluginOrMaker[]
}

export type Extensions = ReturnType<typeof createExtensions>

/** How long a plugin may take to load, or to make its router. */
const defaultWithinMs = 10_000

/** The additions of one Postern. Both ways to add reject with an Error that names what can not be used. */
export function createExtensions({ startWithinMs = defaultWithinMs } = {}) {
  const kinds = createProviderKinds()
  const plugins: Plugin[] = []

  function addKinds(providerKinds: unknown): void {
    if (!isObject(providerKinds)) throw new Error('providerKinds is no object')
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

  /** `given` is what a host hands over, or the default export of a module; `name` is for what has none. */
  async function add(given: unknown, name: string): Promise<void> {
    let told = name
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
      told = own
      if (providerKinds === undefined && router === undefined) {
        throw new Error('has neither providerKinds nor router')
      }
      if (router !== undefined && typeof router !== 'function') {
        throw new Error('router is no function')
      }
      if (providerKinds !== undefined) addKinds(providerKinds)
      plugins.push({ name: own, ...(router ? { router: router.bind(made) } : {}) })
    } catch (error) {
      throw new Error(`plugin ${told}: ${messageOf(error)}`, { cause: error })
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
    /** One of the policy file at this path. */
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

/** A path is relative to the policy file; a package is one that is installed beside the file, or else beside Postern. */
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

/** A function is called once per process, also when the policy file is read again. */
async function madeBy(maker: () => unknown): Promise<unknown> {
  const made = madeOnce.get(maker) ?? (async () => maker())()
  madeOnce.set(maker, made)
  return made
}

const madeOnce = new WeakMap<() => unknown, Promise<unknown>>()
