import { type ConnectionOptions, DelayedError, type Job, Worker } from 'bullmq'
import { orLate } from '../base/deadline.ts'
import type { Log } from '../base/log.ts'
import {
  idsOf,
  type JobData,
  type QueueOf,
  queueName,
  queuePrefix,
  workerTimings,
} from '../notice/job.ts'
import type { Producer } from '../notice/producer.ts'
import { createSlots } from './lines.ts'
import type { Verdict } from './round.ts'

/** Pause before a job whose row could not be claimed is tried again. */
const faultRetryMs = 1_000

/** A stop waits this long for Redis. A job whose end is not stored runs again, and finds its notice ended. */
const redisTimeoutMs = 2_000

export type DeliveryWorker = ReturnType<typeof startDeliveryWorker>

/** Delivers the notices of one queue, at most `concurrency` at once, including those that wait for a slot. Starts at once. */
export function startDeliveryWorker(deps: {
  queue: QueueOf
  connection: ConnectionOptions
  keyPrefix: string
  concurrency: number
  deliver: (id: string) => Promise<Verdict>
  producer: Pick<Producer, 'add'>
  log: Log
}) {
  const { queue, connection, keyPrefix, concurrency, deliver, producer, log } = deps
  const places = createSlots(() => concurrency)
  let progressAtMs = performance.now()
  let active = 0
  let onIdle = () => {}

  async function work(job: Job<JobData>, token?: string): Promise<void> {
    const ids = idsOf(job.data)
    if (ids.length === 0) {
      log.jobFailed(String(job.id), new Error('a job without the id of a notice'))
      return
    }
    const adding: Promise<void>[] = []
    const failures: unknown[] = []
    active++
    const waits = await Promise.all(
      ids.map(async (id) => {
        const retryInMs = await deliverInTurn(id)
        // It does not wait for the rest of the job, which may wait long for a provider.
        if (retryInMs !== undefined && ids.length > 1) {
          const added = producer.add({ ...queue, id, retryInMs })
          adding.push(added.catch((error) => void failures.push(error)))
        }
        return retryInMs
      }),
    )
    active--
    progressAtMs = performance.now()
    if (active === 0) onIdle()
    const [retryInMs] = waits
    if (ids.length === 1 && retryInMs !== undefined) {
      await job.moveToDelayed(Date.now() + retryInMs, token)
      throw new DelayedError()
    }
    await Promise.all(adding)
    if (failures.length > 0) log.enqueueFailed(failures.length, failures[0])
  }

  /**
   * Whole milliseconds until the notice comes back; undefined if it has ended. Never rejects. While the worker stops,
   * notices without a place come back at once.
   */
  async function deliverInTurn(id: string): Promise<number | undefined> {
    const place = await places.take()
    if (!place.granted) return 0
    try {
      const verdict = await deliver(id)
      return verdict.done ? undefined : Math.ceil(verdict.retryInMs)
    } catch (error) {
      log.jobFailed(id, error)
      return Math.ceil(faultRetryMs * (0.5 + Math.random()))
    } finally {
      place.leave()
    }
  }

  let isClosing = false
  let again: NodeJS.Timeout | undefined
  let worker = start()

  function start(): Worker<JobData> {
    const next = new Worker<JobData>(queueName(queue), work, {
      connection,
      prefix: queuePrefix(keyPrefix, queue),
      concurrency,
      autorun: false,
      ...workerTimings,
    })
    next.on('error', (error) => log.connectionFailed('queue', error))
    void runWhenReady(next)
    return next
  }

  /**
   * BullMQ keeps the answers to the first commands of its connections. If one was an error, such as a missing right,
   * its loop would get the same error in the same turn of the event loop, again and again, and nothing else of this
   * process would run. So a worker runs only after these commands, and a new one takes the place of one whose first
   * commands failed.
   */
  async function runWhenReady(of: Worker<JobData>): Promise<void> {
    try {
      await of.waitUntilReady()
    } catch {
      if (isClosing) return
      again = setTimeout(async () => {
        await of.close(true)
        if (!isClosing) worker = start()
      }, faultRetryMs)
      return
    }
    await of.run().catch((error) => log.connectionFailed('queue', error))
  }

  return {
    ...queue,
    /** Milliseconds since its last job ended; 0 while a job runs. */
    idleDurationMs: () => (active > 0 ? 0 : performance.now() - progressAtMs),
    /** Accepts no more jobs. Resolves when the jobs under way have ended, and does not wait for an absent Redis. */
    async close(): Promise<void> {
      isClosing = true
      clearTimeout(again)
      places.close()
      void keepClosed(worker)
      const paused = worker.pause().then(
        () => true,
        () => true,
      )
      let isPaused = false
      do {
        if (active > 0) await new Promise<void>((resolve) => (onIdle = resolve))
        isPaused = await orLate(paused, redisTimeoutMs, () => false)
      } while (!isPaused && active > 0)
      await orLate(worker.close(true), redisTimeoutMs, () => {})
    },
  }
}

/**
 * BullMQ makes its connection for blocking reads again when a pause ends, also if that is long after the close. So from
 * now on, this connection is not made again.
 */
async function keepClosed(worker: Worker): Promise<void> {
  const client = await worker.getBackend().blockingConnection?.client.catch(() => undefined)
  if (client) client.connect = async () => {}
}
