/**
 * Conversions: whether people type the codes that a provider has accepted. A provider that accepts messages and delivers none
 * looks healthy in every other count.
 *
 * Each accepted code counts once. It is `passed` when its digits were typed in time, and `unanswered` when its time has ended
 * without that. A code counts as neither if it, or its verification, was canceled or has no tries left. No code is both: by
 * PostgreSQL's clock, a code counts as passed until a moment after its end, and as unanswered from a later moment on.
 */
import type { Channel } from '../base/channel.ts'
import { idFloor } from '../base/ids.ts'
import type { Database } from '../storage/database.ts'

export interface Conversion {
  provider: string
  channel: Channel
  outcome: 'passed' | 'unanswered'
}
export type OnConverted = (conversion: Conversion, count: number) => void

/** A condition of SQL: the code of the row `n` has just passed, and counts. */
export const isConvertedSql = (n: string) =>
  `(${n}.code_end = 'passed' AND ${n}.sent_at IS NOT NULL AND now() < ${n}.expires_at + interval '2 seconds')`

/** A condition of SQL: the code of a notice was not typed, and neither it nor its verification was canceled or out of tries. */
export const isUntypedSql = `(code_end IS NULL AND
  coalesce((SELECT v.ended FROM verification v WHERE v.id = verification_id), '') NOT IN ('canceled', 'tries'))`

/** Longer after the end than the condition above by more than a statement takes. */
const endsAfter = `interval '5 seconds'`
const perBlock = 1_000
const blocksPerPass = 20

export function createConversions(database: Database, onConverted: OnConverted) {
  /**
   * Counts the codes whose time has ended since the last pass. Any number of workers can do this at once. The ids up to
   * which codes are counted move in the same statement. If a process dies after it, its counts are lost.
   */
  return async function countUnanswered(): Promise<void> {
    for (let blocks = 0; blocks < blocksPerPass; blocks++) {
      const [from] = await database.query<{ reached: string }>('conversions-from', fromSql, [
        idFloor(database.nowMs()),
      ])
      const rows = await database.query<Omit<Conversion, 'outcome'> & { n: number; done: number }>(
        'conversions-count',
        countSql,
        [from?.reached, idFloor(database.nowMs()), perBlock],
      )
      for (const { provider, channel, n } of rows) {
        if (n > 0) onConverted({ provider, channel, outcome: 'unanswered' }, n)
      }
      if ((rows[0]?.done ?? 0) < perBlock) return
    }
  }
}

/** The first pass begins with the codes of now. */
const fromSql = `
  WITH first AS (
    INSERT INTO retention (task, reached) VALUES ('conversions', $1::uuid) ON CONFLICT (task) DO NOTHING RETURNING reached
  )
  SELECT reached FROM first UNION ALL SELECT reached FROM retention WHERE task = 'conversions' LIMIT 1`

const countSql = `
  WITH block AS MATERIALIZED (
    SELECT id, channel, provider, kind = 'captcha' AND expires_at + ${endsAfter} > now() AS is_open,
           kind = 'captcha' AND sent_at IS NOT NULL AND ${isUntypedSql} AS is_unanswered
    FROM notice WHERE id > $1::uuid AND id < $2::uuid ORDER BY id LIMIT $3
  ), done AS (
    SELECT * FROM block
    WHERE id < coalesce((SELECT id FROM block WHERE is_open ORDER BY id LIMIT 1), 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  ), moved AS (
    UPDATE retention SET reached = (SELECT id FROM done ORDER BY id DESC LIMIT 1)
    WHERE task = 'conversions' AND reached = $1::uuid AND EXISTS (SELECT FROM done)
    RETURNING reached
  )
  SELECT coalesce(provider, '') AS provider, channel, (count(*) FILTER (WHERE is_unanswered AND provider IS NOT NULL))::int AS n,
         (SELECT count(*)::int FROM done) AS done
  FROM done, moved GROUP BY 1, 2`
