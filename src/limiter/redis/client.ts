import { orLate } from '../../base/deadline.ts'
import type { ByteClient, Script } from '../../base/redis-script.ts'
import { LimiterUnavailable } from '../errors.ts'

/** What the limiter needs of a connection: an ioredis `Redis` or `Cluster`, 5 or 6, best one of its own. */
export interface LimiterRedis extends ByteClient {
  readonly isCluster: boolean
  readonly options?: NumbersOptions & { readonly redisOptions?: NumbersOptions | undefined }
}

interface NumbersOptions {
  readonly stringNumbers?: boolean | undefined
}

export type Run = ReturnType<typeof createRun>

/**
 * What runs a script and gets a definite word about it: its answer, or `LimiterUnavailable` by the deadline.
 * The time of a test's clock is the last argument of every script.
 */
export function createRun(redis: LimiterRedis, deadlineMs: number, clock?: () => number) {
  const late = () => {
    throw new LimiterUnavailable(`Redis gave no answer within ${deadlineMs} ms`)
  }
  return async (script: Script, keys: readonly string[], args: readonly (string | number)[]) => {
    const all = clock ? [...args, clock()] : args
    try {
      return await orLate(script.runForBytes(redis, keys, all), deadlineMs, late)
    } catch (error) {
      if (error instanceof LimiterUnavailable) throw error
      const message = error instanceof Error ? error.message : String(error)
      throw new LimiterUnavailable(`Redis did not answer: ${message}`, error)
    }
  }
}
