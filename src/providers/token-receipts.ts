import { parseJson } from '../base/json.ts'
import {
  type ParsedReceipts,
  type Receipt,
  type ReceiptHead,
  type ReceiptReader,
  type ReceiptRequest,
  unreadable,
} from '../base/receipt.ts'
import { isSameSecret } from '../crypto/same-secret.ts'

/**
 * Receipts of vendors that do not sign. A secret token in the address proves that a report is genuine. The vendors push
 * one report or several in an array. After the answer `thanks`, they do not push them again. `readReport` returns
 * undefined for a value that is not a report, and `notFinal` for a report that a final report will follow.
 */
export const notFinal = 'notFinal'
type ReadReport = (report: unknown) => Receipt | typeof notFinal | undefined

export function defineReportReader(
  readReport: ReadReport,
  thanks: object,
  { readsQuery = false } = {},
): (settings: { receiptToken?: string | undefined }) => ReceiptReader {
  return ({ receiptToken }) => ({
    readsQuery,
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
  readReport: ReadReport,
  thanks: object,
): ParsedReceipts {
  const receipts = receiptsIn(bodyOf(request), readReport)
  if (!receipts) return { ok: false, reason: 'malformed' }
  const body = JSON.stringify(thanks)
  return { ok: true, receipts, reply: { status: 200, contentType: 'application/json', body } }
}

/** The body. Without one, the fields of the query or of a form. */
function bodyOf({ rawBody, query, headers }: ReceiptRequest): Buffer {
  if (rawBody.length === 0) return Buffer.from(JSON.stringify(query))
  if (!String(headers['content-type']).startsWith('application/x-www-form-urlencoded')) {
    return rawBody
  }
  return Buffer.from(JSON.stringify(Object.fromEntries(new URLSearchParams(rawBody.toString()))))
}

/** The receipts in a body with one report or an array of them. Undefined if none of the reports can be read. */
export function receiptsIn(body: Buffer, readReport: ReadReport): Receipt[] | undefined {
  const pushed = parseJson(body.toString())
  const reports = (Array.isArray(pushed) ? pushed : [pushed]).map(readReport)
  if (reports.length > 0 && reports.every((report) => report === undefined)) return undefined
  return reports.filter((report) => report !== notFinal).map((report) => report ?? unreadable)
}
