import type { SendResult } from '../provider.ts'
import { type Refusal, refused } from '../send-result.ts'

/** The pause after a limit on spam or on calls, which Meta lifts slowly. */
const longWaitMs = 60_000
/** Meta sends one message in six seconds to the same number. */
const pairWaitMs = 6_000

/**
 * Errors of the Cloud API that change the result
 * (https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes). Others follow the HTTP
 * status.
 */
const kinds: ReadonlyMap<number, Refusal | 'barred'> = new Map([
  [0, 'unavailable'], // the app user cannot be authenticated
  [1, 'unavailable'], // unknown error
  [2, 'unavailable'], // the service is down or overloaded
  [3, 'unavailable'], // the token lacks a permission
  [4, 'throttled'], // too many calls of the app
  [10, 'unavailable'], // permission denied
  [33, 'unavailable'], // the sending number was deleted
  [190, 'unavailable'], // the access token has expired
  [368, 'unavailable'], // the account is blocked for a policy
  [80007, 'throttled'], // too many calls of the account
  [130429, 'throttled'], // the throughput is reached
  [130472, 'barred'], // the number takes part in an experiment of Meta
  [130497, 'barred'], // the account may not send to this country
  [131000, 'unavailable'], // unknown error
  [131005, 'unavailable'], // access denied
  [131016, 'unavailable'], // the service is overloaded
  [131021, 'invalid_recipient'], // the recipient is the sender
  [131026, 'invalid_recipient'], // no WhatsApp number, or it cannot get this message
  [131030, 'barred'], // the number is not on the list of a test account
  [131031, 'unavailable'], // the account is locked
  [131042, 'unavailable'], // the account does not pay
  [131045, 'unavailable'], // the sending number is not registered
  [131048, 'throttled'], // too many messages were reported as spam
  [131049, 'barred'], // Meta did not deliver, to keep its users content
  [131056, 'postponed'], // too many messages to this number
  [131057, 'unavailable'], // the account is in maintenance
  [131062, 'barred'], // the recipient has no number to which authentication templates go
  [133010, 'unavailable'], // the sending number is not registered
])

const slowlyLifted = [4, 80007, 131048]

/** Undefined for an error that the table does not have. */
export function resultOfError(code: number, retryAfterMs?: number): SendResult | undefined {
  const isTemplate = code >= 132_000 && code < 133_000
  const isPermission = code >= 200 && code < 300
  const kind =
    kinds.get(code) ?? (isTemplate ? 'rejected' : isPermission ? 'unavailable' : undefined)
  const detail = `whatsapp ${code}`
  if (kind === 'postponed') return { kind, retryAfterMs: pairWaitMs, detail }
  const waitMs = retryAfterMs ?? (slowlyLifted.includes(code) ? longWaitMs : undefined)
  return kind && refused(kind, detail, waitMs)
}
