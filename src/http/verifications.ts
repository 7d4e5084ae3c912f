/** Routes of verifications with several ways: the next way, the latest way, the end, and the state of each way. */
import { z } from 'zod'
import type { CancelCaptcha } from '../captcha/cancel.ts'
import type { WayOutcome } from '../captcha/verification-views.ts'
import type { Workflows } from '../captcha/workflows.ts'
import { noticeStates } from '../notice/states.ts'
import type { RouteResult } from './respond.ts'
import { defineRoute, idempotencyKeyOf, type Route, type RouteRequest } from './route.ts'
import {
  acceptedCaptcha,
  challengeAnswer,
  channel,
  verificationId as id,
  scene,
  workflow,
} from './schemas.ts'

const way = z.object({
  channel,
  index: z.int().meta({ description: 'Counts from 1.' }),
  of: z.int().meta({ description: 'Number of ways that have an address and a route.' }),
  next: channel.optional().meta({ description: 'The channel that `next` would begin.' }),
})

export const acceptedWay = acceptedCaptcha
  .omit({ channel: true })
  .extend({ id, workflow, way })
  .meta({ id: 'AcceptedWay' })

const verificationView = z
  .object({
    id,
    workflow,
    scene,
    to: z.string().meta({ description: 'Masked.' }),
    ended: z.enum(['passed', 'tries', 'canceled', 'gone']).optional().meta({
      description:
        'Why no way begins any more. `gone`: its code was replaced or lost, or its time ended.',
    }),
    ways: z.array(
      z.object({
        channel,
        noticeId: z.string().optional(),
        state: z.enum([...noticeStates, 'left_out', 'waiting']).meta({
          description: 'The state of its notice. `left_out`: limits or routes allowed none.',
        }),
        error: z.string().optional(),
        passed: z.literal(true).optional().meta({ description: 'Its code was typed.' }),
      }),
    ),
  })
  .meta({ id: 'Verification' })

/** The answer to a send, to `next` or to `way`. */
export function answerWay(
  { basePath, note }: Pick<RouteRequest, 'basePath' | 'note'>,
  sent: WayOutcome,
  status = 202,
): RouteResult {
  if (sent.outcome !== 'accepted') return sent
  const { outcome: _, ...accepted } = sent
  note({ verificationId: accepted.id, channel: accepted.way.channel })
  const headers = { location: `${basePath}/v1/captchas/${accepted.id}` }
  return { status, headers, body: accepted }
}

export function verificationRoutes(deps: {
  workflows: Pick<Workflows, 'next' | 'current' | 'view'>
  cancelCaptcha: CancelCaptcha
}): Route[] {
  const { workflows, cancelCaptcha } = deps
  return [
    defineRoute({
      method: 'post',
      path: '/v1/captchas/:id/next',
      name: 'beginNextWay',
      summary: 'Send the code by the next way of its workflow.',
      access: 'page',
      body: z
        .strictObject({ challenge: challengeAnswer })
        .meta({ id: 'BeginNextWay', examples: [{}] }),
      answers: { 202: { description: 'Accepted: it will be sent.', schema: acceptedWay } },
      problems: [
        'not_found',
        'no_more_ways',
        'code_gone',
        'invalid_recipient',
        'destination_not_allowed',
        'challenge_required',
        'limited',
        'locked',
      ],
      isSend: true,
      async run(request) {
        const { body, headers, params, caller } = request
        const asked = { ...body, id: params.id ?? '', idempotencyKey: idempotencyKeyOf(headers) }
        return answerWay(request, await workflows.next(asked, caller))
      },
    }),

    defineRoute({
      method: 'post',
      path: '/v1/captchas/:id/way',
      name: 'getWay',
      summary: 'The latest way of a verification. Begins nothing.',
      access: 'page',
      body: z.strictObject({}).meta({ id: 'GetWay', examples: [{}] }),
      isRead: true,
      answers: { 200: { description: 'The way that began last.', schema: acceptedWay } },
      problems: ['not_found', 'code_gone'],
      async run(request) {
        const { params, caller } = request
        return answerWay(request, await workflows.current(params.id ?? '', caller), 200)
      },
    }),

    defineRoute({
      method: 'post',
      path: '/v1/captchas/:id/cancel',
      name: 'cancelCaptcha',
      summary: 'End a code or a verification. Its codes pass no more, and no further way begins.',
      access: 'secret',
      body: z.strictObject({}).meta({ id: 'CancelCaptcha', examples: [{}] }),
      answers: { 204: { description: 'Ended.' } },
      problems: ['not_found', 'code_gone'],
      async run({ params, caller }) {
        const canceled = await cancelCaptcha(caller.app, params.id ?? '', false)
        return canceled.outcome === 'canceled' ? { status: 204 } : canceled
      },
    }),

    defineRoute({
      method: 'get',
      path: '/v1/captchas/:id',
      name: 'getVerification',
      summary: 'The ways of a verification, and how each ended.',
      access: 'secret',
      isRead: true,
      answers: { 200: { description: 'Its ways in their order.', schema: verificationView } },
      problems: ['not_found'],
      async run({ params, caller }) {
        const view = await workflows.view(caller.app, params.id ?? '')
        return view ? { status: 200, body: view } : { outcome: 'not_found' }
      },
    }),
  ]
}
