import { type ConnectionOptions, type Job, Queue } from 'bullmq'
import { createBatcher } from '../base/batcher.ts'
import { type Channel, channels } from '../base/channel.ts'
import { orLate } from '../base/deadline.ts'
import { reachRedis } from '../base/unavailable.ts'
import {
  type JobData,
  type JobState,
  jobOf,
  jobStates,
  maxNoticesPerJob,
  queueName,
  queuePrefix,
  type SendJob,
} from './job.ts'

export type Producer = ReturnType<typeof createProducer>

/** Limits an add, because BullMQ waits for a connection without limit. */
const addTimeoutMs = 2_000

/** Puts notices on the queue. All notices of one event-loop tick go in one command per channel. */
export function createProducer(connection: ConnectionOptions, keyPrefix: string) {
  const queues = new Map<Channel, Queue<JobData>>()
  const batchers = new Map<Channel, (job: SendJob) => Promise<void>>()
  for (const channel of channels) {
    const queue = new Queue<JobData>(queueName(channel), {
      connection,
      prefix: queuePrefix(keyPrefix, channel),
      skipVersionCheck: true,
    })
    // The caller of each command gets its error; this event only repeats it.
    queue.on('error', () => {})
    queues.set(channel, queue)
    batchers.set(
      channel,
      createBatcher<SendJob, void>({
        maxItems: 200,
        maxConcurrent: 4,
        async run(notices) {
          const jobs = notices.filter(isAlone).map((notice) => [notice])
          const added = [...jobs, ...sharedJobs(notices)].map(jobOf)
          const there = await reachRedis(inTime(queue.addBulk(added)))
          const overdue = there.filter((_, at) => jobs[at]?.[0]?.isOverdue)
          await reachRedis(inTime(Promise.all(overdue.map((job) => runNow(queue, job)))))
        },
      }),
    )
  }

  return {
    /** Throws Unavailable if the queue is out of reach. The reconciler then queues the notice. */
    async add(job: SendJob): Promise<void> {
      await batchers.get(job.channel)?.(job)
    },

    /** Jobs per channel and state. Without the channels whose queue gives no answer; throws if none does. */
    async depths(): Promise<{ channel: Channel; state: JobState; value: number }[]> {
      const answers = await Promise.allSettled(
        [...queues].map(async ([channel, queue]) => {
          const counts = await inTime(queue.getJobCounts(...jobStates))
          return jobStates.map((state) => ({ channel, state, value: counts[state] ?? 0 }))
        }),
      )
      const answered = answers.filter((one) => one.status === 'fulfilled')
      if (answered.length === 0) throw (answers[0] as PromiseRejectedResult).reason
      return answered.flatMap(({ value }) => value)
    },

    async close(): Promise<void> {
      await Promise.all([...queues.values()].map((queue) => queue.close()))
    },
  }
}

/**
 * Runs a job that is delayed. A job in no list of the queue, or in a list of finished jobs, would block its id for ever. So
 * it is made again. If it has just run instead, the second job finds the notice ended.
 */
async function runNow(queue: Queue<JobData>, job: Job<JobData>): Promise<void> {
  const isPromoted = await job.promote().then(
    () => true,
    () => false,
  )
  if (isPromoted) return
  const state = await job.getState()
  if (!['unknown', 'failed', 'completed'].includes(state)) return
  await job.remove()
  await queue.add(job.name, job.data, job.opts)
}

/** A job of one notice has its id, so another add changes nothing. It can also be delayed or promoted. */
const isAlone = ({ retryInMs = 0, isOverdue = false }: SendJob) => retryInMs > 0 || isOverdue

/** Groups of notices that can be in one job: codes with codes, and bulk with bulk. */
function sharedJobs(notices: readonly SendJob[]): SendJob[][] {
  const groups: SendJob[][] = []
  for (const kind of ['captcha', 'notice'] as const) {
    const alike = notices.filter((notice) => notice.kind === kind && !isAlone(notice))
    const most = maxNoticesPerJob[kind]
    for (let at = 0; at < alike.length; at += most) groups.push(alike.slice(at, at + most))
  }
  return groups
}

const inTime = <Result>(work: Promise<Result>) =>
  orLate(work, addTimeoutMs, () => {
    throw new Error(`no answer within ${addTimeoutMs} ms`)
  })
