import type { SendResult } from '../provider.ts'
import { type Refusal, refused } from '../send-result.ts'

/**
 * Maps the statuses of Vonage's SMS API to results. They arrive as text in HTTP 200. Every status but 0 is an error
 * (https://developer.vonage.com/en/messaging/sms/guides/troubleshooting-sms), so a message with another one is not sent.
 */
const kinds: ReadonlyMap<string, Refusal | 'barred'> = new Map([
  ['1', 'throttled'], // more calls per second than the account may make
  ['2', 'rejected'], // a parameter is missing
  ['3', 'rejected'], // a parameter is wrong
  ['4', 'unavailable'], // wrong credentials
  ['5', 'unavailable'], // internal error
  ['6', 'barred'], // Vonage knows no route for the number
  ['7', 'barred'], // the number is on Vonage's list
  ['8', 'unavailable'], // the account is suspended
  ['9', 'unavailable'], // no credit
  ['10', 'throttled'], // too many connections
  ['11', 'unavailable'], // the account has no SMS API
  ['12', 'rejected'], // too long
  ['14', 'unavailable'], // wrong signature
  ['15', 'rejected'], // this sender is not allowed
  ['29', 'barred'], // a trial account, which sends only to listed numbers
  ['32', 'unavailable'], // the account wants signed calls
  ['33', 'barred'], // the number is out of use
])

/** Undefined for a value that is no status. */
export function resultOfStatus(status: unknown): SendResult | undefined {
  if (!/^\d{1,4}$/.test(String(status))) return undefined
  return refused(kinds.get(String(status)) ?? 'rejected', `vonage ${status}`)
}
