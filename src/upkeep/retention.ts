/**
 * Retention: recipients are erased from rows after some days, and rows are deleted week by week.
 *
 * Every worker runs this once an hour, and an advisory lock lets only one of them work. Only the clock of PostgreSQL counts.
 * The pass has its own connection, because some steps last longer than any send may. Each step can be repeated and fails
 * alone: the error is logged, other steps go on, and the next pass tries the step again.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClientBase, QueryConfig, QueryResultRow } from 'pg'
import type { Log } from '../base/log.ts'
import { type Repetition, repeat } from '../base/repeat.ts'
import type { Database } from '../storage/database.ts'
import {
  deleteOldDecisions,
  deleteOldOperations,
  deleteOldRows,
  deleteOldSuppressions,
  deleteOldVerifications,
  eraseRecipients,
  type Pass,
} from './erase.ts'
import {
  createPartitions,
  decisions,
  notices,
  type Partitioned,
  spansToMake,
} from './partitions.ts'

export interface RetentionPolicy {
  recipientMs: number
  rowsMs: number
  decisionsMs: number
  suppressionsMs: number
}

const everyMs = 3_600_000
/** Pause after a pass that could not begin. */
const againInMs = 60_000
const statementTimeoutMs = 60_000
/** The name of the lock; any fixed number. */
const retentionLockId = 7_022_027

export interface RetentionDeps {
  database: Database
  policy: RetentionPolicy
  /** Removes some expired Idempotency-Keys and returns their number. */
  removeOldKeys: () => Promise<number>
  log: Pick<Log, 'backgroundFailed'>
}

export function startRetention(deps: RetentionDeps): Repetition {
  return repeat(async (signal) => {
    try {
      await retain({ ...deps, signal })
      return everyMs
    } catch (error) {
      if (!signal.aborted) deps.log.backgroundFailed('retention', error)
      return againInMs
    }
  }, 2_000)
}

/** Runs one pass, unless another worker runs one. Throws if the pass could not begin. */
export async function retain(deps: RetentionDeps & { signal?: AbortSignal }): Promise<void> {
  const { database, signal } = deps
  await database.onOwnConnection({ statementTimeoutMs, signal }, async (client) => {
    // A frozen process must not block other workers for ever.
    await client.query(`SET idle_session_timeout = '10min'`)
    const { rows } = await client.query(beginSql, [retentionLockId])
    const { isTaken, nowMs } = rows[0]
    if (isTaken) await retainOn(client, nowMs, deps)
  })
}

async function retainOn(
  client: ClientBase,
  nowMs: number,
  { policy, removeOldKeys, log, signal }: RetentionDeps & { signal?: AbortSignal },
): Promise<void> {
  const isStopped = () => signal?.aborted ?? false
  const pass: Pass = {
    query: <Row extends QueryResultRow>(text: string | QueryConfig, values?: unknown[]) =>
      gently(() => client.query<Row>(text, values)),
    nowMs,
  }

  await keepPartitions(notices, policy.rowsMs)
  await keepPartitions(decisions, policy.decisionsMs)
  await alone('old_rows', 'notices', () => deleteOldRows(pass, policy.rowsMs))
  await alone('old_rows', 'decisions', () => deleteOldDecisions(pass, policy.decisionsMs))
  await alone('old_rows', 'operations', () => deleteOldOperations(pass, policy.rowsMs))
  await alone('old_rows', 'verifications', () => deleteOldVerifications(pass, policy.recipientMs))
  await alone('old_rows', 'suppressions', () => deleteOldSuppressions(pass, policy.suppressionsMs))
  await alone('erasure', 'recipients', () => eraseRecipients(pass, policy.recipientMs))
  await alone('old_rows', 'idempotency keys', async () => {
    while (!isStopped() && (await gently(removeOldKeys)) > 0);
  })

  async function keepPartitions(of: Partitioned, keptMs: number): Promise<void> {
    const partitions = createPartitions(of, client, signal)
    const spans = spansToMake(of, nowMs)
    await alone('partitions', 'checks left over', () => partitions.dropLeftOverChecks(spans))
    for (const span of spans) await alone('partitions', span.name, () => partitions.make(span))
    await alone('old_rows', 'partitions', async () => {
      for (const name of await partitions.endedBefore(nowMs - keptMs)) {
        await alone('old_rows', name, () => partitions.drop(name))
      }
    })
  }

  async function gently<Result>(run: () => Promise<Result>): Promise<Result> {
    const startMs = performance.now()
    const result = await run()
    await sleep(performance.now() - startMs, undefined, signal && { signal })
    return result
  }

  async function alone(
    task: 'partitions' | 'old_rows' | 'erasure',
    part: string,
    step: () => Promise<void>,
  ): Promise<void> {
    if (isStopped()) return
    try {
      await step()
    } catch (error) {
      if (!isStopped()) log.backgroundFailed(task, error, part)
    }
  }
}

/** The lock ends with its connection. Each schema of a database has its own lock; `public` keeps the lock of older versions. */
const beginSql = `
  SELECT pg_try_advisory_lock($1::bigint + CASE current_schema() WHEN 'public' THEN 0
      ELSE hashtext(current_schema())::bigint << 32 END) AS "isTaken", floor(extract(epoch FROM now()) * 1000)::float8 AS "nowMs"`
