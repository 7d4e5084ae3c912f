/**
 * Idempotency-Key: a repeated request makes no second message.
 *
 * The key is written first, with the id the notice will have. Whoever comes later with the same key
 * finds that id: if the row exists, the first answer is given again; if it does not, the first caller
 * is still at work, or died, and after a while the repeat takes over with the same id, which the
 * table's primary key lets exist only once. A refused request drops its key, so it may be tried again.
 */
import { createHash } from 'node:crypto'
import type { Database } from '../db/database.ts'

export type Reservation =
  | { kind: 'proceed'; noticeId: string }
  /** The first request was answered; `answer` is what it got. */
  | { kind: 'answered'; answer: unknown }
  | { kind: 'in_progress' }
  /** The key was used for a request with another body. */
  | { kind: 'reused' }

/** Longer than any request lives. */
const takeOverAfterMs = 30_000
export const keptForMs = 86_400_000

interface Row {
  requestHash: Buffer
  noticeId: string
  answer: unknown
  isNew: boolean
}

export type Idempotency = ReturnType<typeof createIdempotency>

export function createIdempotency(database: Database) {
  const sha256 = (text: string) => createHash('sha256').update(text).digest()

  return {
    /** `request` is the canonical text of what was asked; `noticeId` the id to reserve. */
    async reserve(
      app: string,
      key: string,
      request: string,
      noticeId: string,
    ): Promise<Reservation> {
      const requestHash = sha256(request)
      const rows = await database.query<Row>('idempotency-reserve', reserveSql, [
        app,
        sha256(key),
        requestHash,
        noticeId,
        takeOverAfterMs,
        keptForMs,
      ])
      // No row: somebody else's reservation was committed while this statement ran.
      const row = rows[0]
      if (!row) return { kind: 'in_progress' }
      if (row.isNew) return { kind: 'proceed', noticeId: row.noticeId }
      if (!row.requestHash.equals(requestHash)) return { kind: 'reused' }
      return row.answer === null
        ? { kind: 'in_progress' }
        : { kind: 'answered', answer: row.answer }
    },

    /** Keeps the answer for repeats. */
    async keep(app: string, key: string, answer: unknown): Promise<void> {
      await database.query('idempotency-keep', keepSql, [app, sha256(key), JSON.stringify(answer)])
    },

    /** Frees the key of a request that was refused. */
    async drop(app: string, key: string): Promise<void> {
      await database.query('idempotency-drop', dropSql, [app, sha256(key)])
    },

    /** Removes keys past their day. */
    async removeOld(): Promise<void> {
      await database.query('idempotency-remove', removeSql, [keptForMs])
    },
  }
}

// The insert wins when the key is new, a day old, or reserved by a request that must have died.
const reserveSql = `
  WITH mine AS (
    INSERT INTO idempotency_key AS old (app, key_hash, request_hash, notice_id, created_at)
    VALUES ($1, $2, $3, $4, now())
    ON CONFLICT (app, key_hash) DO UPDATE
    SET created_at = now(), answer = NULL, request_hash = excluded.request_hash,
        notice_id = CASE WHEN old.created_at < now() - $6 * interval '1 millisecond'
                         THEN excluded.notice_id ELSE old.notice_id END
    WHERE old.created_at < now() - $6 * interval '1 millisecond'
       OR (old.answer IS NULL AND old.request_hash = excluded.request_hash
           AND old.created_at < now() - $5 * interval '1 millisecond')
    RETURNING request_hash, notice_id
  )
  SELECT request_hash AS "requestHash", notice_id AS "noticeId", NULL AS answer, true AS "isNew" FROM mine
  UNION ALL
  SELECT request_hash, notice_id, answer, false FROM idempotency_key
  WHERE app = $1 AND key_hash = $2 AND NOT EXISTS (SELECT FROM mine)`

const keepSql = 'UPDATE idempotency_key SET answer = $3 WHERE app = $1 AND key_hash = $2'

const dropSql = 'DELETE FROM idempotency_key WHERE app = $1 AND key_hash = $2 AND answer IS NULL'

const removeSql = `DELETE FROM idempotency_key WHERE created_at < now() - $1 * interval '1 millisecond'`
