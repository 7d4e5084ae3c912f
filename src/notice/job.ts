/**
 * The job format that the API and the workers share. A job is a hint that a row should be sent. It has only the notice
 * id, because BullMQ keeps job data readable in Redis. The notice id is also the job's id, so a second add of an
 * existing job changes nothing.
 */
import type { JobsOptions } from 'bullmq'
import type { Channel } from '../base/channel.ts'
import type { SpanStart } from '../base/traces.ts'

/** One queue per channel, so that slow mail never delays SMS. */
export const queueName = (channel: Channel) => `send-${channel}`

/** The hash tag keeps all keys of a queue in one slot of a cluster. Each queue has its own, so it can have its own shard. */
export const queuePrefix = (keyPrefix: string, channel: Channel) =>
  `{${keyPrefix}${queueName(channel)}}`

export interface JobData {
  id: string
}

export interface SendJob {
  id: string
  channel: Channel
  kind: 'captcha' | 'notice'
  /** The job does not run before this time has passed. */
  delayMs?: number
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

/** Finished jobs are removed: the row is the record, and a kept job would block its id. */
export function jobOptions({ id, kind, delayMs = 0 }: SendJob): JobsOptions {
  return {
    jobId: id,
    removeOnComplete: true,
    removeOnFail: true,
    // Jobs without a priority run first, so codes overtake bulk notices.
    ...(kind === 'notice' ? { priority: 1 } : {}),
    ...(delayMs > 0 ? { delay: delayMs } : {}),
  }
}

/** The job of a killed worker runs again within `lockDuration + stalledInterval`. */
export const workerTimings = {
  lockDuration: 10_000,
  stalledInterval: 5_000,
  // Above this number BullMQ fails a stalled job by itself. The row counts the tries instead.
  maxStalledCount: 1_000,
} as const
