import type { SendResult } from '../provider.ts'
import { isCode, type Refusal, refused, wordsBy } from '../send-result.ts'

/**
 * Maps the codes of SMS v20210111 to results. All arrive in HTTP 200: as `Error` for the whole call, or as `Code` beside
 * the number. The part before the dot decides unless the whole code is listed.
 */
const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

/** Caps on one number, and the hours of advertising: Tencent sends it from 8 to 22 o'clock. */
const laterMs: ReadonlyMap<string, number> = new Map([
  ['FailedOperation.MarketingSendTimeConstraint', hourMs],
  ['LimitExceeded.DeliveryFrequencyLimit', minuteMs],
  ['LimitExceeded.PhoneNumberThirtySecondLimit', minuteMs / 2],
  ['LimitExceeded.PhoneNumberOneHourLimit', hourMs],
  ['LimitExceeded.PhoneNumberDailyLimit', dayMs],
  ['LimitExceeded.PhoneNumberSameContentDailyLimit', dayMs],
])

/** Caps on one region. Numbers of other regions can still be sent to. */
const regionCap = /^LimitExceeded\.App(CountryOrRegion|Global|MainlandChina)/

/** Whole codes, and families of codes. Other families concern the account or Tencent. */
const kinds = wordsBy<Refusal | 'barred'>({
  // The person has unsubscribed, or Tencent's list has the number.
  barred: 'FailedOperation.PhoneNumberInBlacklist',
  invalid_recipient: 'InvalidParameterValue.IncorrectPhoneNumber',
  unavailable: 'FailedOperation.InsufficientBalanceInSmsPackage',
  // The platform timed out on its back end, which may have sent the message.
  unknown: 'InternalError.SendAndRecvFail InternalError.Timeout',
  rejected: [
    'FailedOperation InvalidParameter InvalidParameterValue MissingParameter',
    'UnknownParameter UnsupportedOperation',
  ].join(' '),
  throttled: 'LimitExceeded RequestLimitExceeded',
})

/** Undefined for a value that is no code. */
export function resultOfCode(code: unknown): SendResult | undefined {
  if (!isCode(code)) return undefined
  const detail = `tencent ${code}`
  const capMs = laterMs.get(code) ?? (regionCap.test(code) ? hourMs : undefined)
  if (capMs !== undefined) return { kind: 'postponed', retryAfterMs: capMs, detail }
  const [family = ''] = code.split('.')
  const kind = kinds.get(code) ?? kinds.get(family) ?? 'unavailable'
  return refused(kind, detail, family === 'LimitExceeded' ? hourMs : undefined)
}
