import type { SendResult } from '../provider.ts'
import { defaultRetryAfterMs, isCode } from '../send-result.ts'

/**
 * Maps the codes of Dysmsapi and Dypnsapi to results. They arrive in HTTP 200 and in 4xx. `isv` is a fault of the caller: of the
 * message, unless listed here. `isp` is a fault of the platform. Other codes come from the API gateway (keys, clocks,
 * throttling).
 *
 * `isv.BUSINESS_LIMIT_CONTROL` is the cap of one number under one signature (1 a minute, 5 an hour, 10 a day by default).
 * A repeat at once never helps, and no other recipient is affected. Every other cap belongs to the account. Dypnsapi has
 * some of the codes without `isv`, and `biz.FREQUENCY` for a number that gets a second code too soon.
 */
const invalidRecipient = new Set(['isv.MOBILE_NUMBER_ILLEGAL', 'MOBILE_NUMBER_ILLEGAL'])

const recipientCaps = new Set([
  'isv.BUSINESS_LIMIT_CONTROL',
  'BUSINESS_LIMIT_CONTROL',
  'biz.FREQUENCY',
])

const rejected = new Set(['INVALID_PARAMETERS'])

const account = new Set([
  'isv.ACCOUNT_ABNORMAL',
  'isv.ACCOUNT_NOT_EXISTS',
  'isv.AMOUNT_NOT_ENOUGH',
  'isv.DENY_IP_RANGE',
  'isv.OUT_OF_SERVICE',
  'isv.PRODUCT_UNSUBSCRIBE',
  'isv.PRODUCT_UN_SUBSCRIPT',
])

/** Caps on all messages of the account. Only the owner of the account can lift them. */
const accountCaps = new Set(['isv.DAY_LIMIT_CONTROL', 'isv.MONTH_LIMIT_CONTROL'])

const hourMs = 3_600_000

export function resultOfCode(code: unknown, sentence: unknown): SendResult {
  if (!isCode(code)) return { kind: 'unknown', detail: 'aliyun: answer not understood' }
  const detail = `aliyun ${code}`
  if (recipientCaps.has(code)) {
    const retryAfterMs = capWaitMs(String(sentence))
    return { kind: 'postponed', retryAfterMs, detail }
  }
  if (accountCaps.has(code)) return { kind: 'throttled', retryAfterMs: hourMs, detail }
  if (code.startsWith('Throttling')) {
    return { kind: 'throttled', retryAfterMs: defaultRetryAfterMs, detail }
  }
  if (invalidRecipient.has(code)) return { kind: 'invalid_recipient', detail }
  if (rejected.has(code)) return { kind: 'rejected', detail }
  if (account.has(code) || !code.startsWith('isv.')) return { kind: 'unavailable', detail }
  return { kind: 'rejected', detail }
}

/** The text contains the window: 触发分钟级流控, 触发小时级流控, 触发天级流控. */
function capWaitMs(sentence: string): number {
  if (sentence.includes('天级')) return 24 * hourMs
  if (sentence.includes('小时级')) return hourMs
  return 60_000
}
