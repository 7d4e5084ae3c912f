/** The statements of receipts. Their rows are `Row` of receipts.ts, as `unnest` reads them. */
import { byChannelSql } from '../recipient/channels.ts'
import { insertEvents, type WantedEvents } from './outbox.ts'
import { isNewsSql, suppressSql } from './suppressions.ts'
import { makeNextWayDue } from './verifications.ts'

const receiptRows = `unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bool[])
    WITH ORDINALITY AS r (provider, message_id, notice_id, outcome, detail, other_message_id, recipients, reference,
                          is_refunded, n)`

/** Numbers are international, or national with zeros before them, so the ends are compared. */
const isRecipient = `(r.recipients IS NULL OR notice.recipient IS NULL OR EXISTS (
        SELECT FROM unnest(string_to_array(r.recipients, ',')) AS number
        WHERE notice.recipient LIKE '%' || right(ltrim(number, '0'), 8)))`

/** A provider may name the recipient in its reason, which events and logs would show. Numbers are written in many ways. */
const namesRecipient = byChannelSql('notice.channel', (kind) =>
  kind.isNamedInSql('first.detail', 'notice.recipient'),
)

/** The facts of the message that a suppression needs. */
const reportedOf = 'app, recipient_hash, coalesce(sent_at, created_at) AS sent_at'

/**
 * One row per receipt whose notice was found, in `sent` or a later state. A receipt with another message id changes
 * nothing: it is for another call, or for another part of a long text.
 */
const applyMove = `
  WITH found AS (
    SELECT r.n, r.outcome, r.detail, r.provider, notice.*
    FROM ${receiptRows}
    CROSS JOIN LATERAL (
      SELECT id, state, coalesce(provider_message_id = r.message_id, true) AS fits, true AS is_recipient, ${reportedOf}
      FROM notice
      WHERE id = r.notice_id AND provider = r.provider
      UNION ALL
      SELECT id, state, true, ${isRecipient}, ${reportedOf} FROM notice
      WHERE r.notice_id IS NULL AND provider = r.provider
        AND provider_message_id = ANY (ARRAY[r.message_id, r.other_message_id])
      ORDER BY is_recipient DESC, id DESC LIMIT 1
    ) AS notice
  ), first AS (
    SELECT DISTINCT ON (id) * FROM found
    WHERE state = 'sent' AND fits AND is_recipient AND outcome IN ('delivered', 'failed', 'bounced') ORDER BY id, n
  ), moved AS (
    UPDATE notice
    SET state = CASE first.outcome WHEN 'bounced' THEN 'failed' ELSE first.outcome END, finished_at = now(),
        error = CASE first.outcome
                  WHEN 'bounced' THEN 'bounced'
                  WHEN 'failed' THEN 'not_delivered' || CASE WHEN ${namesRecipient} THEN ''
                                                             ELSE coalesce(' (' || first.detail || ')', '') END END
    FROM first WHERE notice.id = first.id AND notice.state = 'sent'
    RETURNING first.n, notice.*
  )`

const suppress = `, news AS (
    SELECT DISTINCT ON (app, recipient_hash, reason, provider) * FROM (
      SELECT n, app, recipient_hash, outcome AS reason, provider, sent_at FROM found
      WHERE is_recipient AND outcome IN ('bounced', 'complained', 'opted_out')) AS r
    WHERE ${isNewsSql}
    ORDER BY app, recipient_hash, reason, provider, n
  ), suppressed AS (${suppressSql('news')})`

const applied = `
  SELECT found.n, found.is_recipient AS "isRecipient", moved.n IS NOT NULL AS "isMoved", news.n IS NOT NULL AS "isNews"
  FROM found LEFT JOIN moved ON moved.n = found.n LEFT JOIN news ON news.n = found.n`

/** Applies receipts, and writes the events of the wanted types. */
export const applySqlFor = (wantedEvents: WantedEvents) =>
  `${applyMove}${makeNextWayDue}${insertEvents(wantedEvents)}${suppress}${applied}`

/** A worker of an earlier build reads `outcome` alone, and knows only these two. */
const keptOutcome = `CASE WHEN r.outcome IN ('failed', 'bounced') THEN 'failed' ELSE 'delivered' END`

export const keepSql = `
  INSERT INTO early_receipt (provider, reference, message_id, notice_id, outcome, detail, other_message_id,
                             recipients, is_refunded, look_at, suppresses)
  SELECT r.provider, r.reference, r.message_id, r.notice_id, ${keptOutcome}, r.detail, r.other_message_id,
         r.recipients, r.is_refunded, now() + interval '1 second', CASE WHEN r.outcome NOT IN ('delivered', 'failed') THEN r.outcome END
  FROM ${receiptRows}
  ON CONFLICT DO NOTHING`

const rowColumns = `provider, message_id AS "messageId", notice_id AS "noticeId",
  coalesce(suppresses, outcome) AS outcome, detail,
  other_message_id AS "otherMessageId", recipients, is_refunded AS "isRefunded"`

export const findSql = `SELECT ${rowColumns} FROM early_receipt WHERE notice_id = $1 LIMIT 1`

/** The pause grows with the age of the receipt. The last try is at the end of its hour. */
export const againSql = `
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

export const forgetSql = `
  DELETE FROM early_receipt WHERE (provider, reference) IN (SELECT * FROM unnest($1::text[], $2::text[]))`
