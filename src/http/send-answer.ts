/** What the two sending routes answer. */

import type { Problem } from '../base/problems.ts'
import type { SendOutcome } from '../notice/send.ts'
import { maskRecipient } from '../recipient/mask-recipient.ts'
import { type Answer, refusalProblem } from './problem.ts'
import type { RouteRequest } from './route.ts'

/** The 202 of a send, or the problem that refuses it. `more` are the members only this kind of send has. */
export function acceptedAnswer(
  request: RouteRequest,
  outcome: SendOutcome,
  more: Readonly<Record<string, unknown>>,
): Answer | Problem {
  if (!outcome.accepted) return refusalProblem(outcome.policy, outcome.refusal)
  const { notice, resendAt, lockedForMs } = outcome
  const { id, channel, to, template, expiresAt } = notice
  request.note({ noticeId: id, channel, template })
  return {
    status: 202,
    headers: { location: `${request.basePath}/v1/notices/${id}` },
    body: {
      id,
      channel,
      to: maskRecipient(channel, to),
      ...more,
      state: 'pending',
      expiresAt: expiresAt.toISOString(),
      resendAt: resendAt.toISOString(),
      ...(lockedForMs === undefined ? {} : { lockedForMs }),
    },
  }
}
