/**
 * Receipts: later reports of a provider about a message that it accepted. They arrive twice, late, in any order, or before
 * Postern has written `sent`. The state of the notice is the same in every case:
 *
 * - A receipt moves its notice from `sent` to `delivered` or `failed`, once.
 * - A bounce, a complaint or an opt-out also begins a suppression of the recipient, in any state of the notice
 *   (suppressions.ts). Of these, only a bounce moves the notice.
 * - A receipt whose notice is not `sent` yet is stored and tried again. The provider receives 2xx, so an early receipt is
 *   not lost.
 * - A receipt without a matching notice is dropped after an hour, and counted.
 *
 * A receipt counts only for a message of the same provider. If two providers had the notice, a receipt of the other
 * provider changes nothing. Nor does a receipt for another number: some carriers use a message id twice.
 */
import { createBatcher } from '../base/batcher.ts'
import { isForeignId, isId } from '../base/ids.ts'
import type { Receipt } from '../base/receipt.ts'
import { type SuppressionReason, suppressionReasons } from '../base/suppression.ts'
import type { Database } from '../storage/database.ts'
import { columns } from './columns.ts'
import type { NoticeMetrics } from './metrics.ts'
import type { WantedEvents } from './outbox.ts'
import { againSql, applySqlFor, findSql, forgetSql, keepSql } from './receipt-sql.ts'

interface Row {
  provider: string
  messageId: string | null
  noticeId: string | null
  outcome: Receipt['outcome']
  detail: string | null
  otherMessageId: string | null
  /** Joined by commas. */
  recipients: string | null
  isRefunded: boolean
}

/**
 * The new state of the notice. `unmatched`: this provider has not (yet) sent a notice with this id. `other_recipient`: it
 * has, but to another number.
 */
type Fate = Receipt['outcome'] | 'repeated' | 'unmatched' | 'other_recipient'

/** The results that operators can correct. */
export type UnusedReceipt = 'malformed' | 'unmatched' | 'other_recipient'

const keptTtlMs = 3_600_000
const perSweep = 500
/** A bound, because a sweep must end when the process stops. */
const sweepsPerPass = 20

export function createReceipts(
  database: Database,
  metrics: NoticeMetrics,
  /** The types of events that are written. */
  wantedEvents: WantedEvents = [],
  onUnused: (provider: string, result: UnusedReceipt) => void = () => {},
) {
  const applySql = applySqlFor(wantedEvents)
  const apply = createBatcher<Row, Fate>({
    maxItems: 200,
    maxConcurrent: 2,
    async run(rows) {
      const fates = await database.query<Applied>('receipt-apply', applySql, columnsOf(rows))
      for (const { n, isNews } of fates) if (isNews) began(rows[Number(n) - 1])
      const byRow = new Map(fates.map((fate) => [Number(fate.n), fate]))
      return rows.map(({ outcome }, index) => {
        const fate = byRow.get(index + 1)
        if (!fate) return 'unmatched'
        if (!fate.isRecipient) return 'other_recipient'
        return fate.isMoved || fate.isNews ? outcome : 'repeated'
      })
    },
  })

  const keep = createBatcher<Row, void>({
    maxItems: 200,
    maxConcurrent: 2,
    async run(rows) {
      await database.query('receipt-keep', keepSql, columnsOf(rows))
    },
  })

  return {
    /** Resolves when the database has all receipts. Throws Unavailable; then the provider must send them again. */
    async take(provider: string, receipts: readonly Receipt[]): Promise<void> {
      await Promise.all(
        receipts.map(async (receipt) => {
          const row = rowOf(provider, receipt)
          const fate = row === undefined ? 'malformed' : await apply(row)
          // The notice with this id and number may be sent at this moment.
          if (row && isUnused(fate)) await keep(row)
          count(row ?? { provider }, fate === 'unmatched' ? 'early' : fate)
        }),
      )
    },

    /** The provider that sent a notice, found by an early receipt. */
    async find(
      noticeId: string,
    ): Promise<{ provider: string; messageId: string | null } | undefined> {
      const [row] = await database.query<Row>('receipt-find', findSql, [noticeId])
      return row
    },

    /** Tries all stored receipts again that are due. Any number of workers can do this at once. */
    async sweep(): Promise<void> {
      for (let sweeps = 0; sweeps < sweepsPerPass; sweeps++)
        if ((await sweepSome()) < perSweep) return
    },
  }

  function began({ provider, outcome: reason }: Partial<Row> = {}): void {
    if (provider !== undefined && isReason(reason)) metrics.suppressions.inc({ provider, reason })
  }

  function count(
    { provider, outcome, isRefunded }: Pick<Row, 'provider'> & Partial<Row>,
    result: Fate | 'malformed' | 'early',
  ): void {
    metrics.receipts.inc({ provider, result })
    if (isUnused(result)) onUnused(provider, result)
    if (isRefunded && result === outcome) metrics.refunds.inc({ provider })
  }

  /** Returns the number of receipts that were tried. */
  async function sweepSome(): Promise<number> {
    const rows = await database.query<Row & { isOver: boolean }>('receipt-again', againSql, [
      perSweep,
      keptTtlMs,
    ])
    // Applied in the order of arrival, because the first receipt counts.
    const fates = await Promise.all(rows.map((row) => apply(row)))
    const gone = rows.filter(({ isOver }, index) => isOver || !isUnused(fates[index]))
    if (gone.length > 0) {
      await database.query('receipt-forget', forgetSql, columns(gone, ['provider', referenceOf]))
    }
    rows.forEach((row, index) => {
      const fate = fates[index] as Fate
      // A receipt for another number was counted when it arrived.
      if (fate === 'unmatched' ? row.isOver : fate !== 'other_recipient') count(row, fate)
    })
    return rows.length
  }
}

const isUnused = (fate: Fate | 'malformed' | 'early' | undefined): fate is UnusedReceipt =>
  fate === 'unmatched' || fate === 'other_recipient' || fate === 'malformed'

interface Applied {
  n: number
  isRecipient: boolean
  /** The notice has a new state. */
  isMoved: boolean
  /** A suppression began. */
  isNews: boolean
}

const isReason = (outcome: unknown): outcome is SuppressionReason =>
  suppressionReasons.some((reason) => reason === outcome)

/** Undefined if the receipt has no id by which a notice could be found. */
function rowOf(provider: string, receipt: Receipt): Row | undefined {
  const { messageId, otherMessageId, noticeId, outcome, detail, recipients } = receipt
  const row = {
    provider,
    messageId: isForeignId(messageId) ? messageId : null,
    noticeId: noticeId && isId(noticeId) ? noticeId : null,
    outcome,
    detail: detail?.replaceAll(/[^\x20-\x7e]/g, '').slice(0, 100) || null,
    otherMessageId: isForeignId(otherMessageId) ? otherMessageId : null,
    recipients: recipients?.join(',') || null,
    isRefunded: receipt.isRefunded === true,
  }
  return row.messageId === null && row.noticeId === null ? undefined : row
}

/** A bounce, a complaint or an opt-out may follow a receipt about the delivery of the same message. */
const referenceOf = ({ messageId, noticeId, recipients, outcome }: Row) =>
  [messageId ?? noticeId, recipients, isReason(outcome) && outcome].filter(Boolean).join(' ')

const columnsOf = (rows: readonly Row[]) =>
  columns(rows, [
    ...(['provider', 'messageId', 'noticeId', 'outcome', 'detail'] as const),
    ...(['otherMessageId', 'recipients'] as const),
    referenceOf,
    'isRefunded',
  ])
