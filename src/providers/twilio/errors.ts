import type { SendResult } from '../provider.ts'
import { defaultRetryAfterMs } from '../send-result.ts'

/**
 * Maps the numbered errors of Twilio's Error and Warning Dictionary to results. Twilio adds more specific numbers over
 * time. So only numbers that change the result are listed; for other errors, the HTTP status decides.
 */
const invalidRecipient = new Set([
  21211, // invalid To number
  21265, // To is a short code
  21610, // the recipient has opted out
  21614, // To is not a mobile number
  21635, // To is a landline
  30005, // unknown handset
  30006, // landline or unreachable carrier
])

/** The phone is off, or its network refused the message without a reason. */
const postponed = new Set([
  30003, // unreachable handset
  30008, // unknown error of the carrier
])

const throttledMs: ReadonlyMap<number, number> = new Map([
  [20429, defaultRetryAfterMs], // too many requests
  [21611, 60_000], // ten hours of messages are queued for this sender
  [30001, 60_000], // queue overflow
])

/** Errors of the account, not of the message. */
const account = new Set([
  10001, // account is not active
  20003, // permission denied
  30002, // account suspended
])

export function resultOfError(code: unknown, status: number): SendResult {
  const known = typeof code === 'number' && Number.isInteger(code) ? code : undefined
  const detail = known === undefined ? `twilio HTTP ${status}` : `twilio ${known}`
  if (known !== undefined) {
    const waitMs = throttledMs.get(known)
    if (waitMs !== undefined) return { kind: 'throttled', retryAfterMs: waitMs, detail }
    if (invalidRecipient.has(known)) return { kind: 'invalid_recipient', detail }
    if (postponed.has(known)) return { kind: 'postponed', detail }
    if (account.has(known)) return { kind: 'unavailable', detail }
  }
  return { kind: status === 400 || status === 201 ? 'rejected' : 'unavailable', detail }
}
