import { retryAfterMs } from '../../base/http-client.ts'
import { parseObject } from '../../base/json.ts'
import type { HttpAnswer } from '../http-provider.ts'
import type { SendResult } from '../provider.ts'

/** Statuses about the message. All others are about the service. */
const aboutMessage = [400, 404, 422]

export function resultOfStatus(status: number): SendResult {
  const kind = aboutMessage.includes(status) ? 'rejected' : 'unavailable'
  return { kind, detail: `webhook HTTP ${status}` }
}

/**
 * A 429 or 503 concerns the service and stops all messages. With the body `{"about": "recipient"}`, it concerns only the
 * recipient of this message. Undefined for any other answer.
 */
export function postponedBy(answer: HttpAnswer, nowMs: number): SendResult | undefined {
  const { status, headers, body } = answer
  if (status !== 429 && status !== 503) return undefined
  if (parseObject(body)?.about !== 'recipient') return undefined
  const waitMs = retryAfterMs(headers, nowMs, Number.NaN)
  const detail = `webhook HTTP ${status}, about the recipient`
  return { kind: 'postponed', detail, ...(Number.isNaN(waitMs) ? {} : { retryAfterMs: waitMs }) }
}
