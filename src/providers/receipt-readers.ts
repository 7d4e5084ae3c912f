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
import { wordsBy } from './send-result.ts'

/** A report that a final report will follow. */
export const notFinal = 'notFinal'
export type Reading = Receipt | typeof notFinal
type Outcome = 'delivered' | 'failed' | typeof notFinal

/** Reads a vendor's words for the state of a message. */
export function outcomesBy(words: Readonly<Record<Outcome, string>>) {
  const outcomes = wordsBy(words)
  return (word: unknown) => outcomes.get(word)
}

/** A report with this outcome. One with an unknown word is counted: vendors do not correct it, so they get no error. */
export const readingOf = (
  outcome: Outcome | undefined,
  members: Omit<Receipt, 'outcome'>,
): Reading =>
  outcome === undefined ? unreadable : outcome === notFinal ? notFinal : { ...members, outcome }

export const forged = { ok: false, reason: 'forged' } as const
export const malformed = { ok: false, reason: 'malformed' } as const

type Understood = Extract<ParsedReceipts, { ok: true }>

/** By default, the reply is a 200 without a body. */
export const understood = (
  readings: readonly Reading[],
  reply: Partial<Understood['reply']> = {},
): Understood => ({
  ok: true,
  receipts: readings.filter((reading) => reading !== notFinal),
  reply: { status: 200, contentType: 'text/plain', body: '', ...reply },
})

/** Limit for strangers (I21), for vendors whose signature can only be checked with the body. */
export const maxUnprovenBytes = 49_152

/**
 * Receipts of vendors that do not sign. A secret token in the address proves that a report is genuine. The vendors push
 * one report or several in an array. `readReport` returns undefined for a value that is not a report.
 */
type ReadReport = (report: unknown) => Reading | undefined

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
      parse: (request) => (hasToken(request) ? parseReports(request, readReport, options) : forged),
    }
  }
}

function parseReports(
  request: ReceiptRequest,
  readReport: ReadReport,
  { thanks, reportsIn = (pushed) => pushed }: ReportOptions,
): ParsedReceipts {
  const readings = readingsIn(reportsIn(pushedBy(request)), readReport)
  if (!readings) return malformed
  return typeof thanks === 'string'
    ? understood(readings, { contentType: 'text/plain; charset=utf-8', body: thanks })
    : understood(readings, { contentType: 'application/json', body: JSON.stringify(thanks) })
}

/** The body. Without one, the fields of the query. */
function pushedBy({ rawBody, query, headers }: ReceiptRequest): unknown {
  return rawBody.length === 0 ? query : readBody(rawBody.toString(), headers['content-type'])
}

/** One report or an array of them. Undefined if none of the reports can be read. */
export function readingsIn(pushed: unknown, readReport: ReadReport): Reading[] | undefined {
  const reports = (Array.isArray(pushed) ? pushed : [pushed]).map(readReport)
  if (reports.length > 0 && reports.every((report) => report === undefined)) return undefined
  return reports.map((report) => report ?? unreadable)
}
