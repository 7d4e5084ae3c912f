/**
 * Brings bulk notices forward that wait for a limit which no longer holds them back.
 *
 * A notice that must wait for the pace, quota or pause of a provider comes back within a minute to check. With more than
 * 8,000 waiting notices for a worker, the checks would cost too much, so a million notices would need more than an hour. They
 * would return as slowly after an operator has raised the pace, or after the end of the pause.
 *
 * So every worker regularly takes some of these notices. If they are sent, it takes twice as many, and so on. If they are
 * deferred again, it takes fewer, and finally none. So their rate follows the limits in force, for any reason why they
 * changed. Their rows are read for this, because other workers of the queue deliver most of them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../base/log.ts'
import { type Repetition, repeat } from '../base/repeat.ts'
import type { Producer } from '../notice/producer.ts'
import type { NoticeStore } from '../notice/store.ts'

const usualEveryMs = 30_000
const usualStepMs = 1_000
/** All other waits for a provider are shorter. */
const beyondMs = 60_000
/** The reconciler queues a notice again that was not sent in this time. */
const againInMs = 15_000
const leastPerStep = 100
const mostPerStep = 2_000
/** With a larger share of notices that are deferred again, fewer are taken. */
const deferredShare = 0.75

export interface BringForwardDeps {
  store: Pick<NoticeStore, 'takeParked' | 'deferredCount'>
  producer: Pick<Producer, 'add' | 'isBulkLong'>
  log: Pick<Log, 'backgroundFailed'>
  everyMs?: number
  stepMs?: number
}

export function startBringForward(deps: BringForwardDeps): Repetition {
  const { store, producer, log, everyMs = usualEveryMs, stepMs = usualStepMs } = deps

  async function bringForward(signal: AbortSignal): Promise<void> {
    let from: string | undefined
    let limit = leastPerStep
    while (limit >= leastPerStep) {
      if (await producer.isBulkLong()) {
        await sleep(stepMs, undefined, { signal })
        continue
      }
      const { notices, latest, dueAt } = await store.takeParked(limit, beyondMs, againInMs, from)
      if (latest === undefined) return
      from = latest
      await Promise.all(notices.map((notice) => producer.add({ ...notice, isOverdue: true })))
      await sleep(stepMs, undefined, { signal })
      const ids = notices.map(({ id }) => id)
      const isHeldBack = (await store.deferredCount(ids, dueAt)) > deferredShare * ids.length
      limit = isHeldBack ? limit / 2 : Math.min(2 * limit, mostPerStep)
    }
  }

  return repeat(
    async (signal) => {
      await bringForward(signal).catch((error) => {
        if (!signal.aborted) log.backgroundFailed('requeue', error)
      })
      return everyMs
    },
    Math.min(everyMs, 1_000),
  )
}
