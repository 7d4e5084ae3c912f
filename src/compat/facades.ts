import { camara } from './camara/index.ts'
import type { Facade } from './facade.ts'
import { hooks } from './hooks/index.ts'
import { twilioVerify } from './twilio-verify/index.ts'

/** The façades by their names under `compat` in the policy file. */
export const facades: Readonly<Record<string, Facade>> = { twilioVerify, camara, hooks }
