/**
 * Brings bulk notices forward that wait for a limit which no longer holds them back.
 *
 * A notice that must wait for the pace, quota or pause of a provider comes back within a minute to check. With more than
 * 8,000 waiting notices for a worker, the checks would cost too much, so a million notices would need more than an hour. Then
 * an operator raises the pace, or the pause ends, and they would still return as slowly.
 *
 * So every worker regularly takes some of the notices that are due last. If they are sent, it takes twice as many, and so
 * on. If they are deferred again, it takes fewer, and finally none. So their rate follows the limits in force, for any
 * reason why they changed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../base/log.ts'
import type { Metrics } from '../base/metrics.ts'
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
/** No more are taken while so many jobs wait for a worker. */
const longQueue = 1_000
/** With a larger share of notices that are deferred again, fewer are taken. */
const deferredShare = 0.75

const limitReasons: readonly string[] = ['pace', 'quota', 'paused']

export interface BringForwardDeps {
  store: Pick<NoticeStore, 'takeParked'>
  producer: Pick<Producer, 'add' | 'depths'>
  metrics: Pick<Metrics, 'deferred'>
  log: Pick<Log, 'backgroundFailed'>
  everyMs?: number
  stepMs?: number
}

export function startBringForward(deps: BringForwardDeps): Repetition {
  const { store, producer, metrics, log, everyMs = usualEveryMs, stepMs = usualStepMs } = deps

  /** The number of times that limits or pauses deferred a notice since the begin of a step. */
  async function deferredInStep(signal: AbortSignal, begin: () => Promise<void>): Promise<number> {
    const before = await deferredUntilNow()
    await begin()
    await sleep(stepMs, undefined, { signal })
    return (await deferredUntilNow()) - before
  }

  async function deferredUntilNow(): Promise<number> {
    const { values } = await metrics.deferred.get()
    return values
      .filter(({ labels }) => limitReasons.includes(String(labels.reason)))
      .reduce((sum, { value }) => sum + value, 0)
  }

  async function isQueueLong(): Promise<boolean> {
    const depths = await producer.depths()
    const waiting = depths.filter(({ state }) => state === 'waiting' || state === 'prioritized')
    return waiting.reduce((sum, { value }) => sum + value, 0) > longQueue
  }

  async function bringForward(signal: AbortSignal): Promise<void> {
    // Notices that return by themselves are deferred too.
    const usual = await deferredInStep(signal, async () => {})
    let from: string | undefined
    let limit = leastPerStep
    while (limit >= leastPerStep) {
      if (await isQueueLong()) {
        await sleep(stepMs, undefined, { signal })
        continue
      }
      let count = 0
      const deferred = await deferredInStep(signal, async () => {
        const { notices, latest } = await store.takeParked(limit, beyondMs, againInMs, from)
        count = notices.length
        from = latest
        await Promise.all(notices.map((notice) => producer.add({ ...notice, isOverdue: true })))
      })
      if (from === undefined) return
      const isHeldBack = deferred - usual > deferredShare * count
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
