/**
 * The environment and the policy file of the demo, as every process reads them. If all messages go to one sandbox, the
 * demo adds a second one as reserve. So a visitor can switch the first one off and watch the failover. The mails of its form get a
 * link to the demo page. SMS to some numbers fail, so a visitor can watch how a call begins.
 */
import { readFileSync } from 'node:fs'
import { parse, stringify } from 'yaml'
import type { PolicyFile } from '../config/policy-schema.ts'
import { loadConfig } from '../main/load-config.ts'

type Env = Readonly<Record<string, string | undefined>>

export const reserveName = 'reserve'
/** Calls have a separate provider, because the others refuse these numbers. */
const callerName = 'caller'
const smsFail = [{ to: '+861380014*', result: 'rejected' }]

export async function loadDemoConfig(env: Env): ReturnType<typeof loadConfig> {
  const given = await loadConfig(env)
  const only = given.ok ? onlySandbox(given.config.file) : undefined
  if (!given.ok || !only) return given
  const path = given.config.environment.POSTERN_CONFIG
  const policy = parse(readFileSync(path, 'utf8'))
  Object.assign(policy.providers[only], { switchable: true, faults: smsFail })
  policy.providers[reserveName] = { kind: 'sandbox', faults: smsFail }
  policy.providers[callerName] = { kind: 'sandbox' }
  policy.links ??= { signup: `http://localhost:${given.config.environment.PORT}/` }
  for (const routes of Object.values<{ use: unknown[] }[]>(policy.routes)) {
    for (const route of routes) route.use = [only, reserveName]
  }
  policy.routes.voice = [{ use: [callerName] }]
  policy.workflows = { default: ['sms', 'voice', 'email'] }
  policy.browser = { ...policy.browser, workflows: ['default'] }
  return loadConfig(env, { text: stringify(policy), path })
}

/** The provider that a visitor can switch off. */
export const switchableIn = ({ providers }: PolicyFile): string | undefined =>
  Object.keys(providers).find((name) => {
    const { settings } = providers[name] as { settings: { switchable?: boolean } }
    return settings.switchable === true
  })

function onlySandbox({ providers }: PolicyFile): string | undefined {
  const [[name, entry] = [], ...others] = Object.entries(providers)
  return others.length === 0 && entry?.kind === 'sandbox' ? name : undefined
}
