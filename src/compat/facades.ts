import { isObject } from '../base/json.ts'
import { camara } from './camara/index.ts'
import type { Facade } from './facade.ts'
import { hooks } from './hooks/index.ts'
import { twilioVerify } from './twilio-verify/index.ts'

/** The façades by their names under `compat` in the policy file. */
export const facades: Readonly<Record<string, Facade>> = { twilioVerify, camara, hooks }

/** The values of every `app` in the settings of façades. */
export function appsIn(settings: unknown): string[] {
  if (!isObject(settings)) return []
  return Object.entries(settings).flatMap(([name, value]) =>
    name === 'app' && typeof value === 'string' ? [value] : appsIn(value),
  )
}
