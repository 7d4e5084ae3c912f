/** What the two Chinese vendors have in common: their clock, and receipts guarded by a token. */
import type {
  ParsedReceipts,
  Receipt,
  ReceiptHead,
  ReceiptReader,
  ReceiptRequest,
} from '../base/receipt.ts'
import { isSameSecret } from '../crypto/same-secret.ts'
import { parseJson } from './json.ts'

const beijingOffsetMs = 8 * 3_600_000

/** Milliseconds of `2026-11-01 08:00:00` as their servers write it; undefined when it isn't that. */
export function parseBeijingTime(text: unknown): number | undefined {
  if (typeof text !== 'string' || !/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(text)) return undefined
  const atMs = Date.parse(`${text.replace(' ', 'T')}+08:00`)
  return Number.isNaN(atMs) ? undefined : atMs
}

/** `20261101`: the day in Beijing. */
export function beijingDay(atMs: number): string {
  return new Date(atMs + beijingOffsetMs).toISOString().slice(0, 10).replaceAll('-', '')
}

/**
 * Arrays of reports, each final. Neither vendor signs anything, so a secret token in the address is
 * what tells their reports from forged ones; `thanks` is the answer that keeps them from pushing again.
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
