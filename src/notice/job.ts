/**
 * The job format that the API and the workers share. A job is a hint that rows should be sent. It has only ids of
 * notices, because BullMQ keeps job data readable in Redis.
 *
 * New notices of one event-loop tick share jobs. A job of one notice cost Redis more than everything else about an
 * accepted send (docs/decisions/0015). Every other job is of one notice, whose id is also the job's id. So a second add
 * of an existing job changes nothing.
 */
import { type Channel, channels } from '../base/channel.ts'
import { isId } from '../base/ids.ts'
import type { SpanStart } from '../base/traces.ts'
import { type NoticeKind, noticeKinds } from './states.ts'

/** The notices of one queue. Slow mail never delays SMS, and bulk notices never delay codes (delivery/lines.ts). */
export interface QueueOf {
  channel: Channel
  kind: NoticeKind
}

export const queues: readonly QueueOf[] = channels.flatMap((channel) =>
  noticeKinds.map((kind) => ({ channel, kind })),
)

export const queueName = ({ channel, kind }: QueueOf) =>
  kind === 'captcha' ? `send-${channel}` : `send-${channel}-bulk`

/** The hash tag keeps all keys of a queue in one slot of a cluster. Each queue has its own, so it can have its own shard. */
export const queuePrefix = (keyPrefix: string, queue: QueueOf) =>
  `{${keyPrefix}${queueName(queue)}}`

/** The states of a job that is still to be done. */
export const jobStates = ['waiting', 'delayed', 'active'] as const

/** `ids` of a job for several notices, or the `id` of one. */
export type JobData = { ids: string[] } | { id: string }

const maxNoticesPerJob = 16

export interface SendJob extends QueueOf {
  id: string
  /** The job does not run before this time has passed. */
  retryInMs?: number
  /** The notice is due by PostgreSQL's clock, so an existing delayed job runs now. A worker's clock does not decide. */
  isOverdue?: boolean
}

/** The span for adding a job or for processing it, by OpenTelemetry's conventions for messaging. */
export function queueSpan(
  operation: 'send' | 'process',
  notice: QueueOf & { id: string; app: string; template: string },
): SpanStart {
  const { id, app, kind, template } = notice
  const queue = queueName(notice)
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

/** A job of one notice has its id, so another add changes nothing. It can also be delayed or promoted. */
const isAlone = ({ retryInMs = 0, isOverdue = false }: SendJob) => retryInMs > 0 || isOverdue

/** The jobs of these notices of one queue. */
export function jobsOf(notices: readonly SendJob[]) {
  const jobs = notices.filter(isAlone).map((notice) => [notice])
  const others = notices.filter((notice) => !isAlone(notice))
  for (let at = 0; at < others.length; at += maxNoticesPerJob) {
    jobs.push(others.slice(at, at + maxNoticesPerJob))
  }
  return jobs.map((some) => ({ ...jobOf(some), isOverdue: some[0]?.isOverdue }))
}

function jobOf(notices: readonly SendJob[]) {
  const [{ id, retryInMs = 0 }, ...others] = notices as [SendJob, ...SendJob[]]
  const isOne = others.length === 0
  return {
    name: 'send',
    data: (isOne ? { id } : { ids: notices.map((notice) => notice.id) }) satisfies JobData,
    opts: {
      // Finished jobs are removed: the row is the record, and a kept job would block its id.
      removeOnComplete: true,
      removeOnFail: true,
      ...(isOne ? { jobId: id } : {}),
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
