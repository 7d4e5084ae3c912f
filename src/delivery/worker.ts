import { type ConnectionOptions, DelayedError, type Job, Worker } from 'bullmq'
import type { Channel } from '../base/channel.ts'
import { orLate } from '../base/deadline.ts'
import { isId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { type JobData, queueName, queuePrefix, workerTimings } from '../notice/job.ts'
import type { Verdict } from './round.ts'

/** Pause before a job whose row could not be claimed is tried again. */
const againAfterFaultMs = 1_000

/** A stop waits this long for Redis. A job whose end is not stored runs again, and finds its notice ended. */
const redisMs = 2_000

export type DeliveryWorker = ReturnType<typeof startDeliveryWorker>

/** Runs jobs of one channel, at most `concurrency` at once, including jobs that wait for a slot. Starts at once. */
export function startDeliveryWorker(deps: {
  channel: Channel
  connection: ConnectionOptions
  keyPrefix: string
  concurrency: number
  deliver: (id: string) => Promise<Verdict>
  log: Log
}) {
  const { channel, connection, keyPrefix, concurrency, deliver, log } = deps
  let lastProgressMs = performance.now()
  let active = 0
  let onIdle = () => {}

  async function work(job: Job<JobData>, token?: string): Promise<void> {
    // A job of a newer build may have another name and more data, but it still names a row.
    const id = job.data?.id
    if (!isId(String(id))) {
      log.jobFailed(String(job.id), new Error('a job without the id of a notice'))
      return
    }
    active++
    let verdict: Verdict
    try {
      verdict = await deliver(id)
    } catch (error) {
      log.jobFailed(id, error)
      verdict = { done: false, againInMs: againAfterFaultMs * (0.5 + Math.random()) }
    } finally {
      active--
      lastProgressMs = performance.now()
      if (active === 0) onIdle()
    }
    if (verdict.done) return
    await job.moveToDelayed(Date.now() + Math.ceil(verdict.againInMs), token)
    throw new DelayedError()
  }

  const worker = new Worker<JobData>(queueName(channel), work, {
    connection,
    prefix: queuePrefix(keyPrefix, channel),
    concurrency,
    ...workerTimings,
  })
  worker.on('error', (error) => log.connectionFailed('queue', error))

  return {
    channel,
    /** Milliseconds since its last job ended; 0 while a job runs. */
    idleMs: () => (active > 0 ? 0 : performance.now() - lastProgressMs),
    /** Accepts no more jobs. Resolves when the jobs under way have ended. BullMQ alone would wait for an absent Redis. */
    async close(): Promise<void> {
      const closed = worker.close().then(() => true)
      let isClosed = false
      do {
        if (active > 0) await new Promise<void>((resolve) => (onIdle = resolve))
        isClosed = await orLate(closed, redisMs, () => false)
      } while (!isClosed && active > 0)
      if (isClosed) return
      // BullMQ ends these two last. They keep a timer and a connection.
      // biome-ignore lint/complexity/useLiteralKeys: TypeScript lets only this form through to a protected member
      await worker['lockManager'].close()
      await orLate(worker.getBackend().close(true), redisMs, () => {})
    },
  }
}
