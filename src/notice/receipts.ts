/**
 * Receipts: later reports of a provider about a message that it accepted. They arrive twice, late, in any order, or before
 * Postern has written `sent`. The state of the notice is the same in every case:
 *
 * - A receipt moves its notice from `sent` to `delivered` or `failed`, once. It does nothing else.
 * - A receipt whose notice is not `sent` yet is stored and tried again. The provider receives 2xx, so an early receipt is
 *   not lost.
 * - A receipt without a matching notice is dropped after an hour, and counted.
 *
 * A receipt counts only for a message of the same provider. If two providers had the notice, a receipt of the other
 * provider changes nothing. Nor does a receipt for another number: some carriers use a message id twice.
 */
import { createBatcher } from '../base/batcher.ts'
import { isForeignId, isId } from '../base/ids.ts'
import type { Metrics } from '../base/metrics.ts'
import type { Receipt } from '../base/receipt.ts'
import { byChannelSql } from '../recipient/channels.ts'
import type { Database } from '../storage/database.ts'
import { columns } from './columns.ts'
import { insertEvents, type WantedEvents } from './outbox.ts'

interface Row {
  provider: string
  messageId: string | null
  noticeId: string | null
  outcome: Receipt['outcome']
  detail: string | null
  otherMessageId: string | null
  /** Joined by commas. */
  recipients: string | null
}

/**
 * The new state of the notice. `unmatched`: this provider has not (yet) sent a notice with this id. `other_recipient`: it
 * has, but to another number.
 */
type Fate = Receipt['outcome'] | 'repeated' | 'unmatched' | 'other_recipient'

/** The results that operators can correct. */
export type UnusedReceipt = 'malformed' | 'unmatched' | 'other_recipient'

const keptForMs = 3_600_000
const perSweep = 500
/** A bound, because a sweep must end when the process stops. */
const sweepsPerPass = 20

export function createReceipts(
  database: Database,
  metrics: Metrics,
  /** The types of events that are written. */
  wantedEvents: WantedEvents = [],
  onUnused: (provider: string, result: UnusedReceipt) => void = () => {},
) {
  const applySql = `${applyMove}${insertEvents(wantedEvents)}${applied}`
  const apply = createBatcher<Row, Fate>({
    maxItems: 200,
    maxConcurrent: 2,
    async run(rows) {
      const fates = await database.query<{ n: number; isMoved: boolean; isRecipient: boolean }>(
        'receipt-apply',
        applySql,
        columnsOf(rows),
      )
      const byRow = new Map(fates.map((fate) => [Number(fate.n), fate]))
      return rows.map(({ outcome }, index) => {
        const fate = byRow.get(index + 1)
        if (!fate) return 'unmatched'
        if (!fate.isRecipient) return 'other_recipient'
        return fate.isMoved ? outcome : 'repeated'
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
          count(provider, fate === 'unmatched' ? 'early' : fate)
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

  function count(provider: string, result: Fate | 'malformed' | 'early'): void {
    metrics.receipts.inc({ provider, result })
    if (isUnused(result)) onUnused(provider, result)
  }

  /** Returns the number of receipts that were tried. */
  async function sweepSome(): Promise<number> {
    const rows = await database.query<Row & { isOver: boolean }>('receipt-again', againSql, [
      perSweep,
      keptForMs,
    ])
    // Applied in the order of arrival, because the first receipt counts.
    const fates = await Promise.all(rows.map((row) => apply(row)))
    const gone = rows.filter(({ isOver }, index) => isOver || !isUnused(fates[index]))
    if (gone.length > 0) {
      await database.query('receipt-forget', forgetSql, columns(gone, ['provider', referenceOf]))
    }
    rows.forEach(({ provider, isOver }, index) => {
      const fate = fates[index] as Fate
      // A receipt for another number was counted when it arrived.
      if (fate === 'unmatched' ? isOver : fate !== 'other_recipient') count(provider, fate)
    })
    return rows.length
  }
}

const isUnused = (fate: Fate | 'malformed' | 'early' | undefined): fate is UnusedReceipt =>
  fate === 'unmatched' || fate === 'other_recipient' || fate === 'malformed'

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
  }
  return row.messageId === null && row.noticeId === null ? undefined : row
}

const referenceOf = ({ messageId, noticeId, recipients }: Row) =>
  [messageId ?? noticeId, recipients].filter(Boolean).join(' ')

const columnsOf = (rows: readonly Row[]) =>
  columns(rows, [
    ...(['provider', 'messageId', 'noticeId', 'outcome', 'detail'] as const),
    ...(['otherMessageId', 'recipients'] as const),
    referenceOf,
  ])

const receiptRows = `unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
    WITH ORDINALITY AS r (provider, message_id, notice_id, outcome, detail, other_message_id, recipients, reference, n)`

/** Numbers are international, or national with zeros before them, so the ends are compared. */
const isRecipient = `(r.recipients IS NULL OR notice.recipient IS NULL OR EXISTS (
        SELECT FROM unnest(string_to_array(r.recipients, ',')) AS number
        WHERE notice.recipient LIKE '%' || right(ltrim(number, '0'), 8)))`

/** A provider may name the recipient in its reason, which events and logs would show. Numbers are written in many ways. */
const namesRecipient = byChannelSql('notice.channel', (kind) =>
  kind.isNamedInSql('first.detail', 'notice.recipient'),
)

/**
 * One row per receipt whose notice was found, in `sent` or a later state. A receipt with another message id changes
 * nothing: it is for another call, or for another part of a long text.
 */
const applyMove = `
  WITH found AS (
    SELECT r.n, r.outcome, r.detail, notice.id, notice.state, notice.fits, notice.is_recipient
    FROM ${receiptRows}
    CROSS JOIN LATERAL (
      SELECT id, state, coalesce(provider_message_id = r.message_id, true) AS fits, true AS is_recipient
      FROM notice
      WHERE id = r.notice_id AND provider = r.provider
      UNION ALL
      SELECT id, state, true, ${isRecipient} FROM notice
      WHERE r.notice_id IS NULL AND provider = r.provider
        AND provider_message_id = ANY (ARRAY[r.message_id, r.other_message_id])
      ORDER BY is_recipient DESC, id DESC LIMIT 1
    ) AS notice
  ), first AS (
    SELECT DISTINCT ON (id) * FROM found WHERE state = 'sent' AND fits AND is_recipient ORDER BY id, n
  ), moved AS (
    UPDATE notice
    SET state = first.outcome, finished_at = now(),
        error = CASE WHEN first.outcome = 'failed'
                     THEN 'not_delivered' || CASE WHEN ${namesRecipient} THEN ''
                                                  ELSE coalesce(' (' || first.detail || ')', '') END END
    FROM first WHERE notice.id = first.id AND notice.state = 'sent'
    RETURNING first.n, notice.*
  )`

const applied = `
  SELECT found.n, found.is_recipient AS "isRecipient", moved.n IS NOT NULL AS "isMoved" FROM found LEFT JOIN moved ON moved.n = found.n`

const keepSql = `
  INSERT INTO early_receipt (provider, reference, message_id, notice_id, outcome, detail, other_message_id,
                             recipients, look_at)
  SELECT r.provider, r.reference, r.message_id, r.notice_id, r.outcome, r.detail, r.other_message_id,
         r.recipients, now() + interval '1 second'
  FROM ${receiptRows}
  ON CONFLICT DO NOTHING`

const rowColumns = `provider, message_id AS "messageId", notice_id AS "noticeId", outcome, detail,
  other_message_id AS "otherMessageId", recipients`

const findSql = `SELECT ${rowColumns} FROM early_receipt WHERE notice_id = $1 LIMIT 1`

/** The pause grows with the age of the receipt. The last try is at the end of its hour. */
const againSql = `
  WITH again AS (
    UPDATE early_receipt
    SET look_at = now() + greatest(interval '1 second', least(
          now() - received_at, received_at + $2 * interval '1 millisecond' - now()))
    WHERE (provider, reference) IN (
      SELECT provider, reference FROM early_receipt WHERE look_at <= now()
      ORDER BY look_at LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING *
  )
  SELECT ${rowColumns}, received_at <= now() - $2 * interval '1 millisecond' AS "isOver"
  FROM again ORDER BY received_at`

const forgetSql = `
  DELETE FROM early_receipt WHERE (provider, reference) IN (SELECT * FROM unnest($1::text[], $2::text[]))`
