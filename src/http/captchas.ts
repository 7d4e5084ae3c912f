import type { z } from 'zod'
import { Problem } from '../base/problems.ts'
import type { CheckCaptcha } from '../captcha/check.ts'
import type { Passes } from '../captcha/passes.ts'
import type { CaptchaRequest, SendCaptcha } from '../captcha/send.ts'
import type { NormaliseRecipient } from '../recipient/normalise-recipient.ts'
import type { PastChallenge, RefuseLimited } from './challenges.ts'
import { invalid } from './problem.ts'
import { defineRoute, type Route, type RouteRequest, type SendAttempt } from './route.ts'
import {
  acceptedCaptcha,
  checkCaptchaBody,
  checkCaptchaPageBody,
  passedCheck,
  sendCaptchaBody,
  sendCaptchaPageBody,
} from './schemas/captchas.ts'
import { acceptedAnswer } from './send-answer.ts'
import { contentOf, originOf, recipientOf, type Sendable } from './send-body.ts'

/** Variables of a captcha template that Postern fills in. */
const ownVariables = ['code', 'minutes', 'validity']

export function captchaRoutes(
  deps: Sendable & {
    sendCaptcha: SendCaptcha
    checkCaptcha: CheckCaptcha
    normaliseRecipient: NormaliseRecipient
    passes: Passes
    pastChallenge: PastChallenge
    refuseLimited: RefuseLimited
    codeLength: number
    /** PostgreSQL's clock. */
    nowMs: () => number
    /** What a publishable key may send. */
    pageTemplates: readonly string[]
  },
): Route[] {
  const {
    sendCaptcha,
    checkCaptcha,
    passes,
    pastChallenge,
    refuseLimited,
    templates,
    normaliseRecipient,
    codeLength,
    nowMs,
  } = deps

  /** The request as the rooms behind take it, or the problem that says why not. */
  function captchaOf(
    { key, ip, body }: RouteRequest<z.infer<typeof sendCaptchaBody>>,
    attempt: SendAttempt,
  ): CaptchaRequest {
    const { to, country } = recipientOf(normaliseRecipient, body)
    const { locale, params } = contentOf(deps, body, { app: key.app, to, country }, ownVariables)
    const { channel, scene, template } = body
    if (!templates.variables(template, channel, locale).has('code')) {
      throw invalid('template', 'does not say the code')
    }
    const origin = originOf(key, body.ip ?? ip, country)
    return { ...attempt, app: key.app, channel, to, scene, template, locale, params, origin }
  }

  return [
    defineRoute({
      method: 'post',
      path: '/v1/captchas',
      name: 'sendCaptcha',
      summary: 'Send a one-time code. A new code replaces the one before it.',
      access: 'page',
      body: sendCaptchaBody,
      pageBody: sendCaptchaPageBody(deps.pageTemplates),
      answers: { 202: { description: 'Accepted: it will be sent.', schema: acceptedCaptcha } },
      problems: [
        'invalid_recipient',
        'destination_not_allowed',
        'challenge_required',
        'limited',
        'locked',
      ],
      async send(request, attempt) {
        const captcha = captchaOf(request, attempt)
        const outcome = await pastChallenge(
          request,
          (isHuman) => sendCaptcha.send(captcha, isHuman),
          (sent) => (sent.accepted ? undefined : sent),
        )
        if (outcome instanceof Problem) return outcome
        return acceptedAnswer(request, outcome, { scene: request.body.scene, codeLength })
      },
      recall(request, attempt) {
        // An answer to a challenge may be good, so it is not remembered that one is asked for.
        const isHuman = request.body.challenge !== undefined
        const refuse = sendCaptcha.recall(captchaOf(request, attempt), isHuman)
        return (
          refuse &&
          (async () => {
            const refused = await refuse()
            return refused && refuseLimited(request, refused)
          })
        )
      },
      async adopt(request, attempt) {
        const outcome = await sendCaptcha.adopt(captchaOf(request, attempt))
        return (
          outcome && acceptedAnswer(request, outcome, { scene: request.body.scene, codeLength })
        )
      },
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
      async run(request) {
        const { body, key, ip, note } = request
        const { channel, scene, code, id } = body
        const { to, country } = recipientOf(normaliseRecipient, body)
        if (code.length !== codeLength) throw invalid('code', `has ${codeLength} digits`)
        const origin = originOf(key, body.ip ?? ip, country)
        const guess = { app: key.app, channel, to, scene, code, ...(id ? { id } : {}), origin }
        const outcome = await pastChallenge(
          request,
          (isHuman) => checkCaptcha(guess, isHuman),
          (checked) => (checked.result === 'refused' ? { policy: 'check', ...checked } : undefined),
        )
        if (outcome instanceof Problem) return outcome
        if (outcome.result === 'refused') throw new Error('a refusal is answered before')
        if (outcome.result === 'mismatch') {
          const { result: _, ...members } = outcome
          return new Problem('code_mismatch', members)
        }
        if (outcome.result === 'gone') return new Problem('code_gone')
        note({ noticeId: outcome.noticeId })
        const pass = await passes.issue({ app: key.app, scene, channel, to })
        return {
          status: 200,
          body: {
            verified: true,
            id: outcome.noticeId,
            scene,
            verifiedAt: new Date(nowMs()).toISOString(),
            pass,
          },
        }
      },
    }),
  ]
}
