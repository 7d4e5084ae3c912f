import type { SendResult } from '../provider.ts'
import { isCode, type Refusal, refused } from '../send-result.ts'

/**
 * Maps the errors of SES to results. None is about one recipient: SES accepts a mail to any address, and a bounce comes
 * later. So the errors concern the mail (`rejected`) or the account.
 */
const kinds: ReadonlyMap<unknown, Refusal> = new Map([
  ['MessageRejected', 'rejected'],
  ['BadRequestException', 'rejected'],
  ['TooManyRequestsException', 'throttled'],
  // The common error of all services of AWS.
  ['ThrottlingException', 'throttled'],
  ['LimitExceededException', 'throttled'],
])

/** The pause when the quota of 24 hours is used up. */
const quotaWaitMs = 3_600_000

export function resultOfError(type: unknown, status: number): SendResult {
  // The header may go on with a colon and an address.
  const [name] = typeof type === 'string' ? type.split(':') : []
  const detail = isCode(name) ? `ses ${name}` : `ses HTTP ${status}`
  const waitMs = name === 'LimitExceededException' ? quotaWaitMs : undefined
  return refused(kinds.get(name) ?? 'unavailable', detail, waitMs)
}
