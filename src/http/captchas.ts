/** Routes for codes: send one, check one, and get a challenge. */
import { z } from 'zod'
import { isObject } from '../base/json.ts'
import type { CheckCaptcha } from '../captcha/check.ts'
import type { SendCaptcha } from '../captcha/send.ts'
import type { Workflows } from '../captcha/workflows.ts'
import type { Caller } from '../rules/caller.ts'
import {
  checkByIdBody,
  checkByIdPageBody,
  checkCaptchaBody,
  checkCaptchaPageBody,
  sendCaptchaBody,
  sendCaptchaPageBody,
  sendWorkflowBody,
  sendWorkflowPageBody,
} from './captcha-bodies.ts'
import {
  answerSend,
  defineRoute,
  idempotencyKeyOf,
  type Route,
  type RouteRequest,
} from './route.ts'
import { acceptedCaptcha, id, scene, time } from './schemas.ts'
import { acceptedWay, answerWay } from './verifications.ts'

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

const names = (body: unknown, member: string) => isObject(body) && Object.hasOwn(body, member)

type SendBody = z.output<typeof sendCaptchaBody>
type WorkflowBody = z.output<typeof sendWorkflowBody>

export function captchaRoutes(deps: {
  sendCaptcha: SendCaptcha
  checkCaptcha: CheckCaptcha
  offerChallenge: (caller: Caller) => Promise<object>
  /** Templates that a publishable key may name. */
  pageTemplates: readonly string[]
  /** Workflows that a publishable key may name. */
  pageWorkflows: readonly string[]
  workflows: Pick<Workflows, 'sendWorkflow'>
}): Route[] {
  const { sendCaptcha, workflows, offerChallenge, pageTemplates, pageWorkflows } = deps
  return [
    defineRoute({
      method: 'post',
      path: '/v1/captchas',
      name: 'sendCaptcha',
      summary: 'Send a one-time code. A new code replaces the one before it.',
      access: 'page',
      body: sendCaptchaBody,
      pageBody: sendCaptchaPageBody(pageTemplates),
      otherForm: {
        isMeant: (body) => names(body, 'workflow'),
        body: sendWorkflowBody,
        pageBody: sendWorkflowPageBody(pageTemplates, pageWorkflows),
      },
      answers: {
        202: {
          description: 'Accepted: it will be sent.',
          schema: z.union([acceptedCaptcha, acceptedWay]),
        },
      },
      problems: [
        'invalid_recipient',
        'destination_not_allowed',
        'challenge_required',
        'limited',
        'locked',
      ],
      isSend: true,
      async run(request) {
        const { body, caller, headers } = request
        if (!('workflow' in body)) return answerSend(request as RouteRequest<SendBody>, sendCaptcha)
        const asked = { ...(body as WorkflowBody), idempotencyKey: idempotencyKeyOf(headers) }
        return answerWay(request, await workflows.sendWorkflow(asked, caller))
      },
    }),

    checkRoute(deps),

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

function checkRoute({ checkCaptcha }: { checkCaptcha: CheckCaptcha }): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/captchas/check',
    name: 'checkCaptcha',
    summary: 'Check a code. It passes once.',
    access: 'page',
    body: checkCaptchaBody,
    pageBody: checkCaptchaPageBody,
    otherForm: {
      isMeant: (body) => names(body, 'id') && !names(body, 'to'),
      body: checkByIdBody,
      pageBody: checkByIdPageBody,
    },
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
  })
}
