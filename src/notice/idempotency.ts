/**
 * What an Idempotency-Key stands for. What a caller hears of it is decided in src/http/once-per-key.ts.
 *
 * The key is written first, with the id the notice will have, and after the answer with that answer. A
 * repeat in between is `in_progress`. A request that found a server away frees its key, unless its notice
 * is there and open: then it is not known yet what it comes to. When a request never answered (its process
 * died, or the answer could not be kept), a repeat takes the key over after a while and is told the id
 * the first had: if that notice was sent or will be, it is the answer; if not, the repeat goes on under
 * an id of its own, so that nothing which is still being undone for the first can meet it.
 */
import { createHash } from 'node:crypto'
import { createBatcher } from '../base/batcher.ts'
import { newId } from '../base/ids.ts'
import { Overloaded } from '../base/unavailable.ts'
import { createUntilAnswered } from '../base/until-answered.ts'
import type { Database } from '../storage/database.ts'

export type Reservation =
  | { kind: 'proceed' }
  /** A request that never answered had it, with this notice id. */
  | { kind: 'taken_over'; earlierId: string }
  /** The first request was answered; `answer` is what it got. */
  | { kind: 'answered'; answer: unknown }
  | { kind: 'in_progress' }
  /** The key was used for a request with another body. */
  | { kind: 'reused' }

/** Longer than any request lives. */
const takeOverAfterMs = 30_000
const keptForMs = 86_400_000
const perRemoval = 1_000
/** How long an answer that could not be kept is tried again; soon after it a repeat takes over. */
const keepTryingForMs = 20_000
const maxUnanswered = 10_000
const keysPerLook = 100
const looksApartMs = 10
/** Some twenty statements' worth. */
const maxLooking = 2_000

interface Row {
  requestHash: Buffer
  noticeId: string
  answer: unknown
  isNew: boolean
}

export type Idempotency = ReturnType<typeof createIdempotency>

export function createIdempotency(database: Database) {
  const sha256 = (text: string) => createHash('sha256').update(text).digest()
  const unanswered = createUntilAnswered({ maxAgeMs: keepTryingForMs, maxEntries: maxUnanswered })
  let looking = 0
  const look = createBatcher<{ app: string; hash: Buffer }, boolean>({
    async run(keys) {
      const values = [keys.map(({ app }) => app), keys.map(({ hash }) => hash), keptForMs]
      const rows = await database.query<{ place: string }>('idempotency-look', lookSql, values)
      const places = new Set(rows.map(({ place }) => Number(place)))
      return keys.map((_, index) => places.has(index + 1))
    },
    maxItems: keysPerLook,
    maxConcurrent: 1,
    spacingMs: looksApartMs,
  })

  return {
    /**
     * Whether the key stands for something, now. For those who know that the request will be refused otherwise: any
     * number of them share one statement at a time, which writes nothing.
     */
    async isKnown(app: string, key: string): Promise<boolean> {
      if (looking >= maxLooking) throw new Overloaded('postgresql', 'too many keys are looked for')
      looking += 1
      try {
        return await look({ app, hash: sha256(key) })
      } finally {
        looking -= 1
      }
    },

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
      // No row: another reservation was committed while this statement ran.
      const row = rows[0]
      if (!row) return { kind: 'in_progress' }
      if (row.isNew) {
        return row.noticeId === noticeId
          ? { kind: 'proceed' }
          : { kind: 'taken_over', earlierId: row.noticeId }
      }
      if (!row.requestHash.equals(requestHash)) return { kind: 'reused' }
      return row.answer === null
        ? { kind: 'in_progress' }
        : { kind: 'answered', answer: row.answer }
    },

    /** From now on the key stands for another notice. */
    async rename(app: string, key: string, earlierId: string, noticeId: string): Promise<void> {
      const values = [app, sha256(key), earlierId, noticeId]
      await database.query('idempotency-rename', renameSql, values)
    },

    /** Keeps the answer for repeats, now or when PostgreSQL answers again. */
    async keep(app: string, key: string, noticeId: string, answer: unknown): Promise<void> {
      const values = [app, sha256(key), noticeId, JSON.stringify(answer)]
      const run = () => database.query('idempotency-keep', keepSql, values)
      await run().catch(() => unanswered.add(`keep ${noticeId}`, run))
    },

    /** Frees the key of a request that made nothing, now or when that is known. */
    async free(app: string, key: string, noticeId: string): Promise<void> {
      const run = () => database.query('idempotency-free', freeSql, [app, sha256(key), noticeId])
      const rows = await run().catch(() => [])
      if (rows.length === 0) unanswered.add(`free ${noticeId}`, run)
    },

    /** Removes some keys past their day; how many. */
    async removeOld(): Promise<number> {
      const rows = await database.query('idempotency-remove', removeSql, [keptForMs, perRemoval])
      return rows.length
    },

    /** An id for a notice, whose time is PostgreSQL's. */
    newNoticeId: () => newId(database.nowMs()),

    close(): void {
      unanswered.close()
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
