/** "Why did my code not come?": the look-up and the reset of a recipient, for support. */
import { z } from 'zod'
import { suppressionReasons } from '../base/suppression.ts'
import { words } from '../base/words.ts'
import { notAllowedBecause } from '../recipient/address-kind.ts'
import { addressKindOf, maskRecipient } from '../recipient/channels.ts'
import type { NormaliseRecipient } from '../recipient/normalise-recipient.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import { lanes } from '../rules/caller.ts'
import { checkResults } from '../support/decision.ts'
import { operated, resettable } from '../support/operations.ts'
import type { LookUp, Reset } from '../support/support.ts'
import { recipientNamed, viewOf } from './notice-reads.ts'
import { noticeView } from './notices.ts'
import { invalid } from './problem.ts'
import { defineRoute, type Route } from './route.ts'
import { channel, ip, plainText, recipient, scene, time } from './schemas.ts'

const lookupBody = z
  .strictObject({ channel, to: recipient, ip: ip.optional() })
  .meta({ id: 'LookUpRecipient', examples: [{ channel: 'sms', to: '+8613800138000' }] })

const resetBody = z
  .strictObject({
    channel,
    to: recipient,
    ip: ip.optional(),
    what: z
      .array(z.enum(resettable))
      .min(1)
      .refine((list) => new Set(list).size === list.length, words.en.fields.twice)
      .meta({ description: 'The parts to reset.' }),
    reason: plainText(500).min(1).meta({ description: 'The reason; it is stored in the record.' }),
  })
  .meta({
    id: 'ResetRecipient',
    examples: [{ channel: 'sms', to: '+8613800138000', what: ['limits'], reason: 'ticket 4711' }],
  })

const windowName = z.string().meta({ description: 'The window, as written in the policy file.' })

/** Whether messages may go to a recipient, or which fact forbids it. */
const destinations = ['allowed', ...notAllowedBecause] as const

const recipientStory = z
  .object({
    to: z.string().meta({ description: 'Masked.' }),
    destination: z
      .enum(destinations)
      .meta({ description: 'Whether messages to it are allowed now.' }),
    isTestRecipient: z
      .boolean()
      .meta({ description: 'A test recipient has a fixed code and gets no messages.' }),
    suppressions: z
      .array(
        z.object({
          reason: z.enum(suppressionReasons),
          provider: z.string().meta({ description: 'The provider that reported it.' }),
          since: time,
          until: time,
        }),
      )
      .meta({
        description:
          'Reports because of which the recipient gets no messages (`bounced`), no notices (`complained`), or none of this provider (`opted_out`).',
      }),
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
          lane: z.enum(lanes).optional().meta({
            description:
              'The lane of this count, if the rule counts by lane. An empty count of `known` is left out.',
          }),
        }),
      )
      .meta({ description: 'The counts of every rule for this recipient.' }),
    lockedForMs: z.number().optional().meta({
      description: 'The longest current lock; with `ip`, for that address.',
    }),
    lockedElsewhereForMs: z.number().optional().meta({
      description: 'With `ip`: the longest current lock for other addresses only.',
    }),
    codes: z
      .array(z.object({ scene, expiresAt: time, triesLeft: z.int(), knownTriesLeft: z.int() }))
      .meta({
        description: 'Live codes, without their digits. Known browsers have separate tries.',
      }),
    refusals: z
      .array(
        z.object({
          at: time,
          policy: z.string(),
          rule: z.string(),
          window: windowName,
          retryAfterMs: z.number(),
          challenge: z.literal(true).optional().meta({
            description: 'The rule required a challenge instead of refusing.',
          }),
          lockBegan: z.literal(true).optional().meta({
            description: 'The wrong code of this check began the lock.',
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
      .meta({ description: 'Actions of support, newest first.' }),
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
      summary: 'Look up a recipient: why a code did not arrive, or did not pass.',
      access: 'secret',
      isRead: true,
      body: lookupBody,
      answers: { 200: { description: 'The records of the recipient.', schema: recipientStory } },
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
            isTestRecipient: isTestRecipient(to),
            suppressions: story.suppressions,
            limits: limits.map(({ nextInMs: _, isOfCaptcha: __, ...limit }) => limit),
            ...(lockedForMs === undefined ? {} : { lockedForMs }),
            ...(lockedElsewhereForMs === undefined ? {} : { lockedElsewhereForMs }),
            codes,
            refusals: refusals.map(({ values: _, isOfCheck: __, ...refusal }) => refusal),
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
      summary:
        'Reset the counts of a recipient, lift its locks, end its codes, suppressions and known browsers.',
      access: 'secret',
      body: resetBody,
      answers: { 204: { description: 'Recorded and done.' } },
      problems: ['invalid_recipient'],
      async run({ caller: { app, keyId }, body: { channel, ip, what, reason, ...body } }) {
        const { to, country } = recipientNamed(normaliseRecipient, channel, body.to)
        // The record outlives the recipient's rows (retention), so its text must not name the recipient.
        if (addressKindOf(channel).isNamedIn(reason, [to, body.to])) {
          throw invalid('reason', 'namesRecipient')
        }
        await reset({ app, channel, to, country, ip, what, reason, keyId })
        return { status: 204 }
      },
    }),
  ]
}
