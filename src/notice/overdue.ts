/** Questions about all open notices: how many wait, for how long, and which ones have no job. */
import type { Channel } from '../base/channel.ts'
import type { Database } from '../storage/database.ts'
import { attemptsWithLostOne } from './claim.ts'

export function createOverdue(database: Database) {
  return {
    /**
     * Takes up to `limit` open notices that are overdue by `graceMs`, because no job or worker has them. The same step
     * makes them `pending` and due again in `againInMs`, so several callers never take the same notice.
     */
    takeOverdue(limit: number, graceMs: number, againInMs: number) {
      return database.query<{ id: string; channel: Channel; kind: 'captcha' | 'notice' }>(
        'notice-overdue',
        overdueSql,
        [limit, graceMs, againInMs],
      )
    },

    /** The number of notices that wait for their `sendAt`. */
    async scheduledCount(): Promise<number> {
      const [row] = await database.query<{ count: number }>('notice-scheduled', scheduledSql, [])
      return row?.count ?? 0
    },

    /** Age in seconds of the oldest open notice of each kind, 0 without one. */
    oldestOpenSeconds() {
      return database.query<{ kind: 'captcha' | 'notice'; value: number }>(
        'notice-oldest',
        oldestSql,
        [],
      )
    },
  }
}

const overdueSql = `
  UPDATE notice n
  SET state = 'pending',
      due_at = now() + $3 * interval '1 millisecond',
      attempts = ${attemptsWithLostOne}
  WHERE n.id IN (
    SELECT id FROM notice WHERE due_at < now() - $2 * interval '1 millisecond'
    ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
  RETURNING n.id, n.channel, n.kind`

const oldestSql = `
  SELECT kind,
         greatest(0, extract(epoch FROM now() - min(coalesce(send_at, created_at))))::float8 AS value
  FROM (VALUES ('captcha'), ('notice')) AS kinds (kind)
  LEFT JOIN (SELECT kind, send_at, created_at FROM notice WHERE due_at IS NOT NULL) AS open USING (kind)
  GROUP BY kind`

const scheduledSql = `
  SELECT count(*)::float8 AS count FROM notice WHERE due_at > now() AND send_at > now()`
