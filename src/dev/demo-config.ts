/**
 * What the demo runs on: the environment and the policy file, as every process reads them. Where all messages of the file
 * go to one sandbox, a second one stands behind it, so that the first may fail before a visitor's eyes.
 */
import { readFileSync } from 'node:fs'
import { parse, stringify } from 'yaml'
import type { PolicyFile } from '../config/policy-schema.ts'
import { loadConfig } from '../main/load-config.ts'

type Env = Readonly<Record<string, string | undefined>>

/** The provider behind the first. */
export const reserveName = 'reserve'

export async function loadDemoConfig(env: Env): ReturnType<typeof loadConfig> {
  const given = await loadConfig(env)
  const only = given.ok ? onlySandbox(given.config.file) : undefined
  if (!given.ok || !only) return given
  const path = given.config.environment.POSTERN_CONFIG
  const policy = parse(readFileSync(path, 'utf8'))
  policy.providers[only].switchable = true
  policy.providers[reserveName] = { kind: 'sandbox' }
  for (const routes of Object.values<{ use: unknown[] }[]>(policy.routes)) {
    for (const route of routes) route.use = [only, reserveName]
  }
  return loadConfig(env, { text: stringify(policy), path })
}

/** The one that a visitor may switch off. */
export const switchableIn = ({ providers }: PolicyFile): string | undefined =>
  Object.keys(providers).find((name) => {
    const { settings } = providers[name] as { settings: { switchable?: boolean } }
    return settings.switchable === true
  })

function onlySandbox({ providers }: PolicyFile): string | undefined {
  const [[name, entry] = [], ...others] = Object.entries(providers)
  return others.length === 0 && entry?.kind === 'sandbox' ? name : undefined
}
