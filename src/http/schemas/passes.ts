import { z } from 'zod'
import { passRefusals } from '../../captcha/passes.ts'
import { channel, recipient, scene, time } from './words.ts'

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
