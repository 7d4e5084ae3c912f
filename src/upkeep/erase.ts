/**
 * Deletes data row by row: notices and decisions of the default partitions, recipients, and operations of support.
 *
 * It works in small steps along the ids. So no statement locks many rows for long, and the steps of an interrupted pass
 * are kept. An open row is never deleted or emptied, however old its id is: the clock of a machine may be a year off.
 */
import type { QueryConfig, QueryResult, QueryResultRow } from 'pg'
import { idFloor } from '../base/ids.ts'

export interface Pass {
  /** Runs a statement, and rests for as long as it took, so that sends are not disturbed. Rejects when the pass must stop. */
  query<Row extends QueryResultRow>(
    statement: string | QueryConfig,
    values?: unknown[],
  ): Promise<QueryResult<Row>>
  /** Time of PostgreSQL at the beginning of the pass. */
  readonly nowMs: number
}

const perStep = 1_000
/** A block of recipients is erased in this number of steps. A page has about as many rows. */
const turns = 20

/** Deletes rows of the default partition. Other partitions are dropped as a whole. */
export async function deleteOldRows({ query, nowMs }: Pass, rowsMs: number): Promise<void> {
  const before = idFloor(nowMs - rowsMs)
  for (let from: string | undefined = idFloor(0); from; ) {
    const values: unknown[] = [from, before, perStep, rowsMs]
    const step = await query<{ reached: string }>({
      name: 'retention-delete',
      text: deleteSql,
      values,
    })
    from = step.rows[0]?.reached
  }
}

/** Deletes operations of support after their notices are gone. They contain only the hash of a recipient. */
export const deleteOldOperations = (pass: Pass, rowsMs: number) =>
  deleteByAge(pass, 'operation', rowsMs)

/** Deletes suppressions. They contain only the hash of a recipient. */
export const deleteOldSuppressions = (pass: Pass, keptMs: number) =>
  deleteByAge(pass, 'suppression', keptMs)

/** Deletes verifications. They contain recipients, so they go when notices lose theirs. */
export const deleteOldVerifications = (pass: Pass, recipientMs: number) =>
  deleteByAge(pass, 'verification', recipientMs, 'ends_at')

/** Deletes decisions of the default partition. Other partitions are dropped as a whole. */
export const deleteOldDecisions = (pass: Pass, decisionsMs: number) =>
  deleteByAge(pass, 'decision_default', decisionsMs)

async function deleteByAge(
  { query }: Pass,
  table: string,
  ageMs: number,
  column = 'at',
): Promise<void> {
  const text = oldSql(table, column)
  const step = { name: `retention-${table}`, text, values: [ageMs, perStep] }
  while ((await query(step)).rowCount === perStep);
}

/**
 * Erases recipients in the order of ids, from the end of the last pass. An open notice still needs its recipient, and so
 * does a notice that is younger than its id. The next pass begins with the first of those.
 *
 * An update writes the row again. If its page has room, no index changes, and PostgreSQL's log grows by 0.5 kB instead of 25. Some
 * twenty neighbours share a page, which has room for one of them (partitions.ts). So a block is erased in turns, each with
 * rows of different pages. PostgreSQL frees the place of the old row before the next turn.
 */
export async function eraseRecipients({ query, nowMs }: Pass, recipientMs: number): Promise<void> {
  const before = idFloor(nowMs - recipientMs)
  const start = await query<{ reached: string }>(reachedSql)
  let reached = start.rows[0]?.reached ?? idFloor(0)
  // The retention has become longer, or the clock of PostgreSQL was ahead. So the rows in between are not erased yet.
  if (reached >= before) reached = idFloor(0)
  /** The id up to which all rows are done. */
  let done: string | undefined
  for (;;) {
    const values: unknown[] = [reached, before, perStep * turns, recipientMs]
    const { rows: block } = await query<{ id: string; isKept: boolean }>(blockSql, values)
    const old = block.filter(({ isKept }) => !isKept).map(({ id }) => id)
    for (let turn = 0; turn < Math.min(turns, old.length); turn++) {
      // The statement has no name. So PostgreSQL plans it for these ids and reads only their partitions.
      await query(eraseSql, [old.filter((_, index) => index % turns === turn)])
    }
    const firstKept = block.findIndex(({ isKept }) => isKept)
    if (firstKept >= 0) done ??= block[firstKept - 1]?.id ?? reached
    const last = block.at(-1)
    reached = last?.id ?? reached
    await query(keepReachedSql, [done ?? reached])
    if (!last) return
  }
}

/** Returns the last id of the step; no row if there was nothing left. */
const deleteSql = `
  WITH step AS (
    SELECT id FROM notice_default WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3
  ), gone AS (
    DELETE FROM notice_default AS old USING step
    WHERE old.id = step.id AND old.due_at IS NULL
      AND old.created_at < now() - $4 * interval '1 millisecond'
  )
  SELECT id AS reached FROM step ORDER BY id DESC LIMIT 1`

const oldSql = (table: string, column: string) => `
  DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM ${table} WHERE ${column} < now() - $1 * interval '1 millisecond' ORDER BY ${column} LIMIT $2
  ))`

const reachedSql = `SELECT reached FROM retention WHERE task = 'recipient'`

const keepReachedSql = `
  INSERT INTO retention (task, reached) VALUES ('recipient', $1)
  ON CONFLICT (task) DO UPDATE SET reached = excluded.reached`

const blockSql = `
  SELECT id, due_at IS NOT NULL OR created_at >= now() - $4 * interval '1 millisecond' AS "isKept"
  FROM notice WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3`

/** A notice that has ended never opens again, so the rows that `blockSql` found are still ended. */
const eraseSql = `
  UPDATE notice SET recipient = NULL
  WHERE id = ANY($1::uuid[]) AND due_at IS NULL AND recipient IS NOT NULL`
