/** Routes for codes: send one, check one, and get a challenge. */
import { z } from 'zod'
import { defaultScene } from '../base/default-scene.ts'
import { words } from '../base/words.ts'
import type { CheckCaptcha } from '../captcha/check.ts'
import type { SendCaptcha } from '../captcha/send.ts'
import type { Caller } from '../rules/caller.ts'
import { acceptedNotice, answerSend } from './accepted.ts'
import { defineRoute, type Route } from './route.ts'
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
} from './schemas.ts'

const createChallengeBody = z.strictObject({}).meta({ id: 'CreateChallenge' })

export const challengeOffer = z
  .discriminatedUnion('kind', [
    z.object({
      kind: z.literal('altcha'),
      challenge: z
        .object({ parameters: z.record(z.string(), z.unknown()), signature: z.string() })
        .meta({
          description: "In the form that altcha's widget needs (proof of work, version 2).",
        }),
    }),
    z.object({ kind: z.enum(['turnstile', 'hcaptcha']), siteKey: z.string() }),
  ])
  .meta({ id: 'Challenge', description: 'A challenge that the visitor of a page solves.' })

/** Each challenge kind checks the format of its answers. */
const challengeAnswer = z.string().min(1).max(4_096).optional().meta({
  description:
    "The answer to a challenge: for `altcha` the widget's payload, base64 of JSON `{challenge, solution}`; else the vendor's token.",
})

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

/** A publishable key stands in a page, so its caller may be anyone. Such a caller chooses neither address nor text. */
const notForPages = z.never(words.en.fields.notForPages)

/** The members that a publishable key may send. */
const sendCaptchaPageBody = (templates: readonly string[]) =>
  sendCaptchaBody.extend({
    ip: notForPages.optional(),
    code: notForPages.optional(),
    params: notForPages.default({} as never),
    template: template
      .refine((name) => templates.includes(name), words.en.fields.notNamedByPages)
      .prefault('captcha'),
  })

const checkCaptchaPageBody = checkCaptchaBody.extend({ ip: notForPages.optional() })

const acceptedCaptcha = acceptedNotice
  .omit({ template: true })
  .extend({
    scene,
    codeLength: z.int().meta({ examples: [4] }),
    lockedForMs: lockedForMs.optional(),
  })
  .meta({ id: 'AcceptedCaptcha' })

const passedCheck = z
  .object({
    verified: z.literal(true),
    id,
    scene,
    verifiedAt: time,
    pass: z.string().meta({
      description: 'Proof for a server: a JWS (ES256), valid for five minutes; see docs/passes.md.',
    }),
    known: z.string().optional().meta({
      description:
        'For pages, and for callers that sent `known`: the token of this browser for later sends and checks, a JWS (ES256), valid for 180 days.',
    }),
  })
  .meta({ id: 'PassedCheck' })

export function captchaRoutes(deps: {
  sendCaptcha: SendCaptcha
  checkCaptcha: CheckCaptcha
  offerChallenge: (caller: Caller) => Promise<object>
  /** Templates that a publishable key may name. */
  pageTemplates: readonly string[]
}): Route[] {
  const { sendCaptcha, checkCaptcha, offerChallenge, pageTemplates } = deps
  return [
    defineRoute({
      method: 'post',
      path: '/v1/captchas',
      name: 'sendCaptcha',
      summary: 'Send a one-time code. A new code replaces the one before it.',
      access: 'page',
      body: sendCaptchaBody,
      pageBody: sendCaptchaPageBody(pageTemplates),
      answers: { 202: { description: 'Accepted: it will be sent.', schema: acceptedCaptcha } },
      problems: [
        'invalid_recipient',
        'destination_not_allowed',
        'challenge_required',
        'limited',
        'locked',
      ],
      isSend: true,
      run: (request) => answerSend(request, sendCaptcha),
    }),

    defineRoute({
      method: 'post',
      path: '/v1/captchas/check',
      name: 'checkCaptcha',
      summary: 'Check a code. It passes once.',
      access: 'page',
      body: checkCaptchaBody,
      pageBody: checkCaptchaPageBody,
      answers: {
        200: { description: 'The code was right and is used up now.', schema: passedCheck },
      },
      problems: [
        'invalid_recipient',
        'destination_not_allowed',
        'code_mismatch',
        'code_gone',
        'challenge_required',
        'limited',
        'locked',
      ],
      async run({ body, caller, note }) {
        const checked = await checkCaptcha(body, caller)
        if (checked.outcome !== 'passed') return checked
        const { outcome: _, ...passed } = checked
        note({ noticeId: passed.id })
        return { status: 200, body: { verified: true, ...passed } }
      },
    }),

    defineRoute({
      method: 'post',
      path: '/v1/challenges',
      name: 'createChallenge',
      summary: 'Get a challenge in advance. Its answer is valid for one send or one check.',
      access: 'page',
      body: createChallengeBody,
      answers: { 200: { description: 'The page solves it.', schema: challengeOffer } },
      problems: [],
      run: async ({ caller }) => ({ status: 200, body: await offerChallenge(caller) }),
    }),
  ]
}
