/**
 * Notes of running workers with the state of their providers. Each process has its own circuit breakers. So every worker
 * writes their state to Redis regularly, and a note that is not repeated expires.
 */
import { randomUUID } from 'node:crypto'
import { reachRedis } from '../base/reach-redis.ts'
import { loadScript, type RedisClient } from '../base/redis-script.ts'
import { repeat } from '../base/repeat.ts'

/** Whether a provider can be called now. `circuit`: its breaker is open. `paused`: it asked to wait. */
export type ProviderState = 'ready' | 'paused' | 'circuit'

export interface WorkerNote {
  providers: Readonly<Record<string, ProviderState>>
}

const everyMs = 3_000
/** Long enough that a worker stays listed when notes are late or one is lost. */
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
    // The next note replaces a lost one.
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

/** Notes of all running workers. Throws Unavailable. */
export async function readWorkerNotes(
  redis: RedisClient,
  keyPrefix: string,
): Promise<WorkerNote[]> {
  const notes = await reachRedis(script.run(redis, [keyOf(keyPrefix)], ['', '', holdsMs]))
  return (notes as string[]).map((note) => JSON.parse(note) as WorkerNote)
}
