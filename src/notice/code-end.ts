/**
 * Records how the code of a notice ended. Codes are in Redis, which forgets them at their end. The row keeps the fact, for
 * look-ups and for counts of codes that passed.
 */
import { createBatcher } from '../base/batcher.ts'
import type { Database } from '../storage/database.ts'
import { byIndex, columns, oneAtATime } from './columns.ts'
import { type Conversion, isConvertedSql, type OnConverted } from './conversions.ts'

/** `tries`: no tries are left. A code that expired or was replaced has none of these ends. */
export const codeEnds = ['passed', 'tries', 'canceled'] as const
export type CodeEnd = (typeof codeEnds)[number]

export interface NoticeCodeEnd {
  id: string
  end: CodeEnd
  /** The hashes of the address, by each secret in use. Its bounce may be under another one than the notice. */
  hashes?: readonly Buffer[]
}

/** The first end is kept. Only `passed` replaces an earlier end. */
export function createEndCode(database: Database, onConverted: OnConverted = () => {}) {
  return createBatcher<NoticeCodeEnd, void>({
    ...oneAtATime,
    async run(ends) {
      const rows = await database.query<Omit<Conversion, 'outcome'>>(
        'notice-code-end',
        endSql,
        columns(ends, ['id', 'end', ({ hashes }) => hashes?.[0], ({ hashes }) => hashes?.[1]]),
      )
      for (const row of rows) onConverted({ ...row, outcome: 'passed' }, 1)
    },
  })
}

/** A right code proves that its address gets mail. */
const endSql = `
  WITH ended AS (
    SELECT DISTINCT ON (id) id, code_end, hash, other_hash
    FROM unnest($1::uuid[], $2::text[], $3::bytea[], $4::bytea[]) WITH ORDINALITY AS given (id, code_end, hash, other_hash, n)
    ORDER BY id, code_end <> 'passed', n
  ), earlier AS (
    SELECT n.id, n.code_end FROM notice n WHERE ${byIndex}
  ), written AS (
    UPDATE notice n SET code_end = ended.code_end
    FROM ended JOIN earlier ON earlier.id = ended.id
    WHERE n.id = ended.id AND ${byIndex} AND (n.code_end IS NULL OR ended.code_end = 'passed')
    RETURNING n.*, earlier.code_end AS earlier_end, ARRAY[n.recipient_hash, ended.hash, ended.other_hash] AS hashes
  ), lifted AS (
    UPDATE suppression s SET ended_at = now()
    FROM written n
    WHERE n.code_end = 'passed' AND s.recipient_hash = ANY (n.hashes) AND s.app = n.app
      AND s.reason = 'bounced' AND s.ended_at IS NULL
  )
  SELECT provider, channel FROM written
  WHERE ${isConvertedSql('written')} AND earlier_end IS DISTINCT FROM 'passed'`
