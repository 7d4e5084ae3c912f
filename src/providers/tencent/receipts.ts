import { isObject } from '../../base/json.ts'
import type { Receipt } from '../../base/receipt.ts'
import { parseBeijingTime } from '../beijing-time.ts'
import { isCode } from '../send-result.ts'
import { defineReportReader } from '../token-receipts.ts'

/** The status callback. `sid` of a report is the SerialNo of its send. */
export const createReceiptReader = defineReportReader(readReport, {
  thanks: { result: 0, errmsg: 'OK' },
})

function readReport(report: unknown): Receipt | undefined {
  if (!isObject(report) || typeof report.sid !== 'string' || report.sid === '') return undefined
  const { report_status: status, errmsg: code, sid: messageId } = report
  if (status !== 'SUCCESS' && status !== 'FAIL') return undefined
  return {
    messageId,
    outcome: status === 'SUCCESS' ? 'delivered' : 'failed',
    at: parseBeijingTime(report.user_receive_time),
    detail: isCode(code) ? code : undefined,
  }
}
