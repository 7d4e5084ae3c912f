/** The answer to a send, of a notice or a code. */
import { z } from 'zod'
import type { SendOutcome } from '../notice/message.ts'
import type { Caller } from '../rules/caller.ts'
import { invalid } from './problem.ts'
import type { RouteResult } from './respond.ts'
import type { RouteRequest } from './route.ts'
import { channel, id, template, time } from './schemas.ts'

export const acceptedNotice = z
  .object({
    id,
    channel,
    to: z.string().meta({ description: 'Masked.', examples: ['+8613****8000'] }),
    template,
    state: z.literal('pending'),
    expiresAt: time,
    resendAt: time.meta({ description: 'From then on the limits admit the same request again.' }),
  })
  .meta({ id: 'AcceptedNotice' })

/** Sends what the body asks for, under the Idempotency-Key of the request. */
export async function answerSend<Body extends { template: string }>(
  { basePath, body, headers, caller, note }: RouteRequest<Body>,
  send: (
    asked: Body & { idempotencyKey: string | undefined },
    caller: Caller,
  ) => Promise<SendOutcome>,
): Promise<RouteResult> {
  const sent = await send({ ...body, idempotencyKey: idempotencyKeyOf(headers) }, caller)
  if (sent.outcome !== 'accepted') return sent
  const { outcome: _, ...accepted } = sent
  const { id, channel } = accepted
  note({ noticeId: id, channel, template: body.template })
  return { status: 202, headers: { location: `${basePath}/v1/notices/${id}` }, body: accepted }
}

export function idempotencyKeyOf(headers: RouteRequest['headers']): string | undefined {
  const key = headers['idempotency-key'] as string | undefined
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw invalid('Idempotency-Key', 'visibleAscii')
}
