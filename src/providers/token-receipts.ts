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
 * Receipts of vendors that do not sign: a secret token in the address proves that a report is genuine. The vendors push
 * arrays of reports, each final. After the answer `thanks`, they do not push them again.
 */
export function defineReportReader(
  readReport: (report: unknown) => Receipt | undefined,
  thanks: object,
): (settings: { receiptToken?: string | undefined }) => ReceiptReader {
  return ({ receiptToken }) => ({
    // Large, because vendors push many reports at once, and the token is checked before the body.
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
