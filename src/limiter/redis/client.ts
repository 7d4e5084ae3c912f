import { orLate } from '../../base/deadline.ts'
import type { ByteClient } from '../../redis/script.ts'
import { LimiterUnavailable } from '../errors.ts'

/** What the limiter needs of a connection: an ioredis `Redis` or `Cluster`, 5 or 6, best one of its own. */
export interface LimiterRedis extends ByteClient {
  readonly isCluster: boolean
}

/** A definite word about one call to Redis: its answer, or `LimiterUnavailable` by the deadline. */
export async function withinDeadline<T>(call: Promise<T>, deadlineMs: number): Promise<T> {
  try {
    return await orLate(call, deadlineMs, () => {
      throw new LimiterUnavailable(`Redis gave no answer within ${deadlineMs} ms`)
    })
  } catch (error) {
    if (error instanceof LimiterUnavailable) throw error
    const message = error instanceof Error ? error.message : String(error)
    throw new LimiterUnavailable(`Redis did not answer: ${message}`, error)
  }
}
