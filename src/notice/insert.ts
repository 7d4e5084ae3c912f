/** Inserts rows. Many inserts share a statement, and each reports whether its id existed already. */
import { createBatcher } from '../base/batcher.ts'
import type { Channel } from '../base/channel.ts'
import type { Database } from '../storage/database.ts'
import { columns } from './columns.ts'
import { noticeFormat } from './format.ts'

export interface NewNotice {
  id: string
  app: string
  kind: 'captcha' | 'notice'
  channel: Channel
  recipient: string
  recipientHash: Buffer
  scene: string | null
  template: string
  locale: string
  sealedParams: Buffer
  /** The earliest time to send. */
  sendAt?: Date | undefined
  /** Time to live from `sendAt`, or else from creation. */
  ttlMs: number
  /** The sampled span of the request that made the notice. */
  traceParent?: string | undefined
}

/** Returns the creation time by PostgreSQL's clock after the commit; null if the id existed already. */
export function createInsert(database: Database) {
  return createBatcher<NewNotice, Date | null>({
    maxItems: 200,
    maxConcurrent: 2,
    async run(notices) {
      const rows = await database.query<{ id: string; createdAtMs: number }>(
        'notice-create',
        createSql,
        columns(notices, [
          ...(['id', 'app', 'kind', 'channel', 'recipient', 'recipientHash', 'scene'] as const),
          ...(['template', 'locale', 'sealedParams', 'sendAt', 'ttlMs', 'traceParent'] as const),
        ]),
      )
      const created = new Map(rows.map((row) => [row.id, new Date(Math.floor(row.createdAtMs))]))
      return notices.map(({ id }) => {
        const createdAt = created.get(id) ?? null
        // If an id is twice in a batch, only the first made the row.
        created.delete(id)
        return createdAt
      })
    },
  })
}

// All times are PostgreSQL's, except `send_at`. The process's clock is not used.
const createSql = `
  INSERT INTO notice (id, app, kind, channel, recipient, recipient_hash, scene, template, locale,
                      sealed_params, created_at, send_at, expires_at, due_at, trace_parent, format)
  SELECT id, app, kind, channel, recipient, recipient_hash, scene, template, locale, sealed_params,
         now(), send_at,
         coalesce(send_at, now()) + ttl_ms * interval '1 millisecond', coalesce(send_at, now()),
         trace_parent, ${noticeFormat}
  FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::text[],
              $8::text[], $9::text[], $10::bytea[], $11::timestamptz[], $12::float8[],
              $13::text[])
    AS new (id, app, kind, channel, recipient, recipient_hash, scene, template, locale,
            sealed_params, send_at, ttl_ms, trace_parent)
  ON CONFLICT (id) DO NOTHING
  RETURNING id, (extract(epoch FROM created_at) * 1000)::float8 AS "createdAtMs"`
