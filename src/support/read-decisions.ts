import type { RedisClient } from '../base/redis-script.ts'
import { type DecisionRecord, decode } from './record.ts'
import { decisionsKey } from './recorder.ts'

const perPage = 2_000

/** Everything that is recorded, in the order of writing, and the time of Redis. */
export async function readDecisions(
  redis: RedisClient,
  keyPrefix: string,
): Promise<{ records: DecisionRecord[]; nowMs: number }> {
  const records: DecisionRecord[] = []
  for (let from = '-'; ; ) {
    const page = await redis.xrange(decisionsKey(keyPrefix), from, '+', 'COUNT', perPage)
    for (const [, [, line = '']] of page) {
      const record = decode(line)
      if (record) records.push(record)
    }
    const last = page.at(-1)
    if (!last || page.length < perPage) break
    from = `(${last[0]}`
  }
  const [seconds] = await redis.time()
  return { records, nowMs: Number(seconds) * 1_000 }
}
