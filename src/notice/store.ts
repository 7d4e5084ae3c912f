/**
 * The Notice table: the only place that knows its SQL.
 *
 * Creates, claims and outcomes run at the speed of traffic and go many rows to a statement. Times that
 * decide anything (is it due, is it over) are PostgreSQL's, because workers' clocks differ.
 */
import { createBatcher } from '../base/batcher.ts'
import type { Channel } from '../base/channel.ts'
import type { Database } from '../db/database.ts'
import { insertEvents, type WantedEvents } from './outbox.ts'
import type { Attempt, NoticeState } from './states.ts'

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
  /** Asked for ahead of time: not carried before it. */
  sendAt?: Date | undefined
  /** How long it may be sent, from `sendAt` or else from its creation. */
  ttlMs: number
}

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
  /** Until its `sendAt`; 0 when that has come, or it has none. */
  opensInMs: number
}

/** What makes a notice the caller's: `claims` is its fence from now on. */
export interface Claim {
  claims: number
  /** What is left of the notice's time; negative when it is over. */
  remainingMs: number
}

/** A notice that an earlier request made. */
export interface AdoptedNotice {
  /** Not sent yet. */
  isOpen: boolean
  createdAt: Date
  expiresAt: Date
}

/** What a worker writes back. `pending` needs `retryInMs`. */
export interface NoticeOutcome {
  id: string
  /** Of the claim, or as they were when it was looked at. */
  claims: number
  state: 'pending' | 'sent' | 'failed' | 'expired'
  /** All of them, earlier ones too. */
  attempts: readonly Attempt[]
  retryInMs?: number
  provider?: string
  providerMessageId?: string
  error?: string
}

/**
 * Between a worker's statements: little beside a send, and each statement saved is as much of
 * PostgreSQL's time as a dozen rows. Against 20 ms it saves a quarter of PostgreSQL's time per message.
 */
const workerSpacingMs = 40

export type NoticeStore = ReturnType<typeof createNoticeStore>

export function createNoticeStore(
  database: Database,
  options: {
    claimMs: number
    /** Of which moves events are written. */
    wantedEvents?: WantedEvents
  },
) {
  const recordSql = `
  WITH moved AS (${recordMove})${insertEvents(options.wantedEvents)}
  SELECT id FROM moved`
  const create = createBatcher<NewNotice, Date | null>({
    maxItems: 200,
    maxConcurrent: 2,
    async run(notices) {
      const rows = await database.query<{ id: string; createdAtMs: number }>(
        'notice-create',
        createSql,
        columns(notices, [
          (notice) => notice.id,
          (notice) => notice.app,
          (notice) => notice.kind,
          (notice) => notice.channel,
          (notice) => notice.recipient,
          (notice) => notice.recipientHash,
          (notice) => notice.scene,
          (notice) => notice.template,
          (notice) => notice.locale,
          (notice) => notice.sealedParams,
          (notice) => notice.sendAt ?? null,
          (notice) => notice.ttlMs,
        ]),
      )
      const created = new Map(rows.map((row) => [row.id, new Date(Math.floor(row.createdAtMs))]))
      return notices.map(({ id }) => {
        const createdAt = created.get(id) ?? null
        // Should one id stand twice in a batch, only the first of them made the row.
        created.delete(id)
        return createdAt
      })
    },
  })

  const findOpen = createBatcher<string, OpenNotice | null>({
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

  // Asked with a provider's slot in hand, so it waits for no other.
  const claim = createBatcher<Pick<OpenNotice, 'id' | 'claims'>, Claim | null>({
    maxItems: 100,
    maxConcurrent: 1,
    async run(notices) {
      const rows = await database.query<Claim & { id: string }>('notice-claim', claimSql, [
        ...columns(notices, [({ id }) => id, ({ claims }) => claims]),
        options.claimMs,
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

  const record = createBatcher<NoticeOutcome, boolean>({
    maxItems: 100,
    maxConcurrent: 1,
    spacingMs: workerSpacingMs,
    async run(outcomes) {
      const rows = await database.query<{ id: string }>(
        'notice-record',
        recordSql,
        columns(outcomes, [
          (outcome) => outcome.id,
          (outcome) => outcome.claims,
          (outcome) => outcome.state,
          (outcome) => JSON.stringify(outcome.attempts),
          (outcome) => outcome.retryInMs ?? null,
          (outcome) => outcome.provider ?? null,
          (outcome) => outcome.providerMessageId ?? null,
          (outcome) => outcome.error ?? null,
        ]),
      )
      const written = new Set(rows.map((row) => row.id))
      return outcomes.map((outcome) => written.delete(outcome.id))
    },
  })

  return {
    /** When the row was made, by PostgreSQL's clock, once it is committed; null when its id was there already. */
    create,

    /** The notice as it is; null when there is nothing to do: it is final, or another worker holds it. */
    findOpen,

    /**
     * Takes a notice for `claimMs`, in which a provider may be called. Null when it is not as it was
     * when it was looked at: another worker has had it, or its `sendAt` has not come.
     */
    claim,

    /**
     * Writes what became of a notice, claimed or only looked at; false when another worker has claimed
     * it since, and nothing was written. The same once more changes nothing.
     */
    record,

    /**
     * Up to `limit` open notices that are overdue by `graceMs`: nobody carries them. In the same step
     * they become `pending` and due again in `againInMs`, so that several callers never take the same.
     */
    takeOverdue(limit: number, graceMs: number, againInMs: number) {
      return database.query<{ id: string; channel: Channel; kind: 'captcha' | 'notice' }>(
        'notice-overdue',
        overdueSql,
        [limit, graceMs, againInMs],
      )
    },

    /** Closes notices whose 202 was never given, as far as nobody has claimed them. */
    async abandon(ids: readonly string[]): Promise<void> {
      await database.query('notice-abandon', abandonSql, [ids])
    },

    /**
     * What a request whose answer was lost has made, if it was sent or will be: a row that waits is
     * promised now, and no longer closed by `abandon`. Null when it is not there, or ended unsent.
     */
    async adopt(app: string, id: string): Promise<AdoptedNotice | null> {
      await database.query('notice-adopt', adoptSql, [app, id])
      const [row] = await database.query<AdoptedNotice>('notice-adopted', adoptedSql, [app, id])
      return row ?? null
    },

    /** How many notices wait for their `sendAt`. */
    async scheduledCount(): Promise<number> {
      const [row] = await database.query<{ count: number }>('notice-scheduled', scheduledSql, [])
      return row?.count ?? 0
    },

    /** Seconds that the oldest open notice of each kind has been waiting for, 0 when there is none. */
    oldestOpenSeconds() {
      return database.query<{ kind: NewNotice['kind']; value: number }>(
        'notice-oldest',
        oldestSql,
        [],
      )
    },

    find(app: string, id: string) {
      return database.read((prisma) => prisma.notice.findFirst({ where: { id, app } }))
    },

    /** Newest first; `before` is the id of the last item of the page before. */
    search(filter: {
      app: string
      recipientHashes?: readonly Uint8Array[]
      channel?: string
      state?: NoticeState
      before?: string
      limit: number
    }) {
      return database.read((prisma) =>
        prisma.notice.findMany({
          where: {
            app: filter.app,
            ...(filter.recipientHashes
              ? {
                  recipientHash: {
                    in: filter.recipientHashes.map((hash) => Uint8Array.from(hash)),
                  },
                }
              : {}),
            ...(filter.channel ? { channel: filter.channel } : {}),
            ...(filter.state ? { state: filter.state } : {}),
            ...(filter.before ? { id: { lt: filter.before } } : {}),
          },
          orderBy: { id: 'desc' },
          take: filter.limit,
        }),
      )
    },
  }
}

/** The items turned into one array per column, as `unnest` takes them. */
function columns<Item>(
  items: readonly Item[],
  pick: readonly ((item: Item) => unknown)[],
): unknown[][] {
  return pick.map((column) => items.map(column))
}

// Times are PostgreSQL's, whatever the clock of the process says, but for the one that was asked for.
const createSql = `
  INSERT INTO notice (id, app, kind, channel, recipient, recipient_hash, scene, template, locale,
                      sealed_params, created_at, send_at, expires_at, due_at)
  SELECT id, app, kind, channel, recipient, recipient_hash, scene, template, locale, sealed_params,
         now(), send_at,
         coalesce(send_at, now()) + ttl_ms * interval '1 millisecond', coalesce(send_at, now())
  FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::text[],
              $8::text[], $9::text[], $10::bytea[], $11::timestamptz[], $12::float8[])
    AS new (id, app, kind, channel, recipient, recipient_hash, scene, template, locale,
            sealed_params, send_at, ttl_ms)
  ON CONFLICT (id) DO NOTHING
  RETURNING id, (extract(epoch FROM created_at) * 1000)::float8 AS "createdAtMs"`

/** A row still in `sending` when its claim is over: the try was made or not, nobody can say. */
const attemptsWithLostOne = `CASE WHEN n.state = 'pending' THEN n.attempts ELSE n.attempts || jsonb_build_object(
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
const byIndex = 'n.id = ANY ($1::uuid[])'

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

/**
 * Held by the number of claims alone: as long as no other worker has claimed the notice, the word of
 * the one that had it last is the truth, even if it comes so late that the notice was given up for lost
 * meanwhile. The attempts are written whole, so that a statement whose answer was lost may be repeated.
 */
const recordMove = `
  UPDATE notice n
  SET state = new.state,
      attempts = new.attempts,
      due_at = CASE WHEN new.state = 'pending' THEN now() + new.retry_in_ms * interval '1 millisecond' END,
      sealed_params = CASE WHEN new.state = 'pending' THEN n.sealed_params END,
      provider = coalesce(new.provider, n.provider),
      provider_message_id = coalesce(new.provider_message_id, n.provider_message_id),
      error = new.error,
      sent_at = CASE WHEN new.state = 'sent' THEN now() END,
      finished_at = CASE WHEN new.state <> 'pending' THEN now() END
  FROM unnest($1::uuid[], $2::int[], $3::text[], $4::jsonb[], $5::float8[], $6::text[], $7::text[], $8::text[])
    AS new (id, claims, state, attempts, retry_in_ms, provider, provider_message_id, error)
  WHERE n.id = new.id AND n.state IN ('pending', 'sending') AND n.claims = new.claims
    AND ${byIndex}
  RETURNING n.*`

const overdueSql = `
  UPDATE notice n
  SET state = 'pending',
      due_at = now() + $3 * interval '1 millisecond',
      attempts = ${attemptsWithLostOne}
  WHERE n.id IN (
    SELECT id FROM notice WHERE due_at < now() - $2 * interval '1 millisecond'
    ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
  RETURNING n.id, n.channel, n.kind`

const abandonSql = `
  UPDATE notice SET state = 'failed', error = 'abandoned', due_at = NULL, sealed_params = NULL, finished_at = now()
  WHERE id = ANY($1::uuid[]) AND state = 'pending' AND claims = 0`

// Two statements: the second sees what the first waited for.
const adoptSql = `
  UPDATE notice SET claims = claims + 1 WHERE app = $1 AND id = $2 AND state = 'pending'`

const adoptedSql = `
  SELECT state IN ('pending', 'sending') AS "isOpen", created_at AS "createdAt", expires_at AS "expiresAt"
  FROM notice
  WHERE app = $1 AND id = $2 AND (state IN ('pending', 'sending', 'sent', 'delivered')
                                  OR sent_at IS NOT NULL OR error = 'outcome_unknown')`

const oldestSql = `
  SELECT kind,
         greatest(0, extract(epoch FROM now() - min(coalesce(send_at, created_at))))::float8 AS value
  FROM (VALUES ('captcha'), ('notice')) AS kinds (kind)
  LEFT JOIN (SELECT kind, send_at, created_at FROM notice WHERE due_at IS NOT NULL) AS open USING (kind)
  GROUP BY kind`

const scheduledSql = `
  SELECT count(*)::float8 AS count FROM notice WHERE due_at > now() AND send_at > now()`
