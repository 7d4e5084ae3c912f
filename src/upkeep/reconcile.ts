/**
 * The reconciler: makes certain what queueing does quickly.
 *
 * Every worker runs one. Each pass takes open notices that are overdue (committed but never queued,
 * lost with Redis, or left by a worker that died) and puts them back on the queue. Taking them moves
 * their due time ahead in the same statement, so any number of copies never take the same ones, and a
 * job that still exists is not doubled because its id is the notice id. One that is delayed still runs now: the queue
 * delays by the clocks of our processes, and one of them may be slow. Receipts that came before their
 * notice was known as sent are looked at again here too.
 */
import type { Log } from '../base/log.ts'
import type { Metrics } from '../base/metrics.ts'
import { type Repetition, repeat } from '../base/repeat.ts'
import type { Producer } from '../notice/producer.ts'
import type { NoticeStore } from '../notice/store.ts'

/** With these a notice that no job or worker carries is back on the queue within 10 s. */
const defaultEveryMs = 4_000
const graceMs = 5_000
/** Longer than a job usually waits, so that a busy queue is not asked about again and again. */
const againInMs = 15_000
const perPass = 1_000

export function startReconciler(deps: {
  store: NoticeStore
  producer: Producer
  /** Looks again at receipts that came before their notice was `sent`. */
  sweepReceipts: () => Promise<void>
  metrics: Metrics
  log: Log
  /** The pause between two passes. */
  everyMs?: number
}): Repetition {
  const { store, producer, sweepReceipts, metrics, log, everyMs = defaultEveryMs } = deps
  // A process does not know what was before it: it may have been started because PostgreSQL is back.
  let wasAway = true

  async function reconcile(): Promise<number> {
    // Each fails alone: receipts that can't be looked at must not keep messages from being sent.
    await requeue().catch((error) => log.backgroundFailed('reconcile', error))
    await sweepReceipts().catch((error) => log.backgroundFailed('early receipts', error))
    return everyMs
  }

  async function requeue(): Promise<void> {
    const overdue = await takeOverdue()
    if (overdue.length === 0) return
    await Promise.all(overdue.map((notice) => producer.add({ ...notice, isOverdue: true })))
    metrics.reconciled.inc(overdue.length)
    log.reconciled(overdue.length)
  }

  /**
   * After an outage every claim looks lost, while those who hold them are about to write what they know:
   * whatever was sent in that time would be sent again. They get until the next pass.
   */
  async function takeOverdue() {
    try {
      if (wasAway) await store.oldestOpenSeconds()
      const overdue = wasAway ? [] : await store.takeOverdue(perPass, graceMs, againInMs)
      wasAway = false
      return overdue
    } catch (error) {
      wasAway = true
      throw error
    }
  }

  return repeat(reconcile, Math.min(everyMs, 1_000))
}
