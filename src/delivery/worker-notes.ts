/**
 * Which workers run, and what each has learnt of its providers. A breaker is a process's own experience, so nobody
 * else knows of it: every worker notes it in Redis again and again, and a note that is not repeated is gone.
 */
import { randomUUID } from 'node:crypto'
import { reachRedis } from '../base/reach-redis.ts'
import { loadScript, type RedisClient } from '../base/redis-script.ts'
import { repeat } from '../base/repeat.ts'

/** Whether a provider would be called now: `circuit` while it is kept away from, `paused` while it asked to wait. */
export type ProviderState = 'ready' | 'paused' | 'circuit'

export interface WorkerNote {
  providers: Readonly<Record<string, ProviderState>>
}

const everyMs = 3_000
/** Some are late and one may be lost before a worker counts as gone. */
const holdsMs = 15_000

const script = loadScript('note-worker-1')
const keyOf = (keyPrefix: string) => `${keyPrefix}workers`

export function startWorkerNotes(deps: {
  redis: RedisClient
  keyPrefix: string
  look: () => WorkerNote
}) {
  const { redis, keyPrefix, look } = deps
  const id = randomUUID()
  const say = (note: string) => script.run(redis, [keyOf(keyPrefix)], [id, note, holdsMs])
  const saying = repeat(async () => {
    // The next one says it.
    await say(JSON.stringify(look())).catch(() => {})
    return everyMs
  }, 0)

  return {
    async stop(): Promise<void> {
      await saying.stop()
      await say('').catch(() => {})
    },
  }
}

/** Of the workers that run. Throws Unavailable. */
export async function readWorkerNotes(
  redis: RedisClient,
  keyPrefix: string,
): Promise<WorkerNote[]> {
  const notes = await reachRedis(script.run(redis, [keyOf(keyPrefix)], ['', '', holdsMs]))
  return (notes as string[]).map((note) => JSON.parse(note) as WorkerNote)
}
