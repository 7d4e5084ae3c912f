/**
 * Deletes data row by row: notices of the default partition, recipients, and operations of support.
 *
 * It works in small steps along the ids. So no statement locks many rows for long, and the steps of an interrupted pass
 * are kept. An open row is never deleted or emptied, however old its id is: the clock of a machine may be a year off.
 */
import type { ClientBase } from 'pg'
import { idFloor } from '../base/ids.ts'

interface Pass {
  readonly client: ClientBase
  /** Time of PostgreSQL at the beginning of the pass. */
  readonly nowMs: number
  readonly isStopped: () => boolean
}

const perStep = 1_000

/** Deletes rows of the default partition. Other partitions are dropped as a whole. */
export async function deleteOldRows(
  { client, nowMs, isStopped }: Pass,
  rowsMs: number,
): Promise<void> {
  const before = idFloor(nowMs - rowsMs)
  for (let from: string | undefined = idFloor(0); from && !isStopped(); ) {
    const values: unknown[] = [from, before, perStep, rowsMs]
    const step = await client.query<{ reached: string }>({
      name: 'retention-delete',
      text: deleteSql,
      values,
    })
    from = step.rows[0]?.reached
  }
}

/** Deletes operations of support after their notices are gone. They contain only the hash of a recipient. */
export async function deleteOldOperations(
  { client, isStopped }: Pass,
  rowsMs: number,
): Promise<void> {
  const step = { name: 'retention-operations', text: operationsSql, values: [rowsMs, perStep] }
  while (!isStopped() && (await client.query(step)).rowCount === perStep);
}

/**
 * Erases recipients in the order of ids, from the end of the last pass. An open notice still needs its recipient, and so
 * does a notice that is younger than its id. The next pass begins with the first of those.
 */
export async function eraseRecipients(
  { client, nowMs, isStopped }: Pass,
  recipientMs: number,
): Promise<void> {
  const before = idFloor(nowMs - recipientMs)
  const start = await client.query<{ reached: string }>(reachedSql)
  let reached = start.rows[0]?.reached ?? idFloor(0)
  // The retention is longer now, or the clock of PostgreSQL was ahead: rows between were skipped.
  if (reached >= before) reached = idFloor(0)
  /** The id up to which all rows are done. */
  let done: string | undefined
  while (!isStopped()) {
    const { rows: step } = await client.query<{ id: string; isKept: boolean }>({
      name: 'retention-erase',
      text: eraseSql,
      values: [reached, before, perStep, recipientMs],
    })
    const last = step.at(-1)
    if (!last) break
    const firstKept = step.findIndex(({ isKept }) => isKept)
    if (firstKept >= 0) done ??= step[firstKept - 1]?.id ?? reached
    reached = last.id
  }
  await client.query(keepReachedSql, [done ?? reached])
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

const operationsSql = `
  DELETE FROM operation WHERE id IN (
    SELECT id FROM operation WHERE at < now() - $1 * interval '1 millisecond' ORDER BY at LIMIT $2
  )`

const reachedSql = `SELECT reached FROM retention WHERE task = 'recipient'`

const keepReachedSql = `
  INSERT INTO retention (task, reached) VALUES ('recipient', $1)
  ON CONFLICT (task) DO UPDATE SET reached = excluded.reached`

/** Returns the ids of the step in order. Rows that are not kept have lost their recipient. */
const eraseSql = `
  WITH step AS (
    SELECT id, due_at IS NOT NULL OR created_at >= now() - $4 * interval '1 millisecond' AS is_kept
    FROM notice WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3
  ), erased AS (
    UPDATE notice SET recipient = NULL FROM step
    WHERE notice.id = step.id AND NOT step.is_kept AND notice.recipient IS NOT NULL
  )
  SELECT id, is_kept AS "isKept" FROM step ORDER BY id`
