import { z } from 'zod'
import { notAllowedBecause } from '../../recipient/normalise-recipient.ts'
import { checkResults } from '../../support/history.ts'
import { operated, resettable } from '../../support/operations.ts'
import { noticeView } from './notices.ts'
import { channel, ip, plainText, recipient, scene, time } from './words.ts'

export const lookupBody = z
  .strictObject({ channel, to: recipient, ip: ip.optional() })
  .meta({ id: 'LookUpRecipient' })

export const resetBody = z
  .strictObject({
    channel,
    to: recipient,
    ip: ip.optional(),
    what: z
      .array(z.enum(resettable))
      .min(1)
      .refine((list) => new Set(list).size === list.length, 'names one twice')
      .meta({ description: 'What to take back.' }),
    reason: plainText(500).min(1).meta({ description: 'Why; it is kept with the record.' }),
  })
  .meta({ id: 'ResetRecipient' })

const windowName = z.string().meta({ description: 'As the policy file spells it.' })

/** Whether a message may go there, or what about it is not allowed. */
const destinations = ['allowed', ...notAllowedBecause] as const

export const recipientStory = z
  .object({
    to: z.string().meta({ description: 'Masked.' }),
    destination: z.enum(destinations).meta({ description: 'Whether a message may go there now.' }),
    isTestRecipient: z
      .boolean()
      .meta({ description: 'Nothing is sent to one, and it has a fixed code.' }),
    limits: z
      .array(
        z.object({
          policy: z.string(),
          rule: z.string(),
          window: windowName,
          used: z.int(),
          limit: z.int(),
          resetsInMs: z.number(),
          lockedForMs: z.number().optional(),
        }),
      )
      .meta({ description: 'What every rule counts that is about this recipient.' }),
    lockedForMs: z.number().optional().meta({
      description: 'The longest lock that holds now; with `ip`, for that address.',
    }),
    lockedElsewhereForMs: z.number().optional().meta({
      description: 'With `ip`: the longest lock that holds for other addresses alone.',
    }),
    codes: z
      .array(z.object({ scene, expiresAt: time, triesLeft: z.int() }))
      .meta({ description: 'Codes that are not used or expired, without the code.' }),
    refusals: z
      .array(
        z.object({
          at: time,
          policy: z.string(),
          rule: z.string(),
          window: windowName,
          retryAfterMs: z.number(),
          challenge: z.literal(true).optional().meta({
            description: 'It was not refused but asked for a challenge.',
          }),
          lockBegan: z.literal(true).optional().meta({
            description: 'A wrong code, which was compared, began this lock.',
          }),
        }),
      )
      .meta({ description: 'The latest 20, newest first.' }),
    checks: z
      .array(z.object({ at: time, result: z.enum(checkResults) }))
      .meta({ description: 'The latest 20, newest first.' }),
    notices: z.array(noticeView).meta({ description: 'The latest 20, newest first.' }),
    operations: z
      .array(
        z.object({
          at: time,
          by: z.string().meta({ description: 'The id of the API key.' }),
          what: z.array(z.enum(operated)),
          reason: z.string(),
        }),
      )
      .meta({ description: 'What support did, newest first.' }),
  })
  .meta({ id: 'RecipientStory' })
