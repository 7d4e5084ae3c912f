/**
 * Questions about all open notices: how many wait, for how long, and which ones have no job.
 *
 * Open notices can be millions: a campaign, or a provider that is away. So no statement reads more rows than its limit, and
 * each reads one kind by the index, because bulk must not hide codes. It begins at the earliest open notice (low-end.ts).
 */
import { type Channel, channels } from '../base/channel.ts'
import type { Database } from '../storage/database.ts'
import { amongIds, rangeOfIds } from './columns.ts'
import { createLowEnd } from './low-end.ts'
import type { NoticeKind } from './states.ts'

export interface OverdueNotice {
  id: string
  channel: Channel
  kind: NoticeKind
}

export function createOverdue(database: Database) {
  const findLowEnd = createLowEnd(database)
  return {
    /**
     * Takes up to `limit` open notices of a kind that are overdue by `graceTimeoutMs`, because no job or worker has them. The
     * same step makes them `pending` and due again in `retryInMs`, so several callers never take the same notice.
     */
    async takeOverdue(kind: NoticeKind, limit: number, graceTimeoutMs: number, retryInMs: number) {
      const from = await findLowEnd()
      return database.query<OverdueNotice>('notice-overdue', overdueSql, [
        kind,
        limit,
        graceTimeoutMs,
        retryInMs,
        from[kind],
      ])
    },

    /**
     * Takes bulk notices that become due in more than `beyondRetryMs`, although only limits or pauses of providers hold them
     * back. The same step makes them due in `retryInMs`. `from`: the due time of the latest notice of the call before.
     * It is returned as `latest`; undefined after the last notice. `dueAt`: the new due time of all. A call reads 5,000
     * notices at most.
     */
    async takeParked(limit: number, beyondRetryMs: number, retryInMs: number, from = '-infinity') {
      const values = [limit, beyondRetryMs, retryInMs, from]
      const rows = await database.query<OverdueNotice & { latest: string; dueAt: string }>(
        'notice-parked',
        parkedSql,
        values,
      )
      const notices = rows.map(({ latest: _, dueAt: __, ...row }) => row)
      return { notices, latest: rows[0]?.latest, dueAt: rows[0]?.dueAt }
    },

    /** The number of these notices that a worker has deferred since they got this due time. */
    async deferredCount(ids: readonly string[], dueAt: string | undefined): Promise<number> {
      const values = [ids, ...rangeOfIds(ids), dueAt]
      const [row] = await database.query<{ count: number }>('notice-deferred', deferredSql, values)
      return row?.count ?? 0
    },

    /**
     * The number of notices that wait for their `sendAt`, among the 100,000 notices that are due last. Other notices are
     * due soon.
     */
    async scheduledCount(): Promise<number> {
      const [row] = await database.query<{ count: number }>('notice-scheduled', scheduledSql, [])
      return row?.count ?? 0
    },

    /**
     * Age in seconds of the oldest open notice of each kind, 0 without one. With more than 20,000 open notices of the kind,
     * the oldest of those that are due first.
     */
    async oldestOpenSeconds() {
      const { captcha, notice } = await findLowEnd()
      const from = [captcha, notice]
      return database.query<{ kind: NoticeKind; value: number }>('notice-oldest', oldestSql, from)
    },
  }
}

/** For a row still in `sending` after its claim ended, adds an attempt with an unknown outcome, by the provider of the claim. */
const attemptsWithLostOne = `CASE WHEN n.state = 'pending' THEN n.attempts ELSE n.attempts || jsonb_build_object(
        'provider', n.claim -> 'provider', 'kind', n.claim -> 'kind', 'at', to_char(n.due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'outcome', 'unknown', 'durationMs', 0, 'detail', 'the worker was lost') END`

// The update has an array of ids and their range, as in claim.ts. A plan for a small table may join by reading all of it.
/** Notices of a channel that only a newer Postern knows are left to its processes. */
const isOfKnownChannel = `channel IN (${channels.map((name) => `'${name}'`).join(', ')})`

const overdueSql = `
  WITH overdue AS (
    SELECT id FROM notice
    WHERE kind = $1 AND due_at >= $5 AND due_at < now() - $3 * interval '1 millisecond' AND ${isOfKnownChannel}
    ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED)
  UPDATE notice n
  SET state = 'pending',
      due_at = now() + $4 * interval '1 millisecond',
      attempts = ${attemptsWithLostOne},
      claim = NULL
  WHERE n.id = ANY (ARRAY(SELECT id FROM overdue))
    AND n.id >= (SELECT id FROM overdue ORDER BY id LIMIT 1)
    AND n.id <= (SELECT id FROM overdue ORDER BY id DESC LIMIT 1)
  RETURNING n.id, n.channel, n.kind`

// A postponed notice waits for its recipient, and a notice of unknown outcome waits for a query. The due time is compared
// again, because another worker may take the same notices.
const parkedSql = `
  WITH parked AS MATERIALIZED (
    SELECT id, due_at FROM (
      SELECT id, due_at, state, send_at, attempts, channel FROM notice
      WHERE kind = 'notice' AND due_at >= $4::timestamptz AND due_at > now() + $2 * interval '1 millisecond'
      ORDER BY due_at LIMIT 5000) AS due_next
    WHERE state = 'pending' AND ${isOfKnownChannel} AND (send_at IS NULL OR send_at <= now())
      AND NOT attempts @> '[{"outcome":"postponed"}]' AND NOT attempts @> '[{"outcome":"unknown"}]'
    ORDER BY due_at LIMIT $1)
  UPDATE notice n
  SET due_at = now() + $3 * interval '1 millisecond'
  WHERE n.id = ANY (ARRAY(SELECT id FROM parked))
    AND n.id >= (SELECT id FROM parked ORDER BY id LIMIT 1)
    AND n.id <= (SELECT id FROM parked ORDER BY id DESC LIMIT 1)
    AND n.state = 'pending' AND n.due_at > now() + $2 * interval '1 millisecond'
  RETURNING n.id, n.channel, n.kind, (SELECT max(due_at)::text FROM parked) AS latest, n.due_at::text AS "dueAt"`

const deferredSql = `
  SELECT count(*)::float8 AS count FROM notice n
  WHERE ${amongIds(2)} AND n.state = 'pending' AND n.due_at <> $4::timestamptz`

const oldestOf = (kind: NoticeKind, from: string) => `
  SELECT '${kind}' AS kind,
         coalesce(greatest(0, extract(epoch FROM now() - min(coalesce(send_at, created_at)))), 0)::float8 AS value
  FROM (SELECT send_at, created_at FROM notice WHERE kind = '${kind}' AND due_at >= ${from}::timestamptz
        ORDER BY due_at LIMIT 20000) AS due_first`

const oldestSql = `${oldestOf('captcha', '$1')} UNION ALL ${oldestOf('notice', '$2')}`

const scheduledSql = `
  SELECT (count(*) FILTER (WHERE send_at > now()))::float8 AS count
  FROM (SELECT send_at FROM notice WHERE kind = 'notice' AND due_at > now()
        ORDER BY due_at DESC LIMIT 100000) AS due_last`
