import { orLate } from '../../base/deadline.ts'
import {
  type Connections,
  dropConnections,
  dropSilent,
  isOfReplica,
} from '../../base/redis-trust.ts'
import type { ByteClient, Script } from '../../base/script.ts'
import { LimiterUnavailable } from '../errors.ts'

/** The connection of the limiter: a `Redis` or `Cluster` of ioredis 5 or 6. It is best not shared with other code. */
export interface LimiterRedis extends ByteClient, Connections {
  readonly isCluster: boolean
  readonly options?: NumbersOptions & { readonly redisOptions?: NumbersOptions | undefined }
}

interface NumbersOptions {
  readonly stringNumbers?: boolean | undefined
}

export type Run = ReturnType<typeof createRun>

/** A connection that gave no answer to a call must answer a probe within this time. */
const probeAnswerMs = 1_000
const distrustEveryMs = 1_000

/** Ends connections that are useless, at most once a second. */
function createDistrust(redis: LimiterRedis) {
  let lastMs = Number.NEGATIVE_INFINITY
  return (end: (client: LimiterRedis) => unknown) => {
    if (performance.now() - lastMs < distrustEveryMs) return
    lastMs = performance.now()
    end(redis)
  }
}

/**
 * Returns a function that runs a script. It resolves with the answer, or throws `LimiterUnavailable` by the deadline.
 * In tests with a clock, the time is the last argument of every script. A call that is late or no longer `isWanted` sends no
 * second command. So the calls of one connection take effect in their order.
 */
export function createRun(redis: LimiterRedis, deadlineMs: number, clock?: () => number) {
  const distrust = createDistrust(redis)
  return async (
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    isWanted = () => true,
  ) => {
    const all = clock ? [...args, clock()] : args
    let isLate = false
    const late = () => {
      isLate = true
      distrust((client) => dropSilent(client, probeAnswerMs))
      throw new LimiterUnavailable(`Redis gave no answer within ${deadlineMs} ms`)
    }
    try {
      const running = script.runForBytes(redis, keys, all, () => !isLate && isWanted())
      return await orLate(running, deadlineMs, late)
    } catch (error) {
      if (error instanceof LimiterUnavailable) throw error
      const message = error instanceof Error ? error.message : String(error)
      if (error instanceof Error && isOfReplica(error)) distrust(dropConnections)
      throw new LimiterUnavailable(`Redis did not answer: ${message}`, error)
    }
  }
}
