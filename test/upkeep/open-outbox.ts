import { randomUUID } from 'node:crypto'
import type { eventTypes } from '../../src/base/event-types.ts'
import { createLog } from '../../src/base/log.ts'
import { createEventOutbox, type EventOutbox } from '../../src/notice/event-outbox.ts'
import { type Receiver, startEventDispatcher } from '../../src/upkeep/event-dispatcher.ts'
import { databaseAt, moveDatabaseClock, testDatabase, useMovedClock } from '../tools/database.ts'
import { testMetrics } from '../tools/metrics.ts'
import { releaseLater } from '../tools/release.ts'

export const secret = 'a secret of the dispatcher tests'

/**
 * An outbox in a separate database, and dispatchers over it. With `isClockFrozen`, an event that is put off stays put
 * off: PostgreSQL's clock stands still, a minute ahead of the times of new events.
 */
export async function openOutbox(options: { pollMs?: number; isClockFrozen?: boolean } = {}) {
  const { isClockFrozen, ...settings } = options
  const { url, pool } = await testDatabase()
  if (isClockFrozen) {
    await moveDatabaseClock({ pool }, `to_timestamp(${Date.now() / 1_000 + 60})`)
    // The connection that moved the clock uses it too.
    await pool.query(useMovedClock)
  }
  const database = databaseAt(url, 4)
  const store = createEventOutbox(database)
  const metrics = testMetrics()
  const log = createLog({ level: 'silent', process: 'test' })
  return {
    store,
    pool,
    start(receivers: readonly Receiver[], over: EventOutbox = store) {
      const dispatcher = startEventDispatcher({
        events: over,
        receivers,
        metrics,
        log,
        ...settings,
      })
      releaseLater(() => dispatcher.stop())
      return dispatcher
    },
    add: (n: number, app = 'shop', type: (typeof eventTypes)[number] = 'notice.sent') =>
      store.add({ id: randomUUID(), createdAt: new Date(), app, type, data: { n } }),
    pauseOf: async (n: number) =>
      (
        await pool.query(
          `SELECT (extract(epoch FROM due_at - now()) * 1000)::float8 AS ms, tries FROM event
           WHERE data ->> 'n' = $1`,
          [String(n)],
        )
      ).rows[0] as { ms: number; tries: number } | undefined,
    count: async () => (await pool.query('SELECT count(*)::int AS n FROM event')).rows[0].n,
    told: async (outcome: string, type = 'notice.sent') => {
      const { values } = await metrics.events.get()
      return (
        values.find(({ labels }) => labels.outcome === outcome && labels.type === type)?.value ?? 0
      )
    },
  }
}
