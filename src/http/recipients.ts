/** "Why did my code not come?": what support asks about a recipient, and what it may take back. */
import { z } from 'zod'
import { isNamedIn } from '../recipient/is-named-in.ts'
import { maskRecipient } from '../recipient/mask-recipient.ts'
import { type NormaliseRecipient, notAllowedBecause } from '../recipient/normalise-recipient.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import { operated, resettable } from '../support/operations.ts'
import { checkResults } from '../support/record.ts'
import type { LookUp, Reset } from '../support/support.ts'
import { noticeView, recipientNamed, viewOf } from './notices.ts'
import { invalid } from './problem.ts'
import { defineRoute, type Route } from './route.ts'
import { channel, ip, plainText, recipient, scene, time } from './words.ts'

const lookupBody = z
  .strictObject({ channel, to: recipient, ip: ip.optional() })
  .meta({ id: 'LookUpRecipient' })

const resetBody = z
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

const recipientStory = z
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

export function recipientRoutes(deps: {
  lookUp: LookUp
  reset: Reset
  normaliseRecipient: NormaliseRecipient
  isTestRecipient: TestRecipients['isTestRecipient']
}): Route[] {
  const { lookUp, reset, normaliseRecipient, isTestRecipient } = deps

  return [
    defineRoute({
      method: 'post',
      path: '/v1/recipients/lookup',
      name: 'lookUpRecipient',
      summary: 'Everything that is known of a recipient: why a code did not come, or did not pass.',
      access: 'secret',
      body: lookupBody,
      answers: { 200: { description: 'What is known.', schema: recipientStory } },
      problems: ['invalid_recipient'],
      async run({ caller: { app }, body: { channel, ip, ...body } }) {
        const named = recipientNamed(normaliseRecipient, channel, body.to)
        const { to, country } = named
        const story = await lookUp({ app, channel, to, country, ip })
        const { limits, codes, refusals, checks, notices, operations } = story
        const { lockedForMs, lockedElsewhereForMs } = story
        return {
          status: 200,
          body: {
            to: maskRecipient(channel, to),
            destination: named.kind === 'ok' ? 'allowed' : named.because,
            isTestRecipient: isTestRecipient(channel, to),
            limits: limits.map(({ nextInMs: _, ...limit }) => limit),
            ...(lockedForMs === undefined ? {} : { lockedForMs }),
            ...(lockedElsewhereForMs === undefined ? {} : { lockedElsewhereForMs }),
            codes,
            refusals: refusals.map(({ values: _, ...refusal }) => refusal),
            checks,
            notices: notices.map(viewOf),
            operations: operations.map(({ keyId, keyName: _, ...rest }) => ({
              by: keyId,
              ...rest,
            })),
          },
        }
      },
    }),

    defineRoute({
      method: 'post',
      path: '/v1/recipients/reset',
      name: 'resetRecipient',
      summary: 'Forget what was counted about a recipient, lift its locks, end its codes.',
      access: 'secret',
      body: resetBody,
      answers: { 204: { description: 'Recorded and done.' } },
      problems: ['invalid_recipient'],
      async run({ caller: { app, keyId }, body: { channel, ip, what, reason, ...body } }) {
        const { to, country } = recipientNamed(normaliseRecipient, channel, body.to)
        // The record outlives the recipient in the rows (retention), so it must not name one in words.
        if (isNamedIn(reason, channel, [to, body.to])) {
          throw invalid('reason', 'names the recipient, which is kept as a hash only')
        }
        await reset({ app, channel, to, country, ip, what, reason, keyId })
        return { status: 204 }
      },
    }),
  ]
}
