import type { SendResult } from '../provider.ts'
import { type Refusal, refused } from '../send-result.ts'

/** Maps the statuses of Vonage's SMS API to results. They arrive as text in HTTP 200. Others are `unknown`. */
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
])

export function resultOfStatus(status: unknown): SendResult {
  const kind = kinds.get(String(status))
  return kind
    ? refused(kind, `vonage ${status}`)
    : { kind: 'unknown', detail: 'vonage: answer not understood' }
}
