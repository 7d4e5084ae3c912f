/**
 * Retention: a recipient leaves its row after a while, and rows leave the table month by month.
 *
 * A notice id begins with its time, so a month is a range of ids and a partition of its own: dropping
 * it costs nothing, where deleting its rows one by one would cost as much as writing them. Partitions
 * are made ahead, never for the month that is: a row on its way into the default partition would be
 * refused at the moment its own one appears. So rows of the month of installation, and of months
 * before which no worker ran, lie in the default partition, and are deleted in small batches.
 *
 * The time is PostgreSQL's alone, and no open row is ever deleted, dropped or emptied, however old its
 * id says it is: a machine's clock may be a year off.
 *
 * Every worker runs this once an hour; an advisory lock lets one of them work. It has a connection of
 * its own, because some steps last longer than any send may. Each step may be repeated and fails alone:
 * it is logged, the others go on, and what was not done is done the next time. A lock that would stop
 * sends is waited for a moment only, and held by statements that look at no rows.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { idFloor } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { type Repetition, repeat } from '../base/repeat.ts'
import type { Database } from '../db/database.ts'

export interface RetentionPolicy {
  recipientMs: number
  rowsMs: number
}

const everyMs = 3_600_000
/** After a pass that did not even begin. */
const againInMs = 60_000
const monthsAhead = 2
/** A month that is nearer stays in the default partition: its partition must be there before its first row. */
const leastAheadMs = 86_400_000
const perStep = 1_000
const statementTimeoutMs = 60_000
/** Any fixed number: it names the lock, not a thing. */
const retentionLockId = 7_022_027

interface RetentionDeps {
  database: Database
  policy: RetentionPolicy
  /** Removes some Idempotency-Keys past their time; how many. */
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

/** One pass; nothing happens while another worker is at it. Throws when it could not begin. */
export async function retain(deps: RetentionDeps & { signal?: AbortSignal }): Promise<void> {
  const { database, signal } = deps
  await database.onOwnConnection({ statementTimeoutMs, signal }, async (client) => {
    // A process that freezes must not keep the others away for ever.
    await client.query(`SET idle_session_timeout = '10min'`)
    const { rows } = await client.query(beginSql, [retentionLockId])
    const { isTaken, nowMs } = rows[0]
    if (isTaken) await retainOn(client, nowMs, deps)
  })
}

type Client = Parameters<Parameters<Database['onOwnConnection']>[1]>[0]

async function retainOn(
  client: Client,
  nowMs: number,
  { policy, removeOldKeys, log, signal }: RetentionDeps & { signal?: AbortSignal },
): Promise<void> {
  const isStopped = () => signal?.aborted ?? false
  const months = Array.from({ length: monthsAhead }, (_, index) =>
    monthOf(nowMs, index + 1),
  ).filter(({ fromMs }) => fromMs - nowMs >= leastAheadMs)

  await alone('checks left over', dropLeftOverChecks)
  for (const month of months) await alone(`partition ${month.name}`, () => makePartition(month))
  await alone('old months', dropOldMonths)
  await alone('old rows', emptyDefault)
  await alone('recipients', eraseRecipients)
  await alone('idempotency keys', async () => {
    while (!isStopped() && (await removeOldKeys()) > 0);
  })

  async function alone(what: string, step: () => Promise<void>): Promise<void> {
    if (isStopped()) return
    try {
      await step()
    } catch (error) {
      if (!isStopped()) log.backgroundFailed(`retention, ${what}`, error)
    }
  }

  /**
   * Attached, not created in place: that would stop every reader of the table for a moment. Attaching
   * looks through the default partition, with all sends waiting, unless a checked constraint says that
   * no row of the month is there. So that comes first: it is checked beside all work, and refuses rows
   * of that month until the partition takes them. Hence the distance: there are none yet.
   */
  async function makePartition({ name, fromMs, untilMs }: Month): Promise<void> {
    if ((await partitions()).includes(name)) return
    const from = idFloor(fromMs)
    const until = idFloor(untilMs)
    // PostgreSQL's clock was ahead once: they stay there.
    const early = await client.query(
      'SELECT 1 FROM notice_default WHERE id >= $1 AND id < $2 LIMIT 1',
      [from, until],
    )
    if (early.rows.length > 0) return
    const check = `${name}${checkSuffix}`
    if (!(await checks()).includes(check)) {
      await exclusively(
        ['notice_default'],
        `ALTER TABLE notice_default ADD CONSTRAINT ${check} CHECK (id < '${from}' OR id >= '${until}') NOT VALID`,
      )
    }
    await inTransaction(`
      SET LOCAL statement_timeout = '10min';
      SET LOCAL lock_timeout = '5s';
      ALTER TABLE notice_default VALIDATE CONSTRAINT ${check}`)
    await exclusively(
      ['notice_default'],
      `CREATE TABLE ${name} (LIKE notice INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
       ALTER TABLE notice ATTACH PARTITION ${name} FOR VALUES FROM ('${from}') TO ('${until}');
       ALTER TABLE notice_default DROP CONSTRAINT ${check}`,
    )
  }

  /** Those of a pass that was cut short: their month must find a place when it comes. */
  async function dropLeftOverChecks(): Promise<void> {
    const stillWanted = months.map(({ name }) => `${name}${checkSuffix}`)
    for (const check of await checks()) {
      if (!stillWanted.includes(check)) await dropCheck(check)
    }
  }

  async function dropCheck(check: string): Promise<void> {
    await exclusively(['notice_default'], `ALTER TABLE notice_default DROP CONSTRAINT ${check}`)
  }

  async function dropOldMonths(): Promise<void> {
    for (const name of await partitions()) {
      const month = /^notice_(\d{4})_(\d{2})$/.exec(name)
      if (!month) continue
      const endsAtMs = Date.UTC(Number(month[1]), Number(month[2]))
      if (endsAtMs > nowMs - policy.rowsMs) continue
      // Looked for under the lock, so that no row comes in between; open rows are in an index of their own.
      await alone(`month ${name}`, () =>
        exclusively(
          ['notice_default', name],
          `LOCK TABLE ONLY notice IN ACCESS EXCLUSIVE MODE;
           DO $$ BEGIN
             IF NOT EXISTS (SELECT FROM ${name} WHERE due_at IS NOT NULL) THEN DROP TABLE ${name}; END IF;
           END $$`,
        ),
      )
    }
  }

  async function emptyDefault(): Promise<void> {
    const before = idFloor(nowMs - policy.rowsMs)
    for (let from: string | undefined = idFloor(0); from && !isStopped(); ) {
      const values: unknown[] = [from, before, perStep, policy.rowsMs]
      const step = await client.query<{ reached: string }>({
        name: 'retention-delete',
        text: deleteSql,
        values,
      })
      from = step.rows[0]?.reached
    }
  }

  /**
   * In the order of ids, going on where the last pass ended. An open notice still needs its recipient,
   * and so does one that is younger than its id: the next pass begins again with the first of those.
   */
  async function eraseRecipients(): Promise<void> {
    const before = idFloor(nowMs - policy.recipientMs)
    const start = await client.query<{ reached: string }>(reachedSql)
    let reached = start.rows[0]?.reached ?? idFloor(0)
    // Recipients are kept longer than before, or PostgreSQL's clock was ahead: what is between was left out.
    if (reached >= before) reached = idFloor(0)
    /** Everything up to here is done. */
    let done: string | undefined
    while (!isStopped()) {
      const { rows: step } = await client.query<{ id: string; isKept: boolean }>({
        name: 'retention-erase',
        text: eraseSql,
        values: [reached, before, perStep, policy.recipientMs],
      })
      const last = step.at(-1)
      if (!last) break
      const firstKept = step.findIndex(({ isKept }) => isKept)
      if (firstKept >= 0) done ??= step[firstKept - 1]?.id ?? reached
      reached = last.id
    }
    await client.query(keepReachedSql, [done ?? reached])
  }

  async function partitions(): Promise<string[]> {
    const { rows } = await client.query<{ name: string }>(partitionsSql)
    return rows.map(({ name }) => name)
  }

  async function checks(): Promise<string[]> {
    const { rows } = await client.query<{ name: string }>(checksSql, [`${checkSuffix}$`])
    return rows.map(({ name }) => name)
  }

  /**
   * For statements under locks that stop sends: each has a second, and a lock that is waited for stops
   * those behind it too. A vacuum would be in the way for longer; it yields to the first lock, which
   * stops nothing.
   */
  async function exclusively(tables: readonly string[], statements: string): Promise<void> {
    for (let triesLeft = 2; ; triesLeft--) {
      try {
        return await inTransaction(`
          SET LOCAL lock_timeout = '5s';
          LOCK TABLE ONLY ${tables.join(', ONLY ')} IN SHARE UPDATE EXCLUSIVE MODE;
          SET LOCAL lock_timeout = '250ms';
          SET LOCAL statement_timeout = '1s';
          ${statements}`)
      } catch (error) {
        const isLocked = (error as { code?: string }).code === '55P03'
        if (!isLocked || triesLeft === 0) throw error
        await sleep(1_000, undefined, signal ? { signal } : {})
      }
    }
  }

  /** In one message: a process that freezes between two of them would keep the locks. */
  async function inTransaction(statements: string): Promise<void> {
    try {
      await client.query(`BEGIN; ${statements}; COMMIT`)
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    }
  }
}

interface Month {
  name: string
  fromMs: number
  untilMs: number
}

function monthOf(nowMs: number, ahead: number): Month {
  const now = new Date(nowMs)
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth() + ahead]
  const from = new Date(Date.UTC(year, month))
  const name = `notice_${from.toISOString().slice(0, 7).replace('-', '_')}`
  return { name, fromMs: from.getTime(), untilMs: Date.UTC(year, month + 1) }
}

/** Behind a partition's name: the constraint by which its rows are known not to be in the default one. */
const checkSuffix = '_apart'

/** The lock ends with its connection. */
const beginSql = `
  SELECT pg_try_advisory_lock($1) AS "isTaken", floor(extract(epoch FROM now()) * 1000)::float8 AS "nowMs"`

const partitionsSql = `
  SELECT relname AS name FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
  WHERE inhparent = 'notice'::regclass`

const checksSql = `
  SELECT conname AS name FROM pg_constraint WHERE conrelid = 'notice_default'::regclass AND conname ~ $1`

/** How far it came; no row when there was nothing left to look at. */
const deleteSql = `
  WITH step AS (
    SELECT id FROM notice_default WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3
  ), gone AS (
    DELETE FROM notice_default AS old USING step
    WHERE old.id = step.id AND old.due_at IS NULL
      AND old.created_at < now() - $4 * interval '1 millisecond'
  )
  SELECT id AS reached FROM step ORDER BY id DESC LIMIT 1`

const reachedSql = `SELECT reached FROM retention WHERE task = 'recipient'`

const keepReachedSql = `
  INSERT INTO retention (task, reached) VALUES ('recipient', $1)
  ON CONFLICT (task) DO UPDATE SET reached = excluded.reached`

/** The ids stepped over, in order; those not kept have lost their recipient. */
const eraseSql = `
  WITH step AS (
    SELECT id, due_at IS NOT NULL OR created_at >= now() - $4 * interval '1 millisecond' AS is_kept
    FROM notice WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3
  ), erased AS (
    UPDATE notice SET recipient = NULL FROM step
    WHERE notice.id = step.id AND NOT step.is_kept AND notice.recipient IS NOT NULL
  )
  SELECT id, is_kept AS "isKept" FROM step ORDER BY id`
