/** The bodies of sends and checks of codes, and the members that publishable keys may send. */
import { z } from 'zod'
import { defaultScene } from '../base/names.ts'
import { words } from '../base/words.ts'
import {
  challengeAnswer,
  channel,
  id,
  ip,
  locale,
  params,
  recipient,
  scene,
  template,
  verificationId,
  workflow,
} from './schemas.ts'

/** Long enough for every token of Postern. */
const known = z
  .string()
  .max(2_000)
  .regex(/^[\w-]+\.[\w-]+\.[\w-]+$/, words.en.fields.known)

const code = z.string().regex(/^[A-Za-z0-9]{4,10}$/, words.en.fields.lettersOrDigits)

export const sendCaptchaBody = z
  .strictObject({
    channel,
    ip: ip.optional(),
    to: recipient,
    scene: scene.default(defaultScene),
    template: template.default('captcha'),
    params,
    locale: locale.optional(),
    code: code.optional().meta({
      description:
        'A code that the caller made. It is sent in place of a random code. Needs `code.own` in the policy file.',
    }),
    challenge: challengeAnswer,
    known: known.optional().meta({
      description:
        'The token of a known browser, see docs/abuse.md. A token that is not valid for this recipient is no error.',
    }),
  })
  .meta({
    id: 'SendCaptcha',
    examples: [{ channel: 'sms', to: '+8613800138000', scene: 'signup' }],
  })

export const checkCaptchaBody = z
  .strictObject({
    channel,
    ip: ip.optional(),
    to: recipient,
    scene: scene.default(defaultScene),
    // The check itself decides about the form of the code, which follows from the policy file.
    code: z.string().max(320).meta({
      description:
        'The code that the person typed. Only digits, unless the policy file sets `code.own`; upper and lower case differ.',
    }),
    id: id.optional().meta({
      description:
        'With it, only the code of this send passes, and the same check by the same key gets the same pass for a minute.',
    }),
    challenge: challengeAnswer,
    known: z
      .union([known, z.literal(true, words.en.fields.known)])
      .optional()
      .meta({
        description:
          'The token of a known browser. A right code then answers a new one. `true` asks for one without having one.',
      }),
  })
  .meta({
    id: 'CheckCaptcha',
    examples: [{ channel: 'sms', to: '+8613800138000', scene: 'signup', code: '4711' }],
  })

/** A send with several ways. It has no code of the caller's. */
export const sendWorkflowBody = sendCaptchaBody
  .omit({ channel: true, code: true })
  .extend({
    workflow,
    to: recipient.meta({ description: 'The phone number.', examples: ['+8613800138000'] }),
    email: recipient.optional().meta({
      description: 'The address of the ways by mail. Without it they are left out.',
      examples: ['ada@example.com'],
    }),
  })
  .meta({ id: 'SendWorkflow', examples: [{ workflow: 'default', to: '+8613800138000' }] })

/** The code of any way of a verification. */
export const checkByIdBody = checkCaptchaBody
  .omit({ channel: true, to: true })
  .extend({ id: verificationId, scene: scene.optional() })
  .meta({
    id: 'CheckById',
    examples: [{ id: '01a1fdac-16f8-75c6-b2de-26f19df3a927', code: '4711' }],
  })

/** A publishable key stands in a page, so its caller may be anyone. Such a caller chooses neither address nor text. */
const notForPages = z.never(words.en.fields.notForPages)

/** The members of a send that a publishable key may send. */
const ofPageSends = (templates: readonly string[]) => ({
  ip: notForPages.optional(),
  params: notForPages.default({} as never),
  template: template
    .refine((name) => templates.includes(name), words.en.fields.notNamedByPages)
    .prefault('captcha'),
})

export const sendCaptchaPageBody = (templates: readonly string[]) =>
  sendCaptchaBody.extend({ ...ofPageSends(templates), code: notForPages.optional() })

export const sendWorkflowPageBody = (templates: readonly string[], workflows: readonly string[]) =>
  sendWorkflowBody.extend({
    ...ofPageSends(templates),
    workflow: workflow.refine(
      (name) => workflows.includes(name),
      words.en.fields.workflowNotForPages,
    ),
  })

export const checkCaptchaPageBody = checkCaptchaBody.extend({ ip: notForPages.optional() })

export const checkByIdPageBody = checkByIdBody.extend({ ip: notForPages.optional() })
