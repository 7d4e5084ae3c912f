import { isForeignId } from '../../base/ids.ts'
import type { ReceiptReader } from '../../base/receipt.ts'
import { parseExact, textAt, valueAt } from '../places.ts'
import { defineReportReader, notFinal, type Reading } from '../receipt-readers.ts'
import type { HttpSettings } from './settings.ts'

type Places = NonNullable<HttpSettings['receipts']>

/** Without settings for receipts, all are refused. */
export function createReceiptReader({ receipts }: HttpSettings): ReceiptReader {
  const read = (report: unknown) => receipts && readReport(report, receipts)
  return defineReportReader(read, {
    readsQuery: true,
    readsBearer: true,
    thanks: receipts?.answer ?? {},
    reportsIn: (pushed) => listIn(pushed, receipts?.list),
  })({ receiptToken: receipts?.token })
}

/** The receipts of a call. Some vendors put the list into a field of a form, as text. */
function listIn(pushed: unknown, list: string | undefined): unknown {
  if (list === undefined) return [pushed]
  const value = valueAt(pushed, list)
  return typeof value === 'string' ? parseExact(value) : value
}

function readReport(report: unknown, places: Places): Reading | undefined {
  const messageId = textAt(report, places.id)
  const state = textAt(report, places.state)
  if (!isForeignId(messageId) || state === undefined) return undefined
  const outcome = (['delivered', 'failed'] as const).find((one) => places[one].includes(state))
  // A state that the settings do not name is a step on the way.
  return outcome ? { messageId, outcome, detail: `http ${state}` } : notFinal
}
