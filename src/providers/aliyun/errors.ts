import type { SendResult } from '../provider.ts'
import { isCode, type Refusal, refused, wordsBy } from '../send-result.ts'

/**
 * Maps the codes of Dysmsapi and Dypnsapi to results. They arrive in HTTP 200 and in 4xx. `isv` is a fault of the caller: of the
 * message, unless listed here. `isp` is a fault of the platform. Other codes come from the API gateway (keys, clocks,
 * throttling).
 *
 * `isv.BUSINESS_LIMIT_CONTROL` is the cap of one number under one signature (1 a minute, 5 an hour, 10 a day by default).
 * A repeat at once never helps, and no other recipient is affected. Every other cap belongs to the account. Dypnsapi has
 * some of the codes without `isv`, and `biz.FREQUENCY` for a number that gets a second code too soon.
 */
const kinds = wordsBy<Refusal | 'barred'>({
  invalid_recipient: 'isv.MOBILE_NUMBER_ILLEGAL MOBILE_NUMBER_ILLEGAL',
  postponed: 'isv.BUSINESS_LIMIT_CONTROL BUSINESS_LIMIT_CONTROL biz.FREQUENCY',
  rejected: 'INVALID_PARAMETERS',
  unavailable: [
    'isv.ACCOUNT_ABNORMAL isv.ACCOUNT_NOT_EXISTS isv.AMOUNT_NOT_ENOUGH isv.DENY_IP_RANGE',
    'isv.OUT_OF_SERVICE isv.PRODUCT_UNSUBSCRIBE isv.PRODUCT_UN_SUBSCRIPT',
    // The account sent nothing for 45 days (https://developer.aliyun.com/ask/636559).
    'isv.SECURITY_FROZEN_ACCOUNT',
  ].join(' '),
  // The person has unsubscribed.
  barred: 'isv.CUSTOMER_REFUSED',
  // Caps on all messages of the account. Only the owner of the account can lift them.
  throttled: 'isv.DAY_LIMIT_CONTROL isv.MONTH_LIMIT_CONTROL',
})

const hourMs = 3_600_000

/** Undefined for a value that is no code. */
export function resultOfCode(code: unknown, sentence: unknown): SendResult | undefined {
  if (!isCode(code)) return undefined
  const detail = `aliyun ${code}`
  if (code.startsWith('Throttling')) return refused('throttled', detail)
  const kind = kinds.get(code) ?? (code.startsWith('isv.') ? 'rejected' : 'unavailable')
  return kind === 'postponed'
    ? { kind, retryAfterMs: capWaitMs(String(sentence)), detail }
    : refused(kind, detail, hourMs)
}

/** The text contains the window: 触发分钟级流控, 触发小时级流控, 触发天级流控. */
function capWaitMs(sentence: string): number {
  if (sentence.includes('天级')) return 24 * hourMs
  if (sentence.includes('小时级')) return hourMs
  return 60_000
}
