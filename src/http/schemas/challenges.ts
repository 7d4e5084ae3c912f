import { z } from 'zod'

export const createChallengeBody = z.strictObject({}).meta({ id: 'CreateChallenge' })

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

/** The answer's own shape is its kind's to check. */
export const challengeAnswer = z.string().min(1).max(4_096).optional().meta({
  description:
    "The answer to a challenge: for `altcha` the widget's payload, base64 of JSON `{challenge, solution}`; else the vendor's token.",
})
