/**
 * The rows of Idempotency-Keys. once-per-key.ts decides the answers to callers.
 *
 * The key is written first, with the id of the coming notice, and the answer is stored later. A repeat in between is
 * `in_progress`. A request that found a server away frees its key, unless its notice exists and is open: the outcome
 * is then not known yet.
 *
 * If a request never answered (its process died, or its answer was not stored), a repeat takes the key over after a
 * while. It gets the id of the first request's notice. If that notice was sent or will be sent, it is the answer. If
 * not, the repeat continues with a new id, so that no late undo of the first request can reach it. A repeat after an
 * answer also continues with a new id if the notice ended unsent meanwhile, or its time ended while it waited (I26).
 */
import { createHash } from 'node:crypto'
import { createBatcher } from '../base/batcher.ts'
import { type IdempotencyKey, type NoticeId, newId } from '../base/ids.ts'
import { Overloaded } from '../base/unavailable.ts'
import { createUntilAnswered } from '../base/until-answered.ts'
import type { Database } from '../storage/database.ts'
import { surelyUnsent } from './unanswered.ts'
import { latestWay } from './verifications.ts'

export type ReserveResult =
  | { kind: 'proceed' }
  /** An earlier request with this notice id never answered. */
  | { kind: 'taken_over'; earlierId: NoticeId }
  /** `answer` is the answer to the first request. */
  | { kind: 'answered'; answer: unknown }
  | { kind: 'in_progress' }
  /** The key was used for a request with another body. */
  | { kind: 'reused' }

/** Longer than any request takes. */
const takeOverTimeoutMs = 30_000
const keptTtlMs = 86_400_000
const perRemoval = 1_000
/** Storing an answer is tried this long. After `takeOverTimeoutMs` a repeat takes over. */
const keepTryingTimeoutMs = 20_000
const maxUnanswered = 10_000
const keysPerLook = 100
const looksSpacingMs = 10
/** The most keys that wait for a look-up. Twenty statements look up this number. */
const maxLooking = 2_000

interface Row {
  requestHash: Buffer
  noticeId: NoticeId
  answer: unknown
  isNew: boolean
}

export type Idempotency = ReturnType<typeof createIdempotency>

export function createIdempotency(database: Database) {
  const sha256 = (text: string) => createHash('sha256').update(text).digest()
  const unanswered = createUntilAnswered({
    maxAgeMs: keepTryingTimeoutMs,
    maxEntries: maxUnanswered,
  })
  let looking = 0
  const look = createBatcher<{ app: string; hash: Buffer }, boolean>({
    async run(keys) {
      const values = [keys.map(({ app }) => app), keys.map(({ hash }) => hash), keptTtlMs]
      const rows = await database.query<{ place: string }>('idempotency-look', lookSql, values)
      const places = new Set(rows.map(({ place }) => Number(place)))
      return keys.map((_, index) => places.has(index + 1))
    },
    maxItems: keysPerLook,
    maxConcurrent: 1,
    spacingMs: looksSpacingMs,
  })

  return {
    /**
     * True if the key is in use now. A request with such a key may be a repeat, which must not be refused before its
     * answer is found. All callers share one statement at a time, which writes nothing.
     */
    async isKnown(app: string, key: IdempotencyKey): Promise<boolean> {
      if (looking >= maxLooking)
        throw new Overloaded('postgresql', 'too many Idempotency-Keys wait for a look-up')
      looking += 1
      try {
        return await look({ app, hash: sha256(key) })
      } finally {
        looking -= 1
      }
    },

    /** `requests` are the canonical texts of the request; the first one is stored. `noticeId` is the id to reserve. */
    async reserve(
      app: string,
      key: IdempotencyKey,
      requests: readonly string[],
      noticeId: NoticeId,
    ): Promise<ReserveResult> {
      const requestHashes = requests.map(sha256)
      const rows = await database.query<Row>('idempotency-reserve', reserveSql, [
        app,
        sha256(key),
        requestHashes,
        noticeId,
        takeOverTimeoutMs,
        keptTtlMs,
      ])
      // There is no row if another reservation was committed during this statement.
      const row = rows[0]
      if (!row) return { kind: 'in_progress' }
      if (row.isNew) {
        return row.noticeId === noticeId
          ? { kind: 'proceed' }
          : { kind: 'taken_over', earlierId: row.noticeId }
      }
      if (!requestHashes.some((hash) => hash.equals(row.requestHash))) return { kind: 'reused' }
      return row.answer === null
        ? { kind: 'in_progress' }
        : { kind: 'answered', answer: row.answer }
    },

    /** Binds the key to another notice. */
    async rename(
      app: string,
      key: IdempotencyKey,
      earlierId: NoticeId,
      noticeId: NoticeId,
    ): Promise<void> {
      const values = [app, sha256(key), earlierId, noticeId]
      await database.query('idempotency-rename', renameSql, values)
    },

    /** Stores the answer for repeats, now or when PostgreSQL answers again. */
    async keep(
      app: string,
      key: IdempotencyKey,
      noticeId: NoticeId,
      answer: unknown,
    ): Promise<void> {
      const values = [app, sha256(key), noticeId, JSON.stringify(answer)]
      const run = () => database.query('idempotency-keep', keepSql, values)
      await run().catch(() => unanswered.add(`keep ${noticeId}`, run))
    },

    /** Frees the key of a request that made nothing, now or when PostgreSQL answers again. */
    async free(app: string, key: IdempotencyKey, noticeId: NoticeId): Promise<void> {
      const run = () => database.query('idempotency-free', freeSql, [app, sha256(key), noticeId])
      const rows = await run().catch(() => [])
      if (rows.length === 0) unanswered.add(`free ${noticeId}`, run)
    },

    /** A notice id with PostgreSQL's time. */
    newNoticeId: (): NoticeId => newId(database.nowMs()),

    close(): void {
      unanswered.close()
    },
  }
}

/** Removes some keys older than a day. Returns their number. */
export async function removeOldKeys(database: Database): Promise<number> {
  const rows = await database.query('idempotency-remove', removeSql, [keptTtlMs, perRemoval])
  return rows.length
}

/**
 * A key that a request may have: it is a day old, reserved by a request that must have died, or answered for a notice that
 * will surely not be sent. A notice without a row counts as sent: test recipients have none.
 */
const isFree = `(old.created_at < now() - $6 * interval '1 millisecond' OR (old.request_hash = ANY ($3) AND
    CASE WHEN old.answer IS NULL THEN old.created_at < now() - $5 * interval '1 millisecond'
         ELSE EXISTS (SELECT FROM ${latestWay} WHERE first.id = old.notice_id AND ${surelyUnsent}) END))`

// The last part sees the table as it was before this statement. There a key can be free that another request has just
// reserved.
const reserveSql = `
  WITH mine AS (
    INSERT INTO idempotency_key AS old (app, key_hash, request_hash, notice_id, created_at)
    VALUES ($1, $2, ($3::bytea[])[1], $4, now())
    ON CONFLICT (app, key_hash) DO UPDATE
    SET created_at = now(), answer = NULL, request_hash = excluded.request_hash,
        notice_id = CASE WHEN old.answer IS NULL AND old.created_at >= now() - $6 * interval '1 millisecond'
                         THEN old.notice_id ELSE excluded.notice_id END
    WHERE ${isFree}
    RETURNING request_hash, notice_id
  )
  SELECT request_hash AS "requestHash", notice_id AS "noticeId", NULL AS answer, true AS "isNew" FROM mine
  UNION ALL
  SELECT request_hash, notice_id, answer, false FROM idempotency_key AS old
  WHERE app = $1 AND key_hash = $2 AND NOT EXISTS (SELECT FROM mine) AND NOT ${isFree}`

const lookSql = `
  SELECT place FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY AS asked (app, key_hash, place)
  WHERE EXISTS (SELECT FROM idempotency_key AS kept WHERE kept.app = asked.app AND kept.key_hash = asked.key_hash
                  AND created_at >= now() - $3 * interval '1 millisecond')`

const renameSql =
  'UPDATE idempotency_key SET notice_id = $4 WHERE app = $1 AND key_hash = $2 AND notice_id = $3'

const keepSql =
  'UPDATE idempotency_key SET answer = $4 WHERE app = $1 AND key_hash = $2 AND notice_id = $3'

const freeSql = `
  DELETE FROM idempotency_key
  WHERE app = $1 AND key_hash = $2 AND notice_id = $3 AND answer IS NULL
    AND NOT EXISTS (SELECT FROM notice WHERE id = $3 AND state NOT IN ('failed', 'expired'))
  RETURNING true`

const removeSql = `
  DELETE FROM idempotency_key WHERE created_at < now() - $1 * interval '1 millisecond'
    AND (app, key_hash) IN (
      SELECT app, key_hash FROM idempotency_key WHERE created_at < now() - $1 * interval '1 millisecond'
      ORDER BY created_at LIMIT $2)
  RETURNING 1`
