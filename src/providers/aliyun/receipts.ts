import { isObject } from '../../base/json.ts'
import type { Receipt } from '../../base/receipt.ts'
import { parseBeijingTime } from '../beijing-time.ts'
import { isCode } from '../send-result.ts'
import { defineReportReader } from '../token-receipts.ts'

/** Reads SmsReport in its HTTP form. Without the answer `code: 0`, Aliyun pushes the reports again, up to ten times. */
export const createReceiptReader = defineReportReader(readReport, { code: 0, msg: 'OK' })

function readReport(report: unknown): Receipt | undefined {
  if (!isObject(report) || typeof report.success !== 'boolean') return undefined
  const { biz_id: messageId, out_id: noticeId, err_code: code } = report
  const at = parseBeijingTime(report.report_time)
  const receipt = {
    ...(typeof messageId === 'string' && messageId !== '' ? { messageId } : {}),
    ...(typeof noticeId === 'string' && noticeId !== '' ? { noticeId } : {}),
    outcome: report.success ? ('delivered' as const) : ('failed' as const),
    ...(at === undefined ? {} : { at }),
    ...(isCode(code) ? { detail: code } : {}),
  }
  return receipt.messageId || receipt.noticeId ? receipt : undefined
}
