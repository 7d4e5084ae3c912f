import { isSameSecret } from '../../base/same-secret.ts'
import { parseBeijingTime } from '../china.ts'
import { isObject, parseJson } from '../json.ts'
import type { ParsedReceipts, Receipt, ReceiptRequest } from '../kind.ts'
import { isCode } from '../result.ts'
import type { AliyunSettings } from './settings.ts'

/**
 * SmsReport in its HTTP form: an array of reports, each final. Aliyun signs nothing, so a secret token
 * in the address is what tells its reports from forged ones. Anything but `code: 0` makes it push the
 * same reports again, up to ten times.
 */
export function parseReceipts(request: ReceiptRequest, settings: AliyunSettings): ParsedReceipts {
  const { token } = request.query
  const { receiptToken } = settings
  if (!receiptToken || typeof token !== 'string' || !isSameSecret(token, receiptToken)) {
    return { ok: false, reason: 'forged' }
  }
  const reports = parseJson(request.rawBody.toString())
  if (!Array.isArray(reports)) return { ok: false, reason: 'malformed' }
  const receipts = reports.map(readReport)
  if (!receipts.every((receipt) => receipt !== undefined)) return { ok: false, reason: 'malformed' }
  const body = JSON.stringify({ code: 0, msg: 'OK' })
  return { ok: true, receipts, reply: { status: 200, contentType: 'application/json', body } }
}

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
