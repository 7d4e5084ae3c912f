/**
 * The job format that the API and the workers share. A job is a hint that rows should be sent. It has only ids of
 * notices, because BullMQ keeps job data readable in Redis.
 *
 * New notices of one event-loop tick share jobs. A job of one notice cost Redis more than everything else about an
 * accepted send (docs/decisions/0015). Every other job is of one notice, whose id is also the job's id. So a second add
 * of an existing job changes nothing.
 */
import type { Channel } from '../base/channel.ts'
import { isId } from '../base/ids.ts'
import type { SpanStart } from '../base/traces.ts'
import type { NoticeKind } from './states.ts'

/** One queue per channel, so that slow mail never delays SMS. */
export const queueName = (channel: Channel) => `send-${channel}`

/** The hash tag keeps all keys of a queue in one slot of a cluster. Each queue has its own, so it can have its own shard. */
export const queuePrefix = (keyPrefix: string, channel: Channel) =>
  `{${keyPrefix}${queueName(channel)}}`

/** `ids` of a job for several notices, or the `id` of one. */
export type JobData = { ids: string[] } | { id: string }

/** The states of a job that is still to be done. */
export const jobStates = ['waiting', 'prioritized', 'delayed', 'active'] as const
export type JobState = (typeof jobStates)[number]

/**
 * A worker takes whole jobs. A code waits for the end of one if all that a worker has taken are bulk notices. So those
 * share smaller jobs.
 */
export const maxNoticesPerJob = { captcha: 16, notice: 4 } as const

export interface SendJob {
  id: string
  channel: Channel
  kind: NoticeKind
  /** The job does not run before this time has passed. */
  retryInMs?: number
  /** The notice is due by PostgreSQL's clock, so an existing delayed job runs now. A worker's clock does not decide. */
  isOverdue?: boolean
}

/** The span for adding a job or for processing it, by OpenTelemetry's conventions for messaging. */
export function queueSpan(
  operation: 'send' | 'process',
  notice: { id: string; app: string; kind: string; channel: Channel; template: string },
): SpanStart {
  const { id, app, kind, channel, template } = notice
  const queue = queueName(channel)
  return {
    name: `${operation} ${queue}`,
    kind: operation === 'send' ? 'PRODUCER' : 'CONSUMER',
    attributes: {
      'messaging.system.name': 'bullmq',
      'messaging.destination.name': queue,
      'messaging.operation.name': operation,
      'messaging.operation.type': operation,
      'messaging.message.id': id,
      ...{ 'postern.app': app, 'postern.kind': kind, 'postern.template': template },
    },
  }
}

/** The job of these notices, which are of one kind. Only a job of one notice can be delayed. */
export function jobOf(notices: readonly SendJob[]) {
  const [{ id, kind, retryInMs = 0 }, ...others] = notices as [SendJob, ...SendJob[]]
  const isOne = others.length === 0
  return {
    name: 'send',
    data: (isOne ? { id } : { ids: notices.map((notice) => notice.id) }) satisfies JobData,
    opts: {
      // Finished jobs are removed: the row is the record, and a kept job would block its id.
      removeOnComplete: true,
      removeOnFail: true,
      ...(isOne ? { jobId: id } : {}),
      // Jobs without a priority run first, so codes overtake bulk notices.
      ...(kind === 'notice' ? { priority: 1 } : {}),
      ...(retryInMs > 0 ? { delay: retryInMs } : {}),
    },
  }
}

/** The notices of a job. A job of a newer build may have another name and more data. */
export function idsOf(data: Partial<Record<'id' | 'ids', unknown>> | undefined): string[] {
  const ids = Array.isArray(data?.ids) ? data.ids : [data?.id]
  return ids.map(String).filter(isId)
}

/** The job of a killed worker runs again within `lockDuration + stalledInterval`. */
export const workerTimings = {
  lockDuration: 10_000,
  stalledInterval: 5_000,
  // Above this number BullMQ fails a stalled job by itself. The row counts the tries instead.
  maxStalledCount: 1_000,
} as const
