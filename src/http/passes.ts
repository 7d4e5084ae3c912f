/** Routes of passes: the public keys, and the check of a pass. */
import { z } from 'zod'
import { words } from '../base/words.ts'
import { type Passes, passRefusals } from '../captcha/passes.ts'
import { type NormaliseRecipient, refusedRecipient } from '../recipient/normalise-recipient.ts'
import { invalid } from './problem.ts'
import { defineRoute, type Route } from './route.ts'
import { channel, recipient, scene, time } from './schemas.ts'

const jsonWebKeySet = z
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

const verifyPassBody = z
  .strictObject({
    pass: z
      .string()
      .regex(/^[\w-]+\.[\w-]+\.[\w-]+$/, words.en.fields.pass)
      .max(2_000)
      .meta({ description: 'The `pass` of a check that passed.' }),
    channel: channel.optional(),
    to: recipient
      .optional()
      .meta({ description: 'With it, only a pass for this recipient is accepted.' }),
  })
  .meta({
    id: 'VerifyPass',
    examples: [
      { pass: 'eyJhbGciOiJFUzI1NiIs.eyJpc3MiOi.MEUCIQDx', channel: 'sms', to: '+8613800138000' },
    ],
  })

const passVerdict = z
  .discriminatedUnion('valid', [
    z.object({
      valid: z.literal(true),
      scene,
      channel,
      to: z.string().optional().meta({
        description:
          'The recipient, if the request named it. It is the same text for every spelling: store it, and find accounts by it.',
      }),
      verifiedAt: time.meta({ description: 'When the code was checked.' }),
    }),
    z.object({ valid: z.literal(false), reason: z.enum(passRefusals) }),
  ])
  .meta({ id: 'PassVerdict' })

/** Keys follow from the secret of the environment, so they are published before their first signature. */
const jwksSeconds = 300

export function passRoutes(deps: {
  passes: Passes
  normaliseRecipient: NormaliseRecipient
}): Route[] {
  const { passes, normaliseRecipient } = deps
  const jwks = Buffer.from(JSON.stringify(passes.jwks))

  return [
    defineRoute({
      method: 'get',
      path: '/.well-known/jwks.json',
      name: 'getJwks',
      summary: 'The public keys of passes.',
      access: 'open',
      answers: {
        200: { description: 'A JSON Web Key Set (RFC 7517).', schema: jsonWebKeySet },
      },
      problems: ['method_not_allowed'],
      run: async () => ({
        status: 200,
        headers: { 'cache-control': `public, max-age=${jwksSeconds}` },
        text: jwks,
      }),
    }),

    defineRoute({
      method: 'post',
      path: '/v1/passes/verify',
      name: 'verifyPass',
      summary: 'Check a pass. A valid pass is accepted once.',
      access: 'secret',
      body: verifyPassBody,
      answers: {
        200: {
          description: 'The facts that the pass proves, or the reason why it is not valid.',
          schema: passVerdict,
        },
      },
      problems: ['invalid_recipient', 'destination_not_allowed'],
      async run({ caller, body }) {
        const { pass, channel, to } = body
        if (channel === undefined && to) throw invalid('channel', 'togetherWith', { name: 'to' })
        if (channel && to === undefined) throw invalid('to', 'togetherWith', { name: 'channel' })
        const read = channel && to ? normaliseRecipient(channel, to) : undefined
        if (read && read.kind !== 'ok') return refusedRecipient(read)
        const owner = channel && read ? { channel, to: read.to } : undefined
        const verdict = await passes.verify(pass, caller.app, owner)
        const proven = verdict.valid && owner ? { ...verdict, to: owner.to } : verdict
        return { status: 200, body: proven }
      },
    }),
  ]
}
