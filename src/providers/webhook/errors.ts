import { retryAfterMs } from '../../base/http-client.ts'
import { parseObject } from '../../base/json.ts'
import type { HttpAnswer } from '../http-provider.ts'
import type { SendResult } from '../provider.ts'

/** The statuses that speak of the message; any other speaks of the service. */
const aboutMessage = [400, 404, 422]

export function resultOfStatus(status: number): SendResult {
  const kind = aboutMessage.includes(status) ? 'rejected' : 'unavailable'
  return { kind, detail: `webhook HTTP ${status}` }
}

/**
 * A 429 or 503 is about the service, and would keep all messages back; one whose body says `{"about": "recipient"}` is
 * about this message's recipient alone. Undefined: any other answer.
 */
export function postponedBy(answer: HttpAnswer, nowMs: number): SendResult | undefined {
  const { status, headers, body } = answer
  if (status !== 429 && status !== 503) return undefined
  if (parseObject(body)?.about !== 'recipient') return undefined
  const waitMs = retryAfterMs(headers, nowMs, Number.NaN)
  const detail = `webhook HTTP ${status}, about the recipient`
  return { kind: 'postponed', detail, ...(Number.isNaN(waitMs) ? {} : { retryAfterMs: waitMs }) }
}
