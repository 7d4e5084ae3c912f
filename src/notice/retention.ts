/**
 * Retention: a recipient leaves its row after a while, and rows leave the table month by month.
 *
 * A notice id begins with its time, so a month is a range of ids and a partition of its own: dropping
 * it costs nothing, where deleting its rows one by one would cost as much as writing them. Partitions
 * are made ahead, never for the month that is: a row on its way into the default partition would be
 * refused at the moment its own one appears. So rows of the month of installation, and of months
 * before which no worker ran, lie in the default partition, and are deleted one by one.
 *
 * Every worker runs this once an hour; an advisory lock lets one of them work. All of it is steps that
 * may be repeated, none waits long for a lock, and what was not done is done the next time.
 */
import { idFloor } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Database } from '../db/database.ts'

export interface RetentionPolicy {
  recipientMs: number
  rowsMs: number
}

const everyMs = 3_600_000
const monthsAhead = 2
const perStep = 1_000
/** Any fixed number: it names the lock, not a thing. */
const retentionLockId = 7_022_027

export function startRetention(deps: {
  database: Database
  policy: RetentionPolicy
  removeOldKeys: () => Promise<void>
  log: Log
}) {
  const { log } = deps
  let timer: NodeJS.Timeout | undefined
  let isStopped = false
  let pass = Promise.resolve()

  async function run() {
    try {
      await retain({ ...deps, nowMs: Date.now(), isStopped: () => isStopped })
    } catch (error) {
      log.backgroundFailed('retention', error)
    }
    if (!isStopped) schedule(everyMs * (0.75 + Math.random() / 2))
  }

  function schedule(delayMs: number) {
    timer = setTimeout(() => {
      pass = run()
    }, delayMs)
  }

  schedule(Math.random() * 2_000)

  return {
    /** Resolves when the step under way has ended. */
    async stop(): Promise<void> {
      isStopped = true
      clearTimeout(timer)
      await pass
    },
  }
}

/** One pass; nothing happens while another worker is at it. */
export async function retain(deps: {
  database: Database
  policy: RetentionPolicy
  removeOldKeys: () => Promise<void>
  nowMs: number
  isStopped?: () => boolean
}): Promise<void> {
  const { database, policy, removeOldKeys, nowMs, isStopped = () => false } = deps
  const lock = await database.pool.connect()
  try {
    const { rows } = await lock.query('SELECT pg_try_advisory_lock($1) AS taken', [retentionLockId])
    if (!rows[0].taken) return
    try {
      for (let month = 1; month <= monthsAhead; month++) await makePartition(monthOf(nowMs, month))
      await dropPartitions(nowMs - policy.rowsMs)
      await emptyDefault(nowMs - policy.rowsMs)
      await eraseRecipients(nowMs - policy.recipientMs)
      await removeOldKeys()
    } finally {
      await lock.query('SELECT pg_advisory_unlock($1)', [retentionLockId])
    }
  } finally {
    lock.release()
  }

  /** Attached, not created in place: that would stop every reader of the table for a moment. */
  async function makePartition({ name, fromMs, untilMs }: Month): Promise<void> {
    const { rows } = await lock.query('SELECT to_regclass($1) IS NOT NULL AS exists', [name])
    if (rows[0].exists) return
    const from = idFloor(fromMs)
    const until = idFloor(untilMs)
    // Clocks that are ahead may have put rows into the default partition; they stay there.
    const early = await lock.query(
      'SELECT 1 FROM notice_default WHERE id >= $1 AND id < $2 LIMIT 1',
      [from, until],
    )
    if (early.rows.length > 0) return
    await inTransaction(`
      CREATE TABLE ${name} (LIKE notice INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
      ALTER TABLE notice ATTACH PARTITION ${name} FOR VALUES FROM ('${from}') TO ('${until}')`)
  }

  async function dropPartitions(beforeMs: number): Promise<void> {
    const { rows } = await lock.query(
      "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'notice'::regclass",
    )
    for (const { name } of rows) {
      const month = /^notice_(\d{4})_(\d{2})$/.exec(name)
      if (!month) continue
      const endsAtMs = Date.UTC(Number(month[1]), Number(month[2]))
      if (endsAtMs <= beforeMs) await inTransaction(`DROP TABLE ${name}`)
    }
  }

  async function emptyDefault(beforeMs: number): Promise<void> {
    for (let deleted = perStep; deleted === perStep && !isStopped(); ) {
      const rows = await database.query('retention-delete', deleteSql, [idFloor(beforeMs), perStep])
      deleted = rows.length
    }
  }

  /**
   * In the order of ids, going on where the last pass ended. An open notice still needs its recipient:
   * the next pass begins again with the first of those.
   */
  async function eraseRecipients(beforeMs: number): Promise<void> {
    const before = idFloor(beforeMs)
    const [start] = await database.query<{ reached: string }>('retention-from', reachedSql, [])
    let reached = start?.reached ?? idFloor(0)
    /** Everything up to here is done. */
    let done: string | undefined
    while (!isStopped()) {
      const step = await database.query<{ id: string; isOpen: boolean }>(
        'retention-erase',
        eraseSql,
        [reached, before, perStep],
      )
      const last = step.at(-1)
      if (!last) break
      const firstOpen = step.findIndex(({ isOpen }) => isOpen)
      if (firstOpen >= 0) done ??= step[firstOpen - 1]?.id ?? reached
      reached = last.id
    }
    await database.query('retention-reached', keepReachedSql, [done ?? reached])
  }

  async function inTransaction(sql: string): Promise<void> {
    await lock.query('BEGIN')
    try {
      // A lock that is waited for stops everyone behind it; the next pass tries again.
      await lock.query("SET LOCAL lock_timeout = '500ms'")
      await lock.query(sql)
      await lock.query('COMMIT')
    } catch (error) {
      await lock.query('ROLLBACK')
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

const deleteSql = `
  DELETE FROM notice_default WHERE id IN (
    SELECT id FROM notice_default WHERE id < $1 ORDER BY id LIMIT $2)
  RETURNING id`

const reachedSql = `SELECT reached FROM retention WHERE task = 'recipient'`

const keepReachedSql = `
  INSERT INTO retention (task, reached) VALUES ('recipient', $1)
  ON CONFLICT (task) DO UPDATE SET reached = excluded.reached`

/** The ids stepped over, in order; those not open have lost their recipient. */
const eraseSql = `
  WITH step AS (
    SELECT id, due_at IS NOT NULL AS is_open FROM notice
    WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3
  ), erased AS (
    UPDATE notice SET recipient = NULL FROM step
    WHERE notice.id = step.id AND NOT step.is_open AND notice.recipient IS NOT NULL
  )
  SELECT id, is_open AS "isOpen" FROM step ORDER BY id`
