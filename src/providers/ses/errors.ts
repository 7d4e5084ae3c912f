import type { SendResult } from '../provider.ts'
import { defaultRetryAfterMs, isCode } from '../send-result.ts'

/**
 * Maps the errors of SES to results. None is about one recipient: SES accepts a mail to any address, and a bounce comes
 * later. So the errors concern the mail (`rejected`) or the account.
 */
const aboutTheMail = new Set(['MessageRejected', 'BadRequestException'])

/** The pause when the quota of 24 hours is used up. */
const quotaWaitMs = 3_600_000

export function resultOfError(type: unknown, status: number): SendResult {
  // The header may go on with a colon and an address.
  const [name] = typeof type === 'string' ? type.split(':') : []
  const detail = isCode(name) ? `ses ${name}` : `ses HTTP ${status}`
  if (name === 'TooManyRequestsException') {
    return { kind: 'throttled', retryAfterMs: defaultRetryAfterMs, detail }
  }
  if (name === 'LimitExceededException') {
    return { kind: 'throttled', retryAfterMs: quotaWaitMs, detail }
  }
  return { kind: name && aboutTheMail.has(name) ? 'rejected' : 'unavailable', detail }
}
