/**
 * The reconciler: makes sure that no notice is forgotten by the queue.
 *
 * Every worker runs one. Each pass takes overdue open notices (committed but never queued, lost with Redis, or left by a
 * worker that died) and puts them back on the queue. The same statement moves their due time ahead, so two
 * reconcilers never take the same notice. A job of one notice is not doubled, because its id is the notice id. A notice
 * that still waits in a shared job gets a second job. The later of the two finds the notice ended. A delayed job runs now:
 * the queue uses the clocks of processes for delays, and one of them may be slow. Early receipts are tried again here,
 * and unanswered codes are counted.
 */
import { channels } from '../base/channel.ts'
import type { Log } from '../base/log.ts'
import { type Repetition, repeat } from '../base/repeat.ts'
import type { OverdueNotice } from '../notice/overdue.ts'
import type { Producer } from '../notice/producer.ts'
import type { NoticeKind } from '../notice/states.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { UpkeepMetrics } from './metrics.ts'

/** With this interval, a notice without a job and a worker is back on the queue within 10 s. */
const defaultEveryMs = 4_000
const graceMs = 5_000
/** A requeued notice is due again after this time. Jobs usually wait less, so a busy queue causes no repeated work. */
const againInMs = 15_000
/** Codes first. */
const kinds: readonly NoticeKind[] = ['captcha', 'notice']
/** The most notices of one kind that one pass queues. */
const perPass = 1_000
/** While many bulk notices wait for a worker, nearly all overdue ones are among them, and need no job each. */
const perPassOfMany = 50

export interface ReconcilerDeps {
  store: NoticeStore
  producer: Producer
  /** Tries receipts again that arrived before their notice was `sent`. */
  sweepReceipts: () => Promise<void>
  metrics: UpkeepMetrics
  log: Log
  everyMs?: number
}

export function startReconciler(deps: ReconcilerDeps): Repetition {
  const { store, producer, sweepReceipts, metrics, log, everyMs = defaultEveryMs } = deps
  /** The kinds whose latest read failed. At the start all, because PostgreSQL may have been away before. */
  let failing: ReadonlySet<NoticeKind> = new Set(kinds)
  let mayHaveBeenAway = false

  async function reconcile(): Promise<number> {
    // Each step fails alone: an error with receipts must not stop messages.
    await requeue()
    await sweepReceipts().catch((error) => log.backgroundFailed('early_receipts', error))
    await store.countUnanswered().catch((error) => log.backgroundFailed('conversions', error))
    return everyMs
  }

  /**
   * After an outage, every claim looks lost, although its worker may be about to write the outcome. A message sent during
   * the outage would be sent again. So workers get time until the next pass: a read takes no notice if the one before
   * failed, or if any read has begun to fail since. A kind whose reads fail each time does not stop the other.
   */
  async function requeue(): Promise<void> {
    const before = failing
    const now = new Set<NoticeKind>()
    let isSettling = mayHaveBeenAway
    mayHaveBeenAway = false
    for (const kind of kinds) {
      const isHeldBack = isSettling || before.has(kind)
      try {
        const limit = isHeldBack ? 0 : await limitOf(kind)
        const overdue = await store.takeOverdue(kind, limit, graceMs, againInMs)
        await Promise.all(
          channels.map((channel) => queueAgain(overdue.filter((one) => one.channel === channel))),
        )
      } catch (error) {
        now.add(kind)
        if (!before.has(kind)) isSettling = mayHaveBeenAway = true
        log.backgroundFailed('requeue', error, kind)
      }
    }
    failing = now
  }

  async function limitOf(kind: NoticeKind): Promise<number> {
    if (kind === 'captcha') return perPass
    return (await producer.isBulkLong().catch(() => false)) ? perPassOfMany : perPass
  }

  /** The queue of a channel can be away alone. Its notices are overdue again soon. */
  async function queueAgain(overdue: readonly OverdueNotice[]): Promise<void> {
    if (overdue.length === 0) return
    try {
      await Promise.all(overdue.map((notice) => producer.add({ ...notice, isOverdue: true })))
      metrics.reconciled.inc({}, overdue.length)
      log.reconciled(overdue.length)
    } catch (error) {
      log.backgroundFailed('requeue', error, overdue[0]?.channel)
    }
  }

  return repeat(reconcile, Math.min(everyMs, 1_000))
}
