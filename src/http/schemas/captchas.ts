import { z } from 'zod'
import { challengeAnswer } from './challenges.ts'
import { acceptedNotice } from './notices.ts'
import {
  channel,
  id,
  ip,
  locale,
  lockedForMs,
  params,
  recipient,
  scene,
  template,
  time,
} from './words.ts'

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

export const acceptedCaptcha = acceptedNotice
  .omit({ template: true })
  .extend({ scene, codeLength: z.int(), lockedForMs: lockedForMs.optional() })
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
