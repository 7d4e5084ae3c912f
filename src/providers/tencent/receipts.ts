import { isSameSecret } from '../../base/same-secret.ts'
import { parseBeijingTime } from '../china.ts'
import { isObject, parseJson } from '../json.ts'
import type { ParsedReceipts, Receipt, ReceiptRequest } from '../kind.ts'
import { isCode } from '../result.ts'
import type { TencentSettings } from './settings.ts'

/**
 * The status callback: an array of reports, each final, found again by `sid`, which is the SerialNo of
 * the send. Tencent signs nothing, so a secret token in the address tells its reports from forged ones.
 */
export function parseReceipts(request: ReceiptRequest, settings: TencentSettings): ParsedReceipts {
  const { token } = request.query
  const { receiptToken } = settings
  if (!receiptToken || typeof token !== 'string' || !isSameSecret(token, receiptToken)) {
    return { ok: false, reason: 'forged' }
  }
  const reports = parseJson(request.rawBody.toString())
  if (!Array.isArray(reports)) return { ok: false, reason: 'malformed' }
  const receipts = reports.map(readReport)
  if (!receipts.every((receipt) => receipt !== undefined)) return { ok: false, reason: 'malformed' }
  const body = JSON.stringify({ result: 0, errmsg: 'OK' })
  return { ok: true, receipts, reply: { status: 200, contentType: 'application/json', body } }
}

function readReport(report: unknown): Receipt | undefined {
  if (!isObject(report) || typeof report.sid !== 'string' || report.sid === '') return undefined
  const { report_status: status, errmsg: code, sid: messageId } = report
  if (status !== 'SUCCESS' && status !== 'FAIL') return undefined
  const at = parseBeijingTime(report.user_receive_time)
  return {
    messageId,
    outcome: status === 'SUCCESS' ? 'delivered' : 'failed',
    ...(at === undefined ? {} : { at }),
    ...(isCode(code) ? { detail: code } : {}),
  }
}
