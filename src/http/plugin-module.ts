/**
 * Loads and starts plugins. Their code is foreign, so each fault is reported with the name of the plugin: an error, a start
 * that does not end, an end of the process, and later an error outside all handlers.
 */
import { realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { orLate } from '../base/deadline.ts'

/** The plugins of this process, by the path with which their lines in stack traces begin. */
const pluginsByHome = new Map<string, string>()

/** The default export of a module that the policy file at this path names. */
export async function importPlugin(policyPath: string, specifier: string): Promise<unknown> {
  const address = addressOf(policyPath, specifier)
  try {
    if (address.startsWith('file:')) {
      const path = realpathSync(fileURLToPath(address))
      // Frames of ECMAScript modules have the URL, and frames of CommonJS have the path.
      for (const file of [pathToFileURL(path).href, path])
        pluginsByHome.set(homeOf(file), specifier)
    }
    const module: { default?: unknown } = await import(address)
    return module.default
  } catch (error) {
    throw new Error(`cannot be loaded: ${messageOf(error)}`, { cause: error })
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

/** The folder of a package. A file outside a package stands for itself: its folder may contain other plugins. */
function homeOf(file: string): string {
  const parts = file.split('/')
  const packages = parts.lastIndexOf('node_modules')
  if (packages === -1) return `${file}:`
  const isScoped = parts[packages + 1]?.startsWith('@')
  return `${parts.slice(0, packages + (isScoped ? 3 : 2)).join('/')}/`
}

/** The plugin whose code is in the stack of an error; undefined if there is none. */
export function pluginIn(error: unknown): string | undefined {
  const stack = error instanceof Error ? String(error.stack) : ''
  return [...pluginsByHome].find(([home]) => stack.includes(home))?.[1]
}

/**
 * Runs a step of the start of a plugin. Rejects with an Error that names the plugin, also if the step does not end in
 * time; `late`: the message in that case. If the process ends meanwhile, the plugin is named and the exit code is not
 * 0.
 */
export async function startPlugin<Result>(
  name: string,
  step: () => Result | Promise<Result>,
  { late, withinMs }: { late: string; withinMs: number },
): Promise<Result> {
  const onExit = () => {
    process.exitCode ||= 1
    console.error(`plugin ${name}: had not started yet when the process ended`)
  }
  process.once('exit', onExit)
  try {
    return await orLate((async () => step())(), withinMs, () => {
      throw new Error(`${late} within ${withinMs / 1_000} s`)
    })
  } catch (error) {
    throw pluginError(name, error)
  } finally {
    process.off('exit', onExit)
  }
}

export const pluginError = (name: string, error: unknown) =>
  new Error(`plugin ${name}: ${messageOf(error)}`, { cause: error })

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
