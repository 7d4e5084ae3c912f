import { isForeignId } from '../../base/ids.ts'
import { isObject } from '../../base/json.ts'
import { unreadable } from '../../base/receipt.ts'
import { defineReportReader, notFinal } from '../token-receipts.ts'

const outcomes: ReadonlyMap<unknown, 'delivered' | 'failed'> = new Map([
  ['delivered', 'delivered'],
  ['expired', 'failed'],
  ['failed', 'failed'],
  ['rejected', 'failed'],
])

/** A final report follows. */
const otherStatuses: readonly unknown[] = ['accepted', 'buffered', 'unknown']

/**
 * Delivery receipts. By the settings of the account, Vonage sends them as JSON, as a form or as the query of a GET. It
 * repeats them until the answer is 2xx.
 */
export const createReceiptReader = defineReportReader(readReport, { thanks: {}, readsQuery: true })

function readReport(report: unknown) {
  if (!isObject(report) || !isForeignId(report.messageId)) return undefined
  const outcome = outcomes.get(report.status)
  if (!outcome) return otherStatuses.includes(report.status) ? notFinal : unreadable
  const { messageId, 'client-ref': noticeId, 'err-code': code } = report
  return {
    messageId,
    noticeId: isForeignId(noticeId) ? noticeId : undefined,
    outcome,
    detail: /^\d{1,4}$/.test(String(code)) ? `vonage ${code}` : undefined,
  }
}
