import { isForeignId } from '../../base/ids.ts'
import { isObject } from '../../base/json.ts'
import { defineReportReader, notFinal } from '../token-receipts.ts'

const outcomes: ReadonlyMap<unknown, 'delivered' | 'failed'> = new Map([
  ['delivered', 'delivered'],
  ['expired', 'failed'],
  ['failed', 'failed'],
  ['rejected', 'failed'],
])

/** Delivery receipts, pushed as JSON. Vonage repeats them until the answer is 2xx. */
export const createReceiptReader = defineReportReader(readReport, {})

function readReport(report: unknown) {
  if (!isObject(report) || !isForeignId(report.messageId)) return undefined
  const outcome = outcomes.get(report.status)
  if (!outcome) return notFinal
  const { messageId, 'client-ref': noticeId, 'err-code': code } = report
  return {
    messageId,
    noticeId: isForeignId(noticeId) ? noticeId : undefined,
    outcome,
    detail: /^\d{1,4}$/.test(String(code)) ? `vonage ${code}` : undefined,
  }
}
