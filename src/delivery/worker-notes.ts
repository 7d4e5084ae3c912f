/**
 * Notes of running workers with the state of their providers. Each process has its own circuit breakers. So every worker
 * writes their state to Redis regularly, and a note that is not repeated expires.
 */
import { randomUUID } from 'node:crypto'
import { loadScript, type RedisClient } from '../base/redis-script.ts'
import { repeat } from '../base/repeat.ts'
import { reachRedis } from '../base/unavailable.ts'
import type { ProviderState } from './circuit.ts'

export interface WorkerNote {
  providers: Readonly<Record<string, ProviderState>>
  /** For each provider with the state `circuit`, the time since it began. Absent in notes of earlier builds. */
  openForMs?: Readonly<Record<string, number>>
}

const usualSpacingMs = 3_000
/** Time to live of a note. If a note is late or lost, the worker stays listed. */
const noteTtlMs = 15_000

const script = loadScript('note-worker-1')
const keyOf = (keyPrefix: string) => `${keyPrefix}workers`

export function startWorkerNotes(deps: {
  redis: RedisClient
  keyPrefix: string
  /** The state of each provider now. */
  look: () => WorkerNote['providers']
  spacingMs?: number
}) {
  const { redis, keyPrefix, look, spacingMs = usualSpacingMs } = deps
  const id = randomUUID()
  /** When each breaker was first seen open, by `performance.now()`. */
  let openedAtMs: Readonly<Record<string, number>> = {}

  function noteNow(): WorkerNote {
    const providers = look()
    const nowMs = performance.now()
    const open = Object.keys(providers).filter((name) => providers[name] === 'circuit')
    openedAtMs = Object.fromEntries(open.map((name) => [name, openedAtMs[name] ?? nowMs]))
    const openForMs = Object.fromEntries(
      open.map((name) => [name, Math.round(nowMs - (openedAtMs[name] ?? nowMs))]),
    )
    return { providers, openForMs }
  }

  const say = (note: string) => script.run(redis, [keyOf(keyPrefix)], [id, note, noteTtlMs])
  const saying = repeat(async () => {
    // The next note replaces a lost one.
    await say(JSON.stringify(noteNow())).catch(() => {})
    return spacingMs
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
  const notes = await reachRedis(script.run(redis, [keyOf(keyPrefix)], ['', '', noteTtlMs]))
  return (notes as string[]).map((note) => JSON.parse(note) as WorkerNote)
}
