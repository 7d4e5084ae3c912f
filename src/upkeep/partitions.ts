/**
 * Partitions of the notices and of the decisions: one per week, made ahead, and dropped when all its rows are old. Sends go
 * on meanwhile.
 *
 * A notice id begins with its time, so a week is a range of ids. A decision has its time. Dropping a partition is cheap;
 * deleting its rows would cost as much as writing them. A week is short enough that the indexes of the newest partition
 * stay in memory, and long enough that a look-up over half a year opens few partitions (docs/performance.md).
 *
 * A partition is never made for the current day: a row on its way into the default partition would be refused when the new
 * partition appears. So the default partition has the rows of the first two days, and of weeks before which no worker ran.
 *
 * Statements wait only a moment for a lock that stops sends, and read no rows while they have it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClientBase } from 'pg'
import { idFloor } from '../base/ids.ts'

const dayMs = 86_400_000
const weekMs = 7 * dayMs
const weeksAhead = 3
/** A day that begins sooner gets no partition, because rows may already be in the default one. */
const leastAheadMs = dayMs
/** 1970 began on a Thursday, so its first Monday was four days later. */
const firstMondayMs = 4 * dayMs

/** A table with partitions. */
export interface Partitioned {
  table: 'notice' | 'decision'
  /** The column whose value begins with the time. */
  column: string
  /** The lowest value of this time. Values sort in the same order as their texts. */
  floor: (timeMs: number) => string
  storage: string
  /** A condition of rows that are never dropped. It has an index. */
  open: string
}

/**
 * `fillfactor` leaves room in each page, so that erasing a recipient changes no index (erase.ts). Vacuum starts when a tenth
 * of the rows is dead. By PostgreSQL's default of a fifth, a week of millions of rows would keep twice as many dead rows.
 */
export const notices: Partitioned = {
  ...{ table: 'notice', column: 'id', floor: idFloor, open: 'due_at IS NOT NULL' },
  storage: 'fillfactor = 90, autovacuum_vacuum_scale_factor = 0.1',
}

/** Rows are only added. */
export const decisions: Partitioned = {
  ...{ table: 'decision', column: 'at', storage: 'fillfactor = 100', open: 'false' },
  floor: (timeMs) => `${new Date(timeMs).toISOString().slice(0, 19).replace('T', ' ')}+00`,
}

/** The time of one partition. `untilMs` is the first moment of the next one. */
export interface Span {
  name: string
  fromMs: number
  untilMs: number
}

/** The spans that should have a partition by now: the rest of this week, and weeks from Monday to Sunday in UTC. */
export function spansToMake({ table }: Partitioned, nowMs: number): Span[] {
  const firstMs = Math.ceil((nowMs + leastAheadMs) / dayMs) * dayMs
  const mondayMs = firstMs - ((firstMs - firstMondayMs) % weekMs)
  return Array.from({ length: weeksAhead }, (_, index) => {
    const fromMs = Math.max(firstMs, mondayMs + index * weekMs)
    const name = `${table}_${new Date(fromMs).toISOString().slice(0, 10).replaceAll('-', '_')}`
    return { name, fromMs, untilMs: mondayMs + (index + 1) * weekMs }
  })
}

export function createPartitions(
  { table, column, floor, storage, open }: Partitioned,
  client: ClientBase,
  signal?: AbortSignal,
) {
  const rest = `${table}_default`

  /**
   * The partition is attached, because creating it in place would stop every reader of the table. Attaching scans the
   * default partition while all sends wait, unless a validated constraint proves that it has no row of the span. So the
   * constraint is made first, and validated beside other work. It refuses rows of that span until the partition accepts
   * them. The span is far enough ahead that it has no rows yet.
   */
  async function make({ name, fromMs, untilMs }: Span): Promise<void> {
    const [from, until] = [floor(fromMs), floor(untilMs)]
    // An earlier pass made this partition, or another version of Postern made a longer one.
    if ((await partitions()).some((made) => made.from < until && from < made.until)) return
    // These rows are from a time when the clock of PostgreSQL was ahead. They stay in the default partition.
    const early = await client.query(
      `SELECT 1 FROM ${rest} WHERE ${column} >= $1 AND ${column} < $2 LIMIT 1`,
      [from, until],
    )
    if (early.rows.length > 0) return
    const check = `${name}${checkSuffix}`
    if (!(await checks()).includes(check)) {
      await exclusively(
        [rest],
        `ALTER TABLE ${rest} ADD CONSTRAINT ${check}
         CHECK (${column} < '${from}' OR ${column} >= '${until}') NOT VALID`,
      )
    }
    await inTransaction(`
      SET LOCAL statement_timeout = '10min';
      SET LOCAL lock_timeout = '5s';
      ALTER TABLE ${rest} VALIDATE CONSTRAINT ${check}`)
    await exclusively(
      [rest],
      `CREATE TABLE ${name} (LIKE ${table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) WITH (${storage});
       ALTER TABLE ${table} ATTACH PARTITION ${name} FOR VALUES FROM ('${from}') TO ('${until}');
       ALTER TABLE ${rest} DROP CONSTRAINT ${check}`,
    )
  }

  /** Drops constraints of an interrupted pass. Otherwise they would refuse rows when their span begins. */
  async function dropLeftOverChecks(spans: readonly Span[]): Promise<void> {
    const stillWanted = spans.map(({ name }) => `${name}${checkSuffix}`)
    for (const check of await checks()) {
      if (stillWanted.includes(check)) continue
      await exclusively([rest], `ALTER TABLE ${rest} DROP CONSTRAINT ${check}`)
    }
  }

  /** Names of the partitions whose span had ended at that time. */
  async function endedBefore(timeMs: number): Promise<string[]> {
    const time = floor(timeMs)
    return (await partitions()).filter(({ until }) => until <= time).map(({ name }) => name)
  }

  /**
   * Drops the partition unless it has an open row. The check is under the lock, so that no new row can appear after it.
   * It is fast, because open rows have an index.
   */
  async function drop(name: string): Promise<void> {
    await exclusively(
      [rest, name],
      `LOCK TABLE ONLY ${table} IN ACCESS EXCLUSIVE MODE;
       DO $$ BEGIN
         IF NOT EXISTS (SELECT FROM ${name} WHERE ${open}) THEN DROP TABLE ${name}; END IF;
       END $$`,
    )
  }

  /** All partitions but the default one. */
  async function partitions(): Promise<{ name: string; from: string; until: string }[]> {
    const { rows } = await client.query(partitionsSql, [table])
    return rows
  }

  async function checks(): Promise<string[]> {
    const { rows } = await client.query<{ name: string }>(checksSql, [rest, `${checkSuffix}$`])
    return rows.map(({ name }) => name)
  }

  /**
   * Runs statements under locks that stop sends. Each may take a second at most, because a lock that waits also stops
   * the statements behind it. A vacuum would block for longer. It yields to the first lock, which stops no sends.
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

  /** Sends all statements in one message. A process that freezes between two messages would keep the locks. */
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
  SELECT inhrelid::regclass::text AS name, bounds[1] AS from, bounds[2] AS until
  FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid,
       LATERAL (SELECT regexp_match(pg_get_expr(relpartbound, inhrelid),
                       $$FROM \\('(.*)'\\) TO \\('(.*)'\\)$$) AS bounds) AS spans
  WHERE inhparent = $1::regclass AND bounds IS NOT NULL`

const checksSql = `
  SELECT conname AS name FROM pg_constraint WHERE conrelid = $1::regclass AND conname ~ $2`
