import type { Facade } from './facade.ts'
import { twilioVerify } from './twilio-verify/index.ts'

/** By their names under `compat` in the policy file. */
export const facades: Readonly<Record<string, Facade>> = { twilioVerify }
