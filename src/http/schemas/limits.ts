import { z } from 'zod'
import { ip, plainText } from './words.ts'

const maxFields = 32

export const acquireBody = z
  .strictObject({
    fields: z
      .record(
        z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]{0,31}$/, 'is a name of letters, digits and _'),
        z.union([plainText(320), z.number()]),
      )
      .refine((fields) => Object.keys(fields).length <= maxFields, `at most ${maxFields} fields`)
      .refine((fields) => !('app' in fields), 'app is the app of your key')
      .meta({ description: "Values for the fields in the rules' keys." }),
    permits: z.int().min(1).default(1).meta({ description: 'How much to take from every rule.' }),
  })
  .meta({ id: 'Acquire' })

export const attemptBody = z
  .strictObject({
    policy: z.string().min(1).max(64).meta({ description: 'A policy of the policy file.' }),
    subject: plainText(320).min(1).meta({ description: 'Who logs in, as the caller names them.' }),
    ip: ip.optional(),
  })
  .meta({ id: 'Attempt' })

export const permitsTaken = z
  .object({
    allowed: z.literal(true),
    remaining: z
      .array(z.object({ rule: z.string(), window: z.string(), left: z.int() }))
      .meta({ description: 'What is left in every window of every rule.' }),
  })
  .meta({ id: 'PermitsTaken' })

export const tryAllowed = z
  .object({
    allowed: z.literal(true),
    triesLeft: z.int().meta({ description: 'Tries left before the lock.' }),
  })
  .meta({ id: 'AttemptAllowed' })
