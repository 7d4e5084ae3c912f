import {
  type ParsedReceipts,
  type Receipt,
  type ReceiptHead,
  type ReceiptReader,
  type ReceiptRequest,
  unreadable,
} from '../base/receipt.ts'
import { isSameSecret } from '../crypto/same-secret.ts'
import { readBody } from './places.ts'

/**
 * Receipts of vendors that do not sign. A secret token in the address proves that a report is genuine. The vendors push
 * one report or several in an array. After the answer `thanks`, they do not push them again. `readReport` returns
 * undefined for a value that is not a report, and `notFinal` for a report that a final report will follow.
 */
export const notFinal = 'notFinal'
type ReadReport = (report: unknown) => Receipt | typeof notFinal | undefined

interface ReportOptions {
  /** The answer after which the vendor does not push the same reports again: JSON, or a text. */
  readonly thanks: object | string
  /** The vendor may send a report as the query of a GET. */
  readonly readsQuery?: boolean
  /** The vendor may send the token as a bearer. */
  readonly readsBearer?: boolean
  /** The report or the list of reports in what was pushed. */
  readonly reportsIn?: (pushed: unknown) => unknown
}

export function defineReportReader(
  readReport: ReadReport,
  options: ReportOptions,
): (settings: { receiptToken?: string | undefined }) => ReceiptReader {
  const { readsQuery = false, readsBearer = false } = options
  return ({ receiptToken }) => {
    const hasToken = ({ query, headers }: ReceiptHead) => {
      const bearer = /^Bearer ([!-~]+)$/i.exec(String(headers.authorization))?.[1]
      return [query.token, readsBearer && bearer].some(
        (token) => !!receiptToken && typeof token === 'string' && isSameSecret(token, receiptToken),
      )
    }
    return {
      readsQuery,
      // Large, because vendors push many reports at once, and the token is checked before the body.
      maxBodyBytes: 1_048_576,
      mayBeGenuine: hasToken,
      parse: (request) =>
        hasToken(request)
          ? parseReports(request, readReport, options)
          : { ok: false, reason: 'forged' },
    }
  }
}

function parseReports(
  request: ReceiptRequest,
  readReport: ReadReport,
  { thanks, reportsIn = (pushed) => pushed }: ReportOptions,
): ParsedReceipts {
  const receipts = receiptsIn(reportsIn(pushedBy(request)), readReport)
  if (!receipts) return { ok: false, reason: 'malformed' }
  const isText = typeof thanks === 'string'
  const contentType = isText ? 'text/plain; charset=utf-8' : 'application/json'
  const body = isText ? thanks : JSON.stringify(thanks)
  return { ok: true, receipts, reply: { status: 200, contentType, body } }
}

/** The body. Without one, the fields of the query. */
function pushedBy({ rawBody, query, headers }: ReceiptRequest): unknown {
  return rawBody.length === 0 ? query : readBody(rawBody.toString(), headers['content-type'])
}

/** The receipts in one report or an array of them. Undefined if none of the reports can be read. */
export function receiptsIn(pushed: unknown, readReport: ReadReport): Receipt[] | undefined {
  const reports = (Array.isArray(pushed) ? pushed : [pushed]).map(readReport)
  if (reports.length > 0 && reports.every((report) => report === undefined)) return undefined
  return reports.filter((report) => report !== notFinal).map((report) => report ?? unreadable)
}
