/**
 * Schemas that several calls share. Schemas of one call stand beside its route. Every check that a schema can make
 * happens here, before anything is counted.
 */
import { z } from 'zod'
import { channels } from '../base/channel.ts'
import { limitableAddress } from '../base/limitable-address.ts'
import { shortName } from '../base/names.ts'
import { textProblem } from '../base/text-problem.ts'
import { words } from '../base/words.ts'

const { fields } = words.en

/** Text that is safe in a database, a subject line and a log. */
export const plainText = (maxLength: number) =>
  z
    .string()
    .max(maxLength)
    .check((text) => {
      const message = textProblem(text.value)
      if (message) text.issues.push({ code: 'custom', message, input: text.value })
    })

const largest = Number.MAX_SAFE_INTEGER
/** JSON can carry larger integers, and JavaScript reads two of them as one. */
export const exactNumber = z.number().min(-largest, fields.notExact).max(largest, fields.notExact)

export const channel = z
  .enum(channels)
  .meta({ id: 'Channel', description: 'How the message is sent.' })
export const recipient = plainText(320)
  .min(1)
  .meta({
    description:
      'A phone number with country code (E.164, usual separators allowed) or one email address.',
    examples: ['+8613800138000', 'ada@example.com'],
  })

/** Any spelling. An unknown language is no reason to withhold a code. */
export const locale = z.string().meta({
  description:
    'The language of the message, a BCP 47 tag. The nearest variant is sent, else the default one.',
  examples: ['en', 'zh-CN'],
})
export const id = plainText(64)
  .min(1)
  .meta({
    description: 'The id of the notice.',
    examples: ['01a1fdac-16f8-75c6-b2de-26f19df3a927'],
  })
export const verificationId = id.meta({ description: 'The id of the verification.' })
export const scene = shortName.meta({
  description: 'The purpose of the code. A code for one scene never passes in another.',
  examples: ['signup'],
})
export const template = shortName.meta({
  description: 'A folder of the templates.',
  examples: ['captcha'],
})
export const workflow = shortName.meta({
  description: 'A workflow of the policy file: one verification, several ways to the person.',
  examples: ['default'],
})
/** Each challenge kind checks the format of its answers. */
export const challengeAnswer = z.string().min(1).max(4_096).optional().meta({
  description:
    "The answer to a challenge: for `altcha` the widget's payload, base64 of JSON `{challenge, solution}`; else the vendor's token.",
})

/** The address of the person, for callers that are servers. */
export const ip = z
  .string()
  .max(45)
  .transform((text, context) => {
    const address = limitableAddress(text)
    if (address !== undefined) return address
    context.addIssue({ code: 'custom', message: fields.address })
    return z.NEVER
  })
  .meta({
    description: "The person's address, if the caller is a server.",
  })
export const time = z.iso.datetime().meta({ examples: ['2026-11-21T10:35:36.152Z'] })
export const lockedForMs = z.int().min(1).meta({
  description:
    'Milliseconds for which checks of this recipient are locked for this caller. A new code does not pass earlier. Absent without a lock.',
})

/** The check of an object with free names. */
export function hasAtMost(maximum: number) {
  return ({ value, issues }: z.core.ParsePayload<object>): void => {
    if (Object.keys(value).length <= maximum) return
    issues.push({ code: 'too_big', origin: 'record', maximum, input: value })
  }
}

const maxParams = 32
export const params = z
  .record(
    z.string().regex(/^[a-zA-Z][a-zA-Z0-9_]{0,31}$/, fields.variableName),
    z.union([plainText(1_000), exactNumber, z.boolean()]),
  )
  .check(hasAtMost(maxParams))
  .default({})
  .meta({ description: "Values for the template's variables." })

export const acceptedNotice = z
  .object({
    id,
    channel,
    to: z.string().meta({ description: 'Masked.', examples: ['+8613****8000'] }),
    template,
    state: z.literal('pending'),
    expiresAt: time,
    resendAt: time.meta({ description: 'From then on the limits admit the same request again.' }),
  })
  .meta({ id: 'AcceptedNotice' })

export const acceptedCaptcha = acceptedNotice
  .omit({ template: true })
  .extend({
    scene,
    codeLength: z.int().meta({ examples: [4] }),
    lockedForMs: lockedForMs.optional(),
  })
  .meta({ id: 'AcceptedCaptcha' })
