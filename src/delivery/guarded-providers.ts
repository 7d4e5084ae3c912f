/** All providers of the policy file, each with its guard. */
import type { Channel } from '../base/channel.ts'
import type { Log } from '../base/log.ts'
import type { Metrics } from '../base/metrics.ts'
import type { Limiter } from '../limiter/index.ts'
import type { Provider } from '../providers/provider.ts'
import { createGuardedProvider, type WatchedProvider } from './guarded-provider.ts'
import { createSendPermits, type ProviderLimits } from './provider-limits.ts'

type Entries = Readonly<Record<string, ProviderLimits>>

export type GuardedProviders = ReadonlyMap<string, WatchedProvider>

/** Returns the providers by name. They connect with their first call. A reload changes `pace` and `quotas`. */
export function guardProviders(deps: {
  file: { providers: Entries }
  providers: readonly Provider[]
  /** The limiter for limits of providers. It gets its policies here. */
  limiter: Limiter
  onReload: (take: (file: { providers: Entries }) => void) => void
  metrics: Metrics
  log: Log
}): GuardedProviders {
  const { file, providers, limiter, onReload, metrics, log } = deps
  const { acquireSendPermit, setLimits } = createSendPermits(limiter, file.providers)
  onReload((file) => setLimits(file.providers))

  const guarded = providers.map((provider) => {
    const { name } = provider
    metrics.circuitOpen.set({ provider: name }, 0)
    const one = createGuardedProvider(provider, {
      acquireSendPermit,
      onCircuit(isOpen) {
        metrics.circuitOpen.set({ provider: name }, isOpen ? 1 : 0)
        log.circuitChanged(name, isOpen)
      },
      onFault: (noticeId, error) => log.jobFailed(noticeId, error),
    })
    return [name, one] as const
  })
  return new Map(guarded)
}

/** The sum over all providers, so that a slow provider cannot use up the capacity of the others. */
export function capacityOf(channel: Channel, guarded: GuardedProviders): number {
  const able = [...guarded.values()].filter(({ channels }) => channels.includes(channel))
  return able.reduce((sum, { capacity }) => sum + capacity, 1)
}
