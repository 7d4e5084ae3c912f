/**
 * The shapes of the contract: what callers may send and what they get. Checks that a schema can make
 * are made here, before anything is counted.
 */
import { z } from 'zod'
import { channels } from '../base/channel.ts'
import { duration } from '../base/durations.ts'
import { textProblem } from '../base/text-problem.ts'
import { checkResults } from '../history/history.ts'
import { operated, resettable } from '../lookup/operations.ts'
import { noticeStates, outcomes } from '../notice/states.ts'
import { passRefusals } from '../pass/passes.ts'
import { limitableAddress } from '../recipient/limitable-address.ts'
import { notAllowedBecause } from '../recipient/normalise-recipient.ts'

/** Text that can be stored, shown in a subject line and printed in a log without surprises. */
const plainText = (maxLength: number) =>
  z
    .string()
    .max(maxLength)
    .check((text) => {
      const message = textProblem(text.value)
      if (message) text.issues.push({ code: 'custom', message, input: text.value })
    })

const channel = z.enum(channels).meta({ id: 'Channel', description: 'What carries the message.' })
const recipient = plainText(320)
  .min(1)
  .meta({
    description:
      'A phone number with country code (E.164, usual separators allowed) or one email address.',
    examples: ['+8613800138000', 'ada@example.com'],
  })
const name = z.string().regex(/^[a-z][a-z0-9_-]{0,31}$/, 'is a short lower-case name')
/** Of any spelling: a language we don't have, or none at all, is no reason to keep a code back. */
const locale = z.string().meta({
  description:
    'The language of the message, a BCP 47 tag. The nearest variant is sent, else the default one.',
  examples: ['en', 'zh-CN'],
})
const id = plainText(64).min(1).meta({ description: 'The id of the notice.' })
const scene = name.meta({
  description: 'What the code is for. A code for one scene never passes another.',
})
const template = name.meta({ description: 'A folder of the templates.' })
/** The address of the person who asked, for callers that are servers themselves. */
const ip = z
  .string()
  .max(45)
  .transform((text, context) => {
    const address = limitableAddress(text)
    if (address !== undefined) return address
    context.addIssue({ code: 'custom', message: 'is an IPv4 or IPv6 address' })
    return z.NEVER
  })
  .meta({
    description: 'The address of the person who asked, where the caller is a server itself.',
  })
const time = z.iso.datetime()

/** The answer's own shape is its kind's to check. */
const challengeAnswer = z.string().min(1).max(4_096).optional().meta({
  description:
    "The answer to a challenge: for `altcha` the widget's payload, base64 of JSON `{challenge, solution}`; else the vendor's token.",
})

export const challengeOffer = z
  .discriminatedUnion('kind', [
    z.object({
      kind: z.literal('altcha'),
      challenge: z
        .object({ parameters: z.record(z.string(), z.unknown()), signature: z.string() })
        .meta({ description: "As altcha's widget takes it (proof of work, version 2)." }),
    }),
    z.object({ kind: z.enum(['turnstile', 'hcaptcha']), siteKey: z.string() }),
  ])
  .meta({ id: 'Challenge', description: 'What a page has its visitor solve.' })

const maxParams = 32
const params = z
  .record(
    z.string().regex(/^[a-zA-Z][a-zA-Z0-9_]{0,31}$/, 'is a name of letters, digits and _'),
    z.union([plainText(1_000), z.number(), z.boolean()]),
  )
  .refine((value) => Object.keys(value).length <= maxParams, `at most ${maxParams} variables`)
  .default({})
  .meta({ description: "Values for the template's variables." })

export const sendCaptchaBody = z
  .strictObject({
    channel,
    ip: ip.optional(),
    to: recipient,
    scene: scene.default('default'),
    template: template.default('captcha'),
    params,
    locale: locale.optional(),
    challenge: challengeAnswer,
  })
  .meta({ id: 'SendCaptcha' })

export const checkCaptchaBody = z
  .strictObject({
    channel,
    ip: ip.optional(),
    to: recipient,
    scene: scene.default('default'),
    code: z
      .string()
      .regex(/^[0-9]{4,10}$/, 'is the digits of the code, as a string')
      .meta({ description: 'What the person typed.' }),
    id: id.optional().meta({ description: 'With it only the code of this very request passes.' }),
    challenge: challengeAnswer,
  })
  .meta({ id: 'CheckCaptcha' })

/** A publishable key stands in a page, so its caller is anybody: whom to count and what to say is not theirs. */
const notForPages = z.never('a publishable key may not set it')

/** What a publishable key may send of these. */
export const sendCaptchaPageBody = (templates: readonly string[]) =>
  sendCaptchaBody.extend({
    ip: notForPages.optional(),
    params: notForPages.default({} as never),
    template: template
      .refine((name) => templates.includes(name), 'a publishable key may not name it')
      .prefault('captcha'),
  })

export const checkCaptchaPageBody = checkCaptchaBody.extend({ ip: notForPages.optional() })

export const sendNoticeBody = z
  .strictObject({
    channel,
    ip: ip.optional(),
    to: recipient,
    template,
    params,
    locale: locale.optional(),
    ttl: duration.optional().meta({
      description: 'A duration such as `60s`, `5m`, `1h` or `7d`. Not sent after it.',
    }),
    sendAt: time.optional().meta({
      description: 'Not sent before this time, at most 7 days ahead. `ttl` counts from it.',
    }),
  })
  .meta({ id: 'SendNotice' })

export const searchNoticesBody = z
  .strictObject({
    to: recipient.optional(),
    channel: channel.optional(),
    state: z.enum(noticeStates).optional().meta({ description: 'Only notices in this state.' }),
    cursor: z.string().min(1).max(200).optional().meta({
      description: '`nextCursor` of the page before.',
    }),
    limit: z.int().min(1).max(100).default(20).meta({ description: 'Items on a page.' }),
  })
  .meta({ id: 'SearchNotices' })

export const acquireBody = z
  .strictObject({
    fields: z
      .record(
        z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]{0,31}$/, 'is a name of letters, digits and _'),
        z.union([plainText(320), z.number()]),
      )
      .refine((fields) => Object.keys(fields).length <= maxParams, `at most ${maxParams} fields`)
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

export const sandboxQuery = z.object({
  to: z.string().max(320).optional(),
  limit: z.coerce.number().int().min(1).max(1_000).default(50),
})

export const acceptedNotice = z
  .object({
    id,
    channel,
    to: z.string().meta({ description: 'Masked.' }),
    template,
    state: z.literal('pending'),
    expiresAt: time,
    resendAt: time.meta({ description: 'From then on the limits admit the same request again.' }),
  })
  .meta({ id: 'AcceptedNotice' })

export const acceptedCaptcha = acceptedNotice
  .omit({ template: true })
  .extend({ scene, codeLength: z.int() })
  .meta({ id: 'AcceptedCaptcha' })

export const passedCheck = z
  .object({
    verified: z.literal(true),
    id,
    scene,
    verifiedAt: time,
    pass: z.string().meta({
      description: 'A JWS (ES256) of five minutes that proves it to a server; see docs/passes.md.',
    }),
  })
  .meta({ id: 'PassedCheck' })

export const jsonWebKeySet = z
  .object({
    keys: z.array(
      z.object({
        kty: z.literal('EC'),
        crv: z.literal('P-256'),
        x: z.string(),
        y: z.string(),
        kid: z.string(),
        alg: z.literal('ES256'),
        use: z.literal('sig'),
      }),
    ),
  })
  .meta({ id: 'JsonWebKeySet' })

export const verifyPassBody = z
  .strictObject({
    pass: z
      .string()
      .regex(/^[\w-]+\.[\w-]+\.[\w-]+$/, 'is a compact JWS')
      .max(2_000)
      .meta({ description: 'What a check that passed answered as `pass`.' }),
    channel: channel.optional(),
    to: recipient
      .optional()
      .meta({ description: 'With it only a pass of this recipient is good.' }),
  })
  .meta({ id: 'VerifyPass' })

export const passVerdict = z
  .discriminatedUnion('valid', [
    z.object({
      valid: z.literal(true),
      scene,
      channel,
      verifiedAt: time.meta({ description: 'When the code was checked.' }),
    }),
    z.object({ valid: z.literal(false), reason: z.enum(passRefusals) }),
  ])
  .meta({ id: 'PassVerdict' })

export const noticeView = z
  .object({
    id,
    channel,
    to: z.string().nullable().meta({ description: 'Masked; null once erased.' }),
    kind: z.enum(['captcha', 'notice']),
    scene: scene.optional(),
    template,
    state: z.enum(noticeStates),
    provider: z.string().optional(),
    providerMessageId: z.string().optional(),
    attempts: z.array(
      z.object({
        provider: z.string().nullable(),
        at: time,
        outcome: z.enum(outcomes),
        durationMs: z.number(),
        detail: z.string().optional(),
      }),
    ),
    createdAt: time,
    sendAt: time.optional(),
    expiresAt: time,
    sentAt: time.optional(),
    finishedAt: time.optional(),
    error: z.string().optional(),
  })
  .meta({ id: 'Notice' })

export const noticePage = z
  .object({
    items: z.array(noticeView),
    nextCursor: z.string().optional(),
  })
  .meta({ id: 'NoticePage' })

export const sandboxMessages = z.array(
  z
    .object({
      id,
      noticeId: id,
      channel,
      to: z.string(),
      subject: z.string().optional(),
      text: z.string(),
      html: z.string().optional(),
      provider: z.string(),
      sentAt: time,
    })
    .meta({ id: 'SandboxMessage' }),
)

const windowName = z.string().meta({ description: 'As the policy file spells it.' })

/** Whether a message may go there, or what about it is not allowed. */
export const destinations = ['allowed', ...notAllowedBecause] as const

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
    lockedForMs: z.number().optional().meta({ description: 'The longest lock that holds now.' }),
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
