import type { SendResult } from '../provider.ts'
import { type Refusal, refused } from '../send-result.ts'

/**
 * Maps the numbered errors of Twilio's Error and Warning Dictionary to results. Twilio adds more specific numbers over
 * time. So only numbers that change the result are listed; for other errors, the HTTP status decides.
 */
const kinds: ReadonlyMap<unknown, Refusal | 'barred' | 'opted_out'> = new Map([
  [10001, 'unavailable'], // account is not active
  [20003, 'unavailable'], // permission denied
  [20429, 'throttled'], // too many requests
  [21211, 'invalid_recipient'], // invalid To number
  [21214, 'invalid_recipient'], // the number can't be called
  [21215, 'barred'], // the account may not call this country
  [21216, 'barred'], // Twilio does not call this number
  [21217, 'invalid_recipient'], // no valid number
  [21265, 'invalid_recipient'], // To is a short code
  [21610, 'opted_out'], // the recipient has opted out of this sender
  [21611, 'throttled'], // ten hours of messages are queued for this sender
  [21614, 'invalid_recipient'], // To is not a mobile number
  [21635, 'barred'], // To is a landline in a country where Twilio sends to none
  [30001, 'throttled'], // queue overflow
  [30002, 'unavailable'], // account suspended
  [30003, 'postponed'], // unreachable handset: the phone is off
  [30005, 'invalid_recipient'], // unknown handset
  [30006, 'invalid_recipient'], // landline or unreachable carrier
  [30008, 'postponed'], // unknown error of the carrier: its network refused without a reason
])

/** The pause for a full queue. */
const queueWaitMs = 60_000

export function resultOfError(code: unknown, status: number): SendResult {
  const detail = `twilio ${Number.isInteger(code) ? code : `HTTP ${status}`}`
  const byStatus = status === 400 || status === 201 ? 'rejected' : 'unavailable'
  return refused(kinds.get(code) ?? byStatus, detail, code === 20429 ? undefined : queueWaitMs)
}
