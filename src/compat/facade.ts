/**
 * A façade answers other people's clients by the calls in process. It is a plugin that this package brings, and uses
 * nothing of Postern but these calls.
 */
import type { z } from 'zod'
import type { Plugin } from '../http/plugins.ts'

export interface Facade<Settings = unknown> {
  /** The schema of its section under `compat` in the policy file. */
  readonly settings: z.ZodType<Settings>
  /** The secrets of its section, by their places in it. */
  secretsIn?(settings: Settings): Readonly<Record<string, string>>
  /** Makes the plugin. Must have no effects: the policy file may be read again at any time. */
  create(settings: Settings): Plugin
}

/** Infers the type of the settings from the schema. The result has no such type, so all façades fit into one list. */
export function defineFacade<Settings>(facade: Facade<Settings>): Facade {
  return facade as unknown as Facade
}
