/** Inserts rows. Many inserts share a statement, and each reports whether its id existed already. */
import { createBatcher } from '../base/batcher.ts'
import type { Channel } from '../base/channel.ts'
import type { SuppressFor, SuppressionReason } from '../base/suppression.ts'
import type { Database } from '../storage/database.ts'
import { columns } from './columns.ts'
import { noticeFormat, wayFormat } from './format.ts'
import type { NoticeKind } from './states.ts'
import { appliesSql, suppressValues } from './suppressions.ts'
import { beginWays, type WayBegun } from './verifications.ts'

export interface NoticeDraft {
  app: string
  kind: NoticeKind
  channel: Channel
  /** Normalised: E.164 or one address. */
  to: string
  scene?: string | undefined
  template: string
  locale: string
  /** Counted from `sendAt` if that is set. */
  ttlMs: number
  sendAt?: Date | undefined
  begun?: WayBegun | undefined
  /** The providers of its route, to find out whether the recipient has opted out of all of them. */
  providers?: readonly string[] | undefined
}

/** The row of a notice. */
export interface NewNotice extends Omit<NoticeDraft, 'to' | 'scene'> {
  id: string
  recipient: string
  recipientHash: Buffer
  /** The hash by the previous secret, during a rotation. */
  earlierHash?: Buffer | undefined
  scene?: string | null | undefined
  sealedParams: Buffer
  /** The sampled span of the request that made the notice. */
  traceParent?: string | undefined
}

/**
 * Returns the creation time by PostgreSQL's clock after the commit; null if the id existed already. For a recipient that must
 * get nothing, it returns the reason and inserts nothing. The statement finds that itself, so it costs no other one.
 *
 * `isWay`: each notice begins a way of its verification. It returns null also if that way was begun, or the verification ended.
 */
export function createInsert(database: Database, suppressFor: () => SuppressFor, isWay = false) {
  const name = isWay ? 'notice-create-way' : 'notice-create'
  const sql = insertSql(isWay)
  return createBatcher<NewNotice, Date | SuppressionReason | null>({
    maxItems: 200,
    maxConcurrent: 2,
    async run(notices) {
      const rows = await database.query<Inserted>(name, sql, [
        ...columns(notices, [
          ...(['id', 'app', 'kind', 'channel', 'recipient', 'recipientHash', 'scene'] as const),
          ...(['template', 'locale', 'sealedParams', 'sendAt', 'ttlMs', 'traceParent'] as const),
          'earlierHash',
          ({ providers }) => providers?.join(',') ?? null,
        ]),
        suppressValues(suppressFor()),
        ...(isWay
          ? columns(
              notices.flatMap(({ begun }) => begun ?? []),
              ['verificationId', 'way', 'seen'],
            )
          : []),
      ])
      const created = new Map(
        rows.map((row) => [row.id, row.because ?? new Date(Math.floor(row.createdAtMs))]),
      )
      return notices.map(({ id }) => {
        const createdAt = created.get(id) ?? null
        // If an id is twice in a batch, only the first made the row.
        created.delete(id)
        return createdAt
      })
    },
  })
}

type Inserted = { id: string } & (
  | { createdAtMs: number; because: null }
  | { createdAtMs: null; because: SuppressionReason }
)

/** Why the recipient of `new` must get nothing; null if it may get the message. */
const becauseSql = `
  SELECT CASE WHEN bool_or(s.reason = 'bounced') THEN 'bounced'
              WHEN new.kind = 'notice' AND bool_or(s.reason = 'complained') THEN 'complained'
              WHEN new.providers <@ array_agg(s.provider) FILTER (WHERE s.reason = 'opted_out') THEN 'opted_out' END AS because
  FROM suppression s
  WHERE s.recipient_hash = ANY (ARRAY[new.recipient_hash, new.earlier_hash]) AND s.app = new.app AND ${appliesSql(16)}`

// All times are PostgreSQL's, except `send_at`. The process's clock is not used.
const insertSql = (isWay: boolean) => `
  WITH given AS (
    SELECT new.*, (${becauseSql}) AS because FROM (
      SELECT id, app, kind, channel, recipient, recipient_hash, scene, template, locale, sealed_params,
             send_at, ttl_ms, trace_parent, earlier_hash, string_to_array(providers, ',') AS providers
             ${isWay ? ', verification_id, way, seen' : ''}
      FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::text[],
                  $8::text[], $9::text[], $10::bytea[], $11::timestamptz[], $12::float8[],
                  $13::text[], $14::bytea[], $15::text[]${isWay ? ', $17::uuid[], $18::int[], $19::int[]' : ''})
        AS new (id, app, kind, channel, recipient, recipient_hash, scene, template, locale,
                sealed_params, send_at, ttl_ms, trace_parent, earlier_hash, providers
                ${isWay ? ', verification_id, way, seen' : ''})) AS new
  )${isWay ? beginWays : ''}, created AS (
    INSERT INTO notice (id, app, kind, channel, recipient, recipient_hash, scene, template, locale,
                        sealed_params, created_at, send_at, expires_at, due_at, trace_parent, format${isWay ? ', verification_id' : ''})
    SELECT id, app, kind, channel, recipient, recipient_hash, scene, template, locale, sealed_params,
           now(), send_at,
           coalesce(send_at, now()) + ttl_ms * interval '1 millisecond', coalesce(send_at, now()),
           trace_parent, ${isWay ? `${wayFormat}, verification_id` : noticeFormat}
    FROM given WHERE because IS NULL ${isWay ? 'AND id IN (SELECT notice_id FROM way)' : ''}
    ON CONFLICT (id) DO NOTHING
    RETURNING id, created_at
  )
  SELECT id, (extract(epoch FROM created_at) * 1000)::float8 AS "createdAtMs", NULL AS because FROM created
  UNION ALL
  SELECT id, NULL, because FROM given WHERE because IS NOT NULL`
