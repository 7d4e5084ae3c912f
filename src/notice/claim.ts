/**
 * Decides which worker sends a notice. A worker first reads the notice, which changes nothing: the notice may wait
 * long for a provider or a limit. The worker claims it right before the call. The claim succeeds only if no other
 * worker has claimed the notice since that read. Only the reconciler ends the claim of another worker (overdue.ts): it
 * knows whether PostgreSQL was away, so that the worker could not write its outcome.
 */
import { createBatcher } from '../base/batcher.ts'
import type { Channel } from '../base/channel.ts'
import type { CodeId } from '../base/ids.ts'
import type { SuppressFor } from '../base/suppression.ts'
import type { Database } from '../storage/database.ts'
import { amongIds, columns, oneAtATime, rangeOf, rangeOfIds } from './columns.ts'
import type { Attempt, NoticeKind } from './states.ts'
import { type Suppression, suppressedSql, suppressValues } from './suppressions.ts'

/** An open notice that no worker has claimed, with its state at the time of the read. */
export interface OpenNotice {
  id: string
  app: string
  kind: NoticeKind
  channel: Channel
  recipient: string
  scene: string | null
  template: string
  locale: string
  sealedParams: Buffer
  attempts: Attempt[]
  /** The number of claims so far. A worker writes an outcome only if the number is still the same. */
  claims: number
  /** The time for which the sender wanted the message, by `performance.now()` of this process. */
  wantedAtMs: number
  /** The rest of its time to live, by PostgreSQL's clock; negative when it has expired. */
  ttlMs: number
  /** The end of its time to live, in milliseconds since 1970. */
  expiresAtMs: number
  hasPassed: boolean
  /** Milliseconds until its `sendAt`. 0 if that time has passed or there is none. */
  retryInMs: number
  /** The sampled span of the request that made the notice. */
  traceParent: string | null
  /** See format.ts. */
  format: number
  verificationId: CodeId | null
  /** Null if the recipient may get messages of all providers. */
  suppressions: Pick<Suppression, 'reason' | 'provider'>[] | null
}

/** The values of a claim: the notice as it was read, and the worker's reason to claim it. */
export interface ClaimAsked extends Pick<OpenNotice, 'id' | 'claims'> {
  by?: {
    /** No other claim has it. */
    id: string
    /** The provider that will be called, and its kind. */
    provider: string
    kind: string
  }
}

/** A successful claim. `claims` is the number of claims with this one. */
export interface Claim {
  claims: number
  /** The rest of the notice's time to live; negative when it has expired. */
  ttlMs: number
}

/**
 * Time between two reads of a worker. Every message waits for its read. But messages that are read together are also
 * claimed together. Most of a small claim is its commit: one row alone costs ten times as much as a row among many. So
 * below some 300 messages a second no message waits for another, and above it none waits longer than this.
 */
const readSpacing = { spacingMs: 12, spacingPerItemMs: 3 }

/** The same for statements that no message waits for. */
export const writeSpacing = { spacingMs: 80, spacingPerItemMs: 4 }

/** Reads a notice. Null if it is final or another worker has claimed it. */
export function createFindOpen(database: Database, suppressFor: () => SuppressFor) {
  return createBatcher<string, OpenNotice | null>({
    ...oneAtATime,
    ...readSpacing,
    async run(ids) {
      const rows = await database.query<
        Omit<OpenNotice, 'wantedAtMs'> & { waitedDurationMs: number }
      >('notice-open', openSql, [ids, ...rangeOfIds(ids), suppressValues(suppressFor())])
      const nowMs = performance.now()
      const open = new Map(
        rows.map(({ waitedDurationMs, ...row }) => [
          row.id,
          { ...row, wantedAtMs: nowMs - waitedDurationMs },
        ]),
      )
      return ids.map((id) => open.get(id) ?? null)
    },
  })
}

/** A claim lasts longer than one provider call and its bookkeeping. */
export const claimTtlFor = (callTimeoutMs: number) => callTimeoutMs * 2 + 2_000

/**
 * Claims a notice for `claimTtlMs`, in which the worker may call a provider. Null if another worker has claimed it since
 * the read, or its `sendAt` is still to come.
 */
export function createClaim(database: Database, claimTtlMs: number) {
  // The worker has a turn at a provider already, so this batcher has no spacing.
  return createBatcher<ClaimAsked, Claim | null>({
    ...oneAtATime,
    async run(notices) {
      const rows = await database.query<Claim & { id: string }>('notice-claim', claimSql, [
        ...columns(notices, ['id', 'claims', ({ by }) => by && JSON.stringify(by)]),
        claimTtlMs,
        ...rangeOf(notices),
      ])
      const claimed = new Map(rows.map((row) => [row.id, row]))
      return notices.map(({ id }) => {
        const row = claimed.get(id) ?? null
        // If an id is twice in a batch, only the first caller gets it.
        claimed.delete(id)
        return row
      })
    },
  })
}

/** Makes a claim last `ms` from now, for a call whose answer is late. Does nothing if the claim has ended. */
export function createExtend(database: Database) {
  return createBatcher<{ id: string; claims: number; ms: number }, void>({
    ...oneAtATime,
    ...writeSpacing,
    run: async (kept) =>
      void (await database.query('notice-extend', extendSql, [
        ...columns(kept, ['id', 'claims', 'ms']),
        ...rangeOf(kept),
      ])),
  })
}

/**
 * Ends a claim whose answer was lost. The notice is pending again as it was, and a claim that is still under way finds it
 * changed. True if the claim was there. A second call changes nothing.
 */
export function createTakeBack(database: Database) {
  return createBatcher<ClaimAsked, boolean>({
    ...oneAtATime,
    async run(lost) {
      const rows = await database.query<{ id: string; wasClaimed: boolean }>(
        'notice-take-back',
        takeBackSql,
        [...columns(lost, ['id', 'claims', ({ by }) => by?.id]), ...rangeOf(lost)],
      )
      const claimed = new Set(rows.flatMap(({ id, wasClaimed }) => (wasClaimed ? [id] : [])))
      return lost.map(({ id }) => claimed.has(id))
    },
  })
}

const ttlMs = `(extract(epoch FROM n.expires_at - now()) * 1000)::float8 AS "ttlMs"`

const openSql = `
  SELECT n.id, n.app, n.kind, n.channel, n.recipient, n.scene, n.template, n.locale,
         n.sealed_params AS "sealedParams", n.attempts, n.claims,
         coalesce(n.code_end = 'passed', false) AS "hasPassed", n.format,
         n.verification_id AS "verificationId",
         n.trace_parent AS "traceParent", ${suppressedSql(4)} AS suppressions,
         (extract(epoch FROM now() - coalesce(n.send_at, n.created_at)) * 1000)::float8 AS "waitedDurationMs",
         ${ttlMs}, (extract(epoch FROM n.expires_at) * 1000)::float8 AS "expiresAtMs",
         coalesce(greatest(0, extract(epoch FROM n.send_at - now()) * 1000), 0)::float8 AS "retryInMs"
  FROM notice n
  WHERE ${amongIds(2)} AND n.state = 'pending'`

const claimSql = `
  UPDATE notice n
  SET state = 'sending',
      claims = n.claims + 1,
      claim = seen.claim,
      due_at = now() + $4 * interval '1 millisecond'
  FROM unnest($1::uuid[], $2::int[], $3::jsonb[]) AS seen (id, claims, claim)
  WHERE n.id = seen.id AND n.claims = seen.claims AND ${amongIds(5)} AND n.state = 'pending'
    AND (n.send_at IS NULL OR n.send_at <= now())
  RETURNING n.id, n.claims, ${ttlMs}`

const extendSql = `
  UPDATE notice n SET due_at = now() + kept.ms * interval '1 millisecond'
  FROM unnest($1::uuid[], $2::int[], $3::float8[]) AS kept (id, claims, ms)
  WHERE n.id = kept.id AND n.claims = kept.claims AND ${amongIds(4)} AND n.state = 'sending'`

// The number of claims grows in both cases. Otherwise the lost statement could still claim the notice afterwards.
const takeBackSql = `
  UPDATE notice n
  SET state = 'pending', claims = n.claims + 1, claim = NULL,
      due_at = CASE WHEN n.state = 'pending' THEN n.due_at ELSE now() END
  FROM unnest($1::uuid[], $2::int[], $3::text[]) AS lost (id, claims, claim_id)
  WHERE n.id = lost.id AND ${amongIds(4)}
    AND (n.state = 'pending' AND n.claims = lost.claims
         OR n.state = 'sending' AND n.claims = lost.claims + 1 AND n.claim ->> 'id' = lost.claim_id)
  RETURNING n.id, n.claims = lost.claims + 2 AS "wasClaimed"`
