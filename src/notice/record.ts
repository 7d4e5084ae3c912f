/** Writes the outcome of a notice: one move with its events, and only by the last worker that claimed it. */
import { createBatcher } from '../base/batcher.ts'
import type { Database } from '../storage/database.ts'
import { writeSpacing } from './claim.ts'
import { amongIds, columns, oneAtATime, rangeOf } from './columns.ts'
import { type Conversion, isConvertedSql, type OnConverted } from './conversions.ts'
import { insertEvents, type WantedEvents } from './outbox.ts'
import type { Attempt } from './states.ts'
import { type Suppression, suppressSql } from './suppressions.ts'
import { makeNextWayDue } from './verifications.ts'

/** The result that a worker writes. `pending` needs `retryInMs`. */
export interface NoticeOutcome {
  id: string
  /** The number of claims: from the claim, or from the read if there was no claim. */
  claims: number
  state: 'pending' | 'sent' | 'failed' | 'expired'
  /** All attempts, including attempts of earlier claims. */
  attempts: readonly Attempt[]
  retryInMs?: number
  provider?: string | undefined
  providerMessageId?: string | null | undefined
  error?: string
  /** The latest call showed that the recipient must get no more messages, at least from this provider. */
  suppresses?: Pick<Suppression, 'reason' | 'provider'> | undefined
  /** An earlier statement for this outcome gave no answer, and may have been committed. */
  isRepeat?: boolean
}

type Recorded = Omit<Conversion, 'outcome'> & { id: string; isConverted: boolean }

/**
 * Writes the outcome of a notice after a claim or a read. False if another worker has claimed the notice since; then
 * nothing was written. A repeat of the same call changes nothing, and returns true if the first call wrote the outcome.
 */
export function createRecord(
  database: Database,
  wantedEvents?: WantedEvents,
  onConverted: OnConverted = () => {},
) {
  const recordSql = `
  WITH moved AS (${recordMove})${makeNextWayDue}${insertEvents(wantedEvents)}, suppressed AS (${suppressSql(newlySuppressed)})
  SELECT id, channel, provider, state = 'sent' AND ${isConvertedSql('moved')} AS "isConverted" FROM moved`
  return createBatcher<NoticeOutcome, boolean>({
    ...oneAtATime,
    ...writeSpacing,
    async run(outcomes) {
      const rows = await database.query<Recorded>('notice-record', recordSql, [
        ...columns(outcomes, [
          ...(['id', 'claims', 'state'] as const),
          ({ attempts }) => JSON.stringify(attempts),
          ...(['retryInMs', 'provider', 'providerMessageId', 'error'] as const),
          ({ suppresses }) => suppresses?.reason ?? null,
          ({ suppresses }) => suppresses?.provider ?? null,
        ]),
        ...rangeOf(outcomes),
      ])
      const written = new Set(rows.map((row) => row.id))
      // The person was quicker than this statement.
      for (const { isConverted, channel, provider } of rows) {
        if (isConverted) onConverted({ channel, provider, outcome: 'passed' }, 1)
      }
      const repeats = outcomes.filter(({ id, isRepeat }) => isRepeat && !written.has(id))
      if (repeats.length > 0) {
        const values = columns(repeats, [
          ...(['id', 'claims', 'state'] as const),
          ({ attempts }) => JSON.stringify(attempts),
        ])
        const earlier = await database.query<{ id: string }>('notice-recorded', recordedSql, values)
        for (const { id } of earlier) written.add(id)
      }
      return outcomes.map((outcome) => written.delete(outcome.id))
    },
  })
}

/**
 * Outcomes that an earlier statement wrote. The attempts tell them from the outcome of another worker, and receipts do not
 * change the attempts: a notice that was `sent` may be `delivered` or `failed` by now.
 */
const recordedSql = `
  SELECT n.id FROM notice n, unnest($1::uuid[], $2::int[], $3::text[], $4::jsonb[]) AS new (id, claims, state, attempts)
  WHERE n.id = new.id AND n.claims = new.claims AND n.attempts = new.attempts
    AND (n.state = new.state OR new.state = 'sent' AND n.sent_at IS NOT NULL)`

/**
 * Only the number of claims is compared. If no other worker has claimed the notice, the last worker's result is true.
 * That holds even if the result comes late and the notice was given up as lost. Attempts are written as a whole, so a
 * statement without an answer may be repeated.
 */
const recordMove = `
  UPDATE notice n
  SET state = new.state,
      attempts = new.attempts,
      due_at = CASE WHEN new.state = 'pending' THEN now() + new.retry_in_ms * interval '1 millisecond' END,
      sealed_params = CASE WHEN new.state = 'pending' THEN n.sealed_params END,
      provider = coalesce(new.provider, n.provider),
      provider_message_id = coalesce(new.provider_message_id, n.provider_message_id),
      claim = NULL,
      error = new.error,
      sent_at = CASE WHEN new.state = 'sent' THEN now() END,
      finished_at = CASE WHEN new.state <> 'pending' THEN now() END
  FROM unnest($1::uuid[], $2::int[], $3::text[], $4::jsonb[], $5::float8[], $6::text[], $7::text[], $8::text[],
              $9::text[], $10::text[])
    AS new (id, claims, state, attempts, retry_in_ms, provider, provider_message_id, error, reason, suppressed_by)
  WHERE n.id = new.id AND n.state IN ('pending', 'sending') AND n.claims = new.claims
    AND ${amongIds(11)}
  RETURNING n.*, new.reason, new.suppressed_by`

const newlySuppressed = `(
    SELECT DISTINCT app, recipient_hash, reason, suppressed_by AS provider FROM moved WHERE reason IS NOT NULL) AS news`
