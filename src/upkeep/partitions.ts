/**
 * Partitions of the notice table: one per month, made ahead, and dropped when all its rows are old. Sends go on meanwhile.
 *
 * A notice id begins with its time, so a month is a range of ids. Dropping a partition is cheap; deleting its rows would
 * cost as much as writing them. A partition is never made for the current month: a row on its way into the default
 * partition would be refused when the new partition appears. So the default partition has the rows of the month of
 * installation, and of months before which no worker ran.
 *
 * Statements wait only a moment for a lock that stops sends, and read no rows while they have it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClientBase } from 'pg'
import { idFloor } from '../base/ids.ts'

const monthsAhead = 2
/** A month that begins sooner gets no partition, because rows may already be in the default one. */
const leastAheadMs = 86_400_000

export interface Month {
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

/** The months that should have a partition by now. */
export function monthsToMake(nowMs: number): Month[] {
  const months = Array.from({ length: monthsAhead }, (_, index) => monthOf(nowMs, index + 1))
  return months.filter(({ fromMs }) => fromMs - nowMs >= leastAheadMs)
}

export function createPartitions(client: ClientBase, signal?: AbortSignal) {
  /**
   * The partition is attached, because creating it in place would stop every reader of the table. Attaching scans the
   * default partition while all sends wait, unless a validated constraint proves that it has no row of the month. So the
   * constraint is made first, and validated beside other work. It refuses rows of that month until the partition accepts
   * them. The month is far enough ahead that it has no rows yet.
   */
  async function make({ name, fromMs, untilMs }: Month): Promise<void> {
    if ((await partitions()).includes(name)) return
    const from = idFloor(fromMs)
    const until = idFloor(untilMs)
    // The clock of PostgreSQL was ahead once: these rows stay in the default partition.
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

  /** Drops constraints of an interrupted pass. Otherwise they would refuse rows when their month begins. */
  async function dropLeftOverChecks(months: readonly Month[]): Promise<void> {
    const stillWanted = months.map(({ name }) => `${name}${checkSuffix}`)
    for (const check of await checks()) {
      if (stillWanted.includes(check)) continue
      await exclusively(['notice_default'], `ALTER TABLE notice_default DROP CONSTRAINT ${check}`)
    }
  }

  /** Names of the months that had ended at that time. */
  async function endedBefore(timeMs: number): Promise<string[]> {
    return (await partitions()).filter((name) => {
      const month = /^notice_(\d{4})_(\d{2})$/.exec(name)
      if (!month) return false
      const endsAtMs = Date.UTC(Number(month[1]), Number(month[2]))
      return endsAtMs <= timeMs
    })
  }

  /**
   * Drops the partition unless it has an open row. The check is under the lock, so that no new row can appear after it. It
   * is fast, because open rows have their own index.
   */
  async function drop(name: string): Promise<void> {
    await exclusively(
      ['notice_default', name],
      `LOCK TABLE ONLY notice IN ACCESS EXCLUSIVE MODE;
       DO $$ BEGIN
         IF NOT EXISTS (SELECT FROM ${name} WHERE due_at IS NOT NULL) THEN DROP TABLE ${name}; END IF;
       END $$`,
    )
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
   * Runs statements under locks that stop sends. Each has a second, because a lock that waits also stops the statements
   * behind it. A vacuum would block for longer. It yields to the first lock, which stops no sends.
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

  /** All statements are one message, because a process that freezes between two messages would keep the locks. */
  async function inTransaction(statements: string): Promise<void> {
    try {
      await client.query(`BEGIN; ${statements}; COMMIT`)
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    }
  }

  return { make, dropLeftOverChecks, endedBefore, drop }
}

/** Suffix of the constraint that keeps rows of a partition out of the default partition. */
const checkSuffix = '_apart'

const partitionsSql = `
  SELECT relname AS name FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
  WHERE inhparent = 'notice'::regclass`

const checksSql = `
  SELECT conname AS name FROM pg_constraint WHERE conrelid = 'notice_default'::regclass AND conname ~ $1`
