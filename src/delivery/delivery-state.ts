/** The state of queues, workers and paces, for the console. */
import type { RedisClient } from '../base/redis-script.ts'
import type { Limiter, WindowState } from '../limiter/index.ts'
import type { Backlog } from '../notice/backlog.ts'
import { type ProviderLimits, providerPolicies } from './provider-limits.ts'
import { readWorkerNotes } from './worker-notes.ts'

type Entries = Readonly<Record<string, ProviderLimits>>

export function createDeliveryState(deps: {
  backlog: { read(): Promise<Backlog> }
  redis: RedisClient
  keyPrefix: string
  /** A limiter over the same counts as the workers' limiter for providers. Its policies follow each reload. */
  paces: Pick<Limiter, 'peek' | 'setPolicies'>
  file: () => { providers: Entries }
  onReload: (take: (file: { providers: Entries }) => void) => void
}) {
  const { backlog, redis, keyPrefix, paces, file, onReload } = deps
  onReload(({ providers }) => paces.setPolicies(providerPolicies(providers)))

  return {
    /** Throws Unavailable. */
    async state() {
      const [waiting, workers] = await Promise.all([
        backlog.read(),
        readWorkerNotes(redis, keyPrefix),
      ])
      return { ...waiting, workers }
    },
    /** The used share of a provider's pace; empty for a provider without pace. */
    async paceOf(name: string): Promise<readonly WindowState[]> {
      const hasPace = file().providers[name]?.pace !== undefined
      return hasPace ? paces.peek(name, { name, to: '', calls: 1 }, 'pace') : []
    },
  }
}
