import { type ConnectionOptions, type Job, Queue } from 'bullmq'
import { createBatcher } from '../base/batcher.ts'
import { orLate } from '../base/deadline.ts'
import { reachRedis } from '../base/unavailable.ts'
import {
  type JobData,
  jobStates,
  jobsOf,
  type QueueOf,
  queueName,
  queuePrefix,
  queues,
  type SendJob,
} from './job.ts'

export type Producer = ReturnType<typeof createProducer>

/** Limits an add, because BullMQ waits for a connection without limit. */
const addTimeoutMs = 2_000

/** Jobs. Redis needs less than a millisecond to read so many. */
const longList = 5_000

/** Jobs of a kind. While so many wait for a worker, nearly all overdue notices are among them. */
const longQueue = 1_000

/** Puts notices on the queues. All notices of one event-loop tick go in one command per queue. */
export function createProducer(connection: ConnectionOptions, keyPrefix: string) {
  const opened: [QueueOf, Queue<JobData>][] = []
  const batchers = new Map<string, (job: SendJob) => Promise<void>>()
  for (const one of queues) {
    const queue = new Queue<JobData>(queueName(one), {
      connection,
      prefix: queuePrefix(keyPrefix, one),
      skipVersionCheck: true,
    })
    // The caller of each command gets its error; this event only repeats it.
    queue.on('error', () => {})
    opened.push([one, queue])
    batchers.set(
      queueName(one),
      createBatcher<SendJob, void>({
        maxItems: 200,
        maxConcurrent: 4,
        async run(notices) {
          const jobs = jobsOf(notices)
          const there = await reachRedis(inTime(queue.addBulk(jobs)))
          await reachRedis(
            inTime(
              runNow(
                queue,
                there.filter((_, at) => jobs[at]?.isOverdue),
              ),
            ),
          )
        },
      }),
    )
  }

  /** Jobs per queue and state. Without the queues that give no answer; throws if none does. */
  async function depths() {
    const answers = await Promise.allSettled(
      opened.map(async ([one, queue]) => {
        const counts = await inTime(queue.getJobCounts(...jobStates))
        return jobStates.map((state) => ({ ...one, state, value: counts[state] ?? 0 }))
      }),
    )
    const answered = answers.filter((one) => one.status === 'fulfilled')
    if (answered.length === 0) throw (answers[0] as PromiseRejectedResult).reason
    return answered.flatMap(({ value }) => value)
  }

  return {
    /** Throws Unavailable if the queue is out of reach. The reconciler then queues the notice. */
    async add(job: SendJob): Promise<void> {
      await batchers.get(queueName(job))?.(job)
    },

    depths,

    /** Whether so many bulk notices wait for a worker that a further job for one of them gains nothing. */
    async isBulkLong(): Promise<boolean> {
      const waiting = (await depths()).filter(
        ({ kind, state }) => kind === 'notice' && state === 'waiting',
      )
      return waiting.reduce((sum, { value }) => sum + value, 0) > longQueue
    },

    async close(): Promise<void> {
      await Promise.all(opened.map(([, queue]) => queue.close()))
    },
  }
}

/**
 * Runs jobs that are delayed. A job in no list of the queue, or in a list of finished jobs, would block its id for ever. So
 * it is made again. If it has just run instead, the second job finds the notice ended.
 *
 * BullMQ reads whole lists to find one job. So they are read once for all jobs, and not at all if they are long: then jobs
 * that block their id wait until the queue is shorter.
 */
async function runNow(queue: Queue<JobData>, jobs: readonly Job<JobData>[]): Promise<void> {
  const others: Job<JobData>[] = []
  await Promise.all(jobs.map((job) => job.promote().catch(() => void others.push(job))))
  if (others.length === 0) return
  const listed = new Set(await queue.getRanges(['waiting', 'active'], 0, longList))
  if (listed.size > longList) return
  const unlisted = others.filter(({ id }) => !listed.has(String(id)))
  await Promise.all(
    unlisted.map(async (job) => {
      const state = await job.getState()
      if (!['unknown', 'failed', 'completed'].includes(state)) return
      await job.remove()
      await queue.add(job.name, job.data, job.opts)
    }),
  )
}

const inTime = <Result>(work: Promise<Result>) =>
  orLate(work, addTimeoutMs, () => {
    throw new Error(`no answer within ${addTimeoutMs} ms`)
  })
