/**
 * Who may send a notice. A worker looks at it first, which changes nothing: it may wait for long, for a
 * provider's slot or a limit. It claims the notice right before the call, and gets it only if no other
 * worker has had it since that look.
 */
import { createBatcher } from '../base/batcher.ts'
import type { Channel } from '../base/channel.ts'
import { columns } from '../base/columns.ts'
import type { Database } from '../storage/database.ts'
import type { Attempt } from './states.ts'

/** An open notice that no worker holds, as it was when it was looked at. */
export interface OpenNotice {
  id: string
  app: string
  kind: 'captcha' | 'notice'
  channel: Channel
  recipient: string
  scene: string | null
  template: string
  locale: string
  sealedParams: Buffer
  /** With the lost one, where it was left by a worker that died. */
  attempts: Attempt[]
  /** How often it has been claimed: the fence. */
  claims: number
  /** When its sender wanted it sent: by PostgreSQL's clock, in terms of our `performance.now()`. */
  wantedAtMs: number
  /** What is left of its time, by PostgreSQL's clock; negative when it is over. */
  remainingMs: number
  /** Until its `sendAt`; 0 when that time is past, or there is none. */
  opensInMs: number
}

/** What makes a notice the caller's: `claims` is its fence from now on. */
export interface Claim {
  claims: number
  /** What is left of the notice's time; negative when it is over. */
  remainingMs: number
}

/**
 * Between a worker's statements: little beside a send, and each statement saved is as much of
 * PostgreSQL's time as a dozen rows. Against 20 ms it saves a quarter of PostgreSQL's time per message.
 */
export const workerSpacingMs = 40

/** Answers the notice as it is; null when there is nothing to do: it is final, or another worker holds it. */
export function createFindOpen(database: Database) {
  return createBatcher<string, OpenNotice | null>({
    maxItems: 100,
    maxConcurrent: 1,
    spacingMs: workerSpacingMs,
    async run(ids) {
      const rows = await database.query<Omit<OpenNotice, 'wantedAtMs'> & { waitedMs: number }>(
        'notice-open',
        openSql,
        [ids],
      )
      const nowMs = performance.now()
      const open = new Map(
        rows.map(({ waitedMs, ...row }) => [row.id, { ...row, wantedAtMs: nowMs - waitedMs }]),
      )
      return ids.map((id) => open.get(id) ?? null)
    },
  })
}

/**
 * Takes a notice for `claimMs`, in which a provider may be called. Null when it is not as it was when it
 * was looked at: another worker has had it, or its `sendAt` has not come.
 */
export function createClaim(database: Database, claimMs: number) {
  // Asked with a provider's slot in hand, so it waits for no other.
  return createBatcher<Pick<OpenNotice, 'id' | 'claims'>, Claim | null>({
    maxItems: 100,
    maxConcurrent: 1,
    async run(notices) {
      const rows = await database.query<Claim & { id: string }>('notice-claim', claimSql, [
        ...columns(notices, ['id', 'claims']),
        claimMs,
      ])
      const claimed = new Map(rows.map((row) => [row.id, row]))
      return notices.map(({ id }) => {
        const row = claimed.get(id) ?? null
        // Should one id be asked for twice in a batch, only the first asker gets it.
        claimed.delete(id)
        return row
      })
    },
  })
}

/** A row still in `sending` when its claim is over: whether the try was made is unknown. */
export const attemptsWithLostOne = `CASE WHEN n.state = 'pending' THEN n.attempts ELSE n.attempts || jsonb_build_object(
        'provider', NULL, 'at', to_char(n.due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'outcome', 'unknown', 'durationMs', 0, 'detail', 'the worker was lost') END`

const isFree = `(n.state = 'pending' OR (n.state = 'sending' AND n.due_at <= now()))`

const remainingMs = `(extract(epoch FROM n.expires_at - now()) * 1000)::float8 AS "remainingMs"`

const openSql = `
  SELECT n.id, n.app, n.kind, n.channel, n.recipient, n.scene, n.template, n.locale,
         n.sealed_params AS "sealedParams", ${attemptsWithLostOne} AS attempts, n.claims,
         (extract(epoch FROM now() - coalesce(n.send_at, n.created_at)) * 1000)::float8 AS "waitedMs",
         ${remainingMs},
         coalesce(greatest(0, extract(epoch FROM n.send_at - now()) * 1000), 0)::float8 AS "opensInMs"
  FROM notice n
  WHERE n.id = ANY ($1::uuid[]) AND ${isFree}`

/**
 * Says what the join says already, in words that always go by the primary key: how many ids an array
 * holds is unknown to the planner, and on a guess it reads the whole table for each statement.
 */
export const byIndex = 'n.id = ANY ($1::uuid[])'

const claimSql = `
  UPDATE notice n
  SET state = 'sending',
      claims = n.claims + 1,
      due_at = now() + $3 * interval '1 millisecond',
      attempts = ${attemptsWithLostOne}
  FROM unnest($1::uuid[], $2::int[]) AS seen (id, claims)
  WHERE n.id = seen.id AND n.claims = seen.claims AND ${byIndex} AND ${isFree}
    AND (n.send_at IS NULL OR n.send_at <= now())
  RETURNING n.id, n.claims, ${remainingMs}`
