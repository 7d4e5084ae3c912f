/**
 * What the API and the workers agree on. A job is a hint that a row wants carrying: it holds the
 * notice id and nothing else, because BullMQ keeps job data readable in Redis. The job's own id is the
 * notice id too, so adding it twice while it exists is one job.
 */
import type { JobsOptions } from 'bullmq'
import type { Channel } from '../base/channel.ts'

/** One queue per channel, so that slow mail never delays SMS. */
export const queueName = (channel: Channel) => `send-${channel}`

/** The hash tag keeps all keys of a queue in one slot of a cluster. */
export const queuePrefix = (keyPrefix: string) => `{${keyPrefix}queue}`

export interface JobData {
  id: string
}

/** What to put on the queue. */
export interface SendJob {
  id: string
  channel: Channel
  kind: 'captcha' | 'notice'
  /** Not before this has passed. */
  delayMs?: number
  /** By PostgreSQL's clock its time is here: a delay of a job that is there already is over, whatever a worker's clock says. */
  isOverdue?: boolean
}

/** Finished jobs leave no trace: the row is the record, and a kept job would block its id. */
export function jobOptions({ id, kind, delayMs = 0 }: SendJob): JobsOptions {
  return {
    jobId: id,
    removeOnComplete: true,
    removeOnFail: true,
    // Jobs without a priority run before those with one: codes overtake bulk notices.
    ...(kind === 'notice' ? { priority: 1 } : {}),
    ...(delayMs > 0 ? { delay: delayMs } : {}),
  }
}

/** A killed worker's job runs again within `lockDuration + stalledInterval`. */
export const workerTimings = {
  lockDuration: 10_000,
  stalledInterval: 5_000,
  // BullMQ would fail a job that stalled more often without asking us; the row counts its own tries.
  maxStalledCount: 1_000,
} as const
