import { isObject } from '../../base/json.ts'
import type { Receipt } from '../../base/receipt.ts'
import { parseBeijingTime } from '../beijing-time.ts'
import { isCode } from '../send-result.ts'
import { defineReportReader } from '../token-receipts.ts'

/** Reads SmsReport in its HTTP form. Without the answer `code: 0`, Aliyun pushes the reports again, up to ten times. */
export const createReceiptReader = defineReportReader(readReport, {
  thanks: { code: 0, msg: 'OK' },
})

function readReport(report: unknown): Receipt | undefined {
  if (!isObject(report) || typeof report.success !== 'boolean') return undefined
  const { biz_id: messageId, out_id: noticeId, err_code: code } = report
  if (!isId(messageId) && !isId(noticeId)) return undefined
  return {
    messageId: isId(messageId) ? messageId : undefined,
    noticeId: isId(noticeId) ? noticeId : undefined,
    outcome: report.success ? 'delivered' : 'failed',
    at: parseBeijingTime(report.report_time),
    detail: isCode(code) ? code : undefined,
  }
}

const isId = (value: unknown): value is string => typeof value === 'string' && value !== ''
