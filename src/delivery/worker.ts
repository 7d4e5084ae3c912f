import { type ConnectionOptions, DelayedError, type Job, Worker } from 'bullmq'
import type { Log } from '../base/log.ts'
import {
  type JobData,
  type QueuedChannel,
  queueName,
  queuePrefix,
  workerTimings,
} from '../queue/contract.ts'
import type { Verdict } from './deliver.ts'

/** A job whose row could not even be claimed waits about this long. */
const againAfterFaultMs = 1_000

/** Takes jobs of one channel, `concurrency` at a time. Starts at once. */
export function startDeliveryWorker(deps: {
  channel: QueuedChannel
  connection: ConnectionOptions
  keyPrefix: string
  concurrency: number
  deliver: (id: string) => Promise<Verdict>
  log: Log
}) {
  const { channel, connection, keyPrefix, concurrency, deliver, log } = deps
  let lastProgressMs = performance.now()

  async function work(job: Job<JobData>, token?: string): Promise<void> {
    let verdict: Verdict
    try {
      verdict = await deliver(job.data.id)
    } catch (error) {
      log.jobFailed(job.data.id, error)
      verdict = { done: false, againInMs: againAfterFaultMs * (0.5 + Math.random()) }
    }
    lastProgressMs = performance.now()
    if (verdict.done) return
    await job.moveToDelayed(Date.now() + Math.ceil(verdict.againInMs), token)
    throw new DelayedError()
  }

  const worker = new Worker<JobData>(queueName(channel), work, {
    connection,
    prefix: queuePrefix(keyPrefix),
    concurrency,
    ...workerTimings,
  })
  worker.on('error', (error) => log.connectionFailed('queue', error))

  return {
    /** Milliseconds since a job was last finished. */
    idleMs: () => performance.now() - lastProgressMs,
    /** Takes no more jobs; resolves when those under way have ended. */
    close: () => worker.close(),
  }
}
