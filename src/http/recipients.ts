/** "Why did my code not come?": what support asks about a recipient, and what it may take back. */
import type { Channel } from '../base/channel.ts'
import { isNamedIn } from '../recipient/is-named-in.ts'
import { maskRecipient } from '../recipient/mask-recipient.ts'
import type { NormaliseRecipient } from '../recipient/normalise-recipient.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import type { LookUp } from '../support/look-up.ts'
import type { Reset } from '../support/reset.ts'
import { viewOf } from './notice-view.ts'
import { invalid } from './problem.ts'
import { defineRoute, type Route } from './route.ts'
import { lookupBody, recipientStory, resetBody } from './schemas/recipients.ts'
import { invalidRecipient } from './send-body.ts'

export function recipientRoutes(deps: {
  lookUp: LookUp
  reset: Reset
  normaliseRecipient: NormaliseRecipient
  isTestRecipient: TestRecipients['isTestRecipient']
}): Route[] {
  const { lookUp, reset, normaliseRecipient, isTestRecipient } = deps

  /** Also one that messages may not go to: that is an answer. */
  function recipientAsked({ channel, to }: { channel: Channel; to: string }) {
    const result = normaliseRecipient(channel, to)
    if (result.kind === 'invalid') throw invalidRecipient(result)
    const { to: address, country } = result
    return {
      to: address,
      country,
      destination: result.kind === 'ok' ? 'allowed' : result.because,
    }
  }

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
      async run({ key: { app }, body: { channel, ip, ...body } }) {
        const { to, country, destination } = recipientAsked({ channel, ...body })
        const story = await lookUp({ app, channel, to, country, ip })
        const { limits, codes, refusals, checks, notices, operations } = story
        const { lockedForMs, lockedElsewhereForMs } = story
        return {
          status: 200,
          body: {
            to: maskRecipient(channel, to),
            destination,
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
      async run({ key, body: { channel, ip, what, reason, ...body } }) {
        const { to, country } = recipientAsked({ channel, ...body })
        // The record outlives the recipient in the rows (retention), so it must not name one in words.
        if (isNamedIn(reason, channel, [to, body.to])) {
          throw invalid('reason', 'names the recipient, which is kept as a hash only')
        }
        await reset({ app: key.app, channel, to, country, ip, what, reason, keyId: key.id })
        return { status: 204 }
      },
    }),
  ]
}
