/** The errors of CAMARA's definition: status, code and text. */
import { timeInWords } from '../../base/time-in-words.ts'
import type { Answer } from '../../http/problem.ts'

const faults = {
  INVALID_ARGUMENT: [400, 'The request is not valid.'],
  UNAUTHENTICATED: [401, 'Send a valid secret key as "Authorization: Bearer <key>".'],
  PERMISSION_DENIED: [403, 'This key may not use this API.'],
  NOT_FOUND: [404, 'There is nothing here.'],
  METHOD_NOT_ALLOWED: [405, 'This address accepts POST.'],
  TOO_MANY_REQUESTS: [429, 'Too many requests.'],
  UNAVAILABLE: [503, 'Temporarily unavailable.'],
  'ONE_TIME_PASSWORD_SMS.MAX_OTP_CODES_EXCEEDED': [403, 'Too many codes were sent to this number.'],
  'ONE_TIME_PASSWORD_SMS.PHONE_NUMBER_NOT_ALLOWED': [403, 'This number receives no SMS.'],
  'ONE_TIME_PASSWORD_SMS.PHONE_NUMBER_BLOCKED': [403, 'No messages are sent to this number.'],
  'ONE_TIME_PASSWORD_SMS.INVALID_OTP': [400, 'The code is wrong.'],
  'ONE_TIME_PASSWORD_SMS.VERIFICATION_EXPIRED': [400, 'This authenticationId is no longer valid.'],
  'ONE_TIME_PASSWORD_SMS.VERIFICATION_FAILED': [
    400,
    'Too many wrong codes for this authenticationId.',
  ],
} as const satisfies Record<string, readonly [status: number, message: string]>

export type FaultCode = keyof typeof faults

export function fault(code: FaultCode, detail = '', headers: Answer['headers'] = {}): Answer {
  const [status, message] = faults[code]
  return { status, headers, body: { status, code, message: `${message} ${detail}`.trim() } }
}

export const unavailable = () => fault('UNAVAILABLE', '', { 'Retry-After': '2' })

export function tooMany(retryAfterMs: number): Answer {
  const seconds = Math.ceil(retryAfterMs / 1_000)
  return fault('TOO_MANY_REQUESTS', `Try again in ${timeInWords(retryAfterMs, 'en')}.`, {
    'Retry-After': String(seconds),
  })
}
