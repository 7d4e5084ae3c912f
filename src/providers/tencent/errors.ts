import type { SendResult } from '../provider.ts'
import { defaultRetryAfterMs, isCode } from '../send-result.ts'

/**
 * Maps the codes of SMS v20210111 to results. All arrive in HTTP 200: as `Error` for the whole call, or as `Code` beside
 * the number. The part before the dot decides unless the whole code is listed.
 */
const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

const recipientCapMs: Readonly<Record<string, number>> = {
  'LimitExceeded.DeliveryFrequencyLimit': minuteMs,
  'LimitExceeded.PhoneNumberThirtySecondLimit': minuteMs / 2,
  'LimitExceeded.PhoneNumberOneHourLimit': hourMs,
  'LimitExceeded.PhoneNumberDailyLimit': dayMs,
  'LimitExceeded.PhoneNumberSameContentDailyLimit': dayMs,
}

/** Caps on one region. Numbers of other regions can still be sent to. */
const regionCap = /^LimitExceeded\.App(CountryOrRegion|Global|MainlandChina)/

const listed: Readonly<Record<string, 'invalid_recipient' | 'unavailable' | 'unknown'>> = {
  'FailedOperation.PhoneNumberInBlacklist': 'invalid_recipient',
  'InvalidParameterValue.IncorrectPhoneNumber': 'invalid_recipient',
  'FailedOperation.InsufficientBalanceInSmsPackage': 'unavailable',
  // The platform timed out on its back end, which may have sent the message.
  'InternalError.SendAndRecvFail': 'unknown',
  'InternalError.Timeout': 'unknown',
}

/** Families of errors about the request, which would be rejected again. Others concern the account or Tencent. */
const messageFamilies = new Set([
  'FailedOperation',
  'InvalidParameter',
  'InvalidParameterValue',
  'MissingParameter',
  'UnknownParameter',
  'UnsupportedOperation',
])

export function resultOfCode(code: unknown): SendResult {
  if (!isCode(code)) return { kind: 'unknown', detail: 'tencent: answer not understood' }
  const detail = `tencent ${code}`
  const capMs = Object.hasOwn(recipientCapMs, code) ? recipientCapMs[code] : undefined
  if (capMs !== undefined) return { kind: 'postponed', retryAfterMs: capMs, detail }
  if (regionCap.test(code)) return { kind: 'postponed', retryAfterMs: hourMs, detail }
  if (Object.hasOwn(listed, code)) return { kind: listed[code] ?? 'unknown', detail }
  const family = code.split('.')[0] ?? ''
  if (family === 'LimitExceeded') return { kind: 'throttled', retryAfterMs: hourMs, detail }
  if (family === 'RequestLimitExceeded') {
    return { kind: 'throttled', retryAfterMs: defaultRetryAfterMs, detail }
  }
  return { kind: messageFamilies.has(family) ? 'rejected' : 'unavailable', detail }
}
