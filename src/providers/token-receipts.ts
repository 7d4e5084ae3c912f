import { parseJson } from '../base/json.ts'
import type {
  ParsedReceipts,
  Receipt,
  ReceiptHead,
  ReceiptReader,
  ReceiptRequest,
} from '../base/receipt.ts'
import { isSameSecret } from '../crypto/same-secret.ts'

/**
 * The receipts of vendors that sign nothing: a secret token in the address is what tells their reports
 * from forged ones. They push arrays of reports, each final; `thanks` is the answer that keeps them from
 * pushing again.
 */
export function defineReportReader(
  readReport: (report: unknown) => Receipt | undefined,
  thanks: object,
): (settings: { receiptToken?: string | undefined }) => ReceiptReader {
  return ({ receiptToken }) => ({
    // They push many at a time, and the token stands in the head.
    maxBodyBytes: 1_048_576,
    mayBeGenuine: (head) => hasToken(head, receiptToken),
    parse: (request) =>
      hasToken(request, receiptToken)
        ? parseReports(request, readReport, thanks)
        : { ok: false, reason: 'forged' },
  })
}

function hasToken({ query: { token } }: ReceiptHead, receiptToken: string | undefined): boolean {
  return !!receiptToken && typeof token === 'string' && isSameSecret(token, receiptToken)
}

function parseReports(
  request: ReceiptRequest,
  readReport: (report: unknown) => Receipt | undefined,
  thanks: object,
): ParsedReceipts {
  const reports = parseJson(request.rawBody.toString())
  if (!Array.isArray(reports)) return { ok: false, reason: 'malformed' }
  const receipts = reports.map(readReport)
  if (!receipts.every((receipt) => receipt !== undefined)) return { ok: false, reason: 'malformed' }
  const body = JSON.stringify(thanks)
  return { ok: true, receipts, reply: { status: 200, contentType: 'application/json', body } }
}
