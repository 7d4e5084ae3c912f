/** Delivery of the notices on the queues: each provider with its guard, and one worker per queue. */
import type { ConnectionOptions } from 'bullmq'
import type { Channel } from '../base/channel.ts'
import type { Closers } from '../base/closers.ts'
import type { RedisClient } from '../base/redis-script.ts'
import type { Limiter } from '../limiter/index.ts'
import { queues } from '../notice/job.ts'
import type { Producer } from '../notice/producer.ts'
import type { Provider } from '../providers/provider.ts'
import { createDeliver, type DeliverDeps } from './deliver.ts'
import { createGuardedProvider, type WatchedProvider } from './guarded-provider.ts'
import { createSendPermits, type ProviderLimits } from './provider-limits.ts'
import { createProviderOrder, type Routes, type Serves } from './provider-order.ts'
import { createResolveUnknown, type FindReceipt } from './resolve-unknown.ts'
import { retryPolicies } from './retry.ts'
import { type DeliveryWorker, startDeliveryWorker } from './worker.ts'
import { startWorkerNotes } from './worker-notes.ts'

/** The sections of the policy file that delivery needs. */
interface Sections {
  providers: Readonly<Record<string, ProviderLimits>>
  routes: Routes
  delivery: { tries: number; unknownRetries: number; timeout: number }
}

/**
 * Time for the answer to a message that was handed over, in addition to the time limit of a call. Some mail servers scan a
 * mail for many seconds before they accept it. The call keeps its slot meanwhile, so this time is not longer.
 */
export const answerTimeoutFor = (timeoutMs: number) => 6 * timeoutMs

type GuardedProviders = ReadonlyMap<string, WatchedProvider>

interface DeliveryDeps
  extends Omit<
    DeliverDeps,
    'providersFor' | 'resolveUnknown' | 'retry' | 'timeoutMs' | 'answerTimeoutMs'
  > {
  file: Sections
  providers: readonly Provider[]
  /** The kinds of Postern. */
  ownKinds: ReadonlySet<string>
  /** The limiter for limits of providers. It gets its policies here. */
  limiter: Limiter
  /** Calls `take` after each reload. `pace` and `quotas` of the providers can change. */
  onReload: (take: (file: Pick<Sections, 'providers'>) => void) => void
  findReceipt: FindReceipt
  redis: RedisClient
  /** All workers share it. BullMQ adds one for the blocking reads of each. */
  queueConnection: ConnectionOptions
  keyPrefix: string
  serves: Serves
  /** Puts notices back on the queue. */
  producer: Pick<Producer, 'add'>
  closers: Closers
}

/** Starts at once. The providers connect with their first call. */
export function startDelivery(deps: DeliveryDeps): DeliveryWorker[] {
  const { file, findReceipt, redis, queueConnection: connection, keyPrefix, closers } = deps
  const timeoutMs = file.delivery.timeout
  const guarded = guardProviders(deps)
  for (const provider of guarded.values()) closers.onClose(() => provider.close())
  const deliver = createDeliver({
    ...deps,
    providersFor: createProviderOrder(file.routes, guarded, deps.serves, deps.isEnabled),
    resolveUnknown: createResolveUnknown({ findReceipt }),
    retry: retryPolicies(file.delivery),
    timeoutMs,
    answerTimeoutMs: answerTimeoutFor(timeoutMs),
  })
  const notes = startWorkerNotes({
    redis,
    keyPrefix,
    look: () => Object.fromEntries([...guarded].map(([name, one]) => [name, one.state()])),
  })
  closers.onClose(() => notes.stop())
  const workers = queues.map((queue) => {
    const concurrency = capacityOf(queue.channel, guarded)
    return startDeliveryWorker({ ...deps, queue, connection, concurrency, deliver })
  })
  closers.onClose(async () => {
    const closing = workers.map((worker) => worker.close())
    // Notices that wait for a provider go back on the queue, so that the workers end in time.
    for (const one of guarded.values()) one.stopWaiting()
    await Promise.all(closing)
  })
  return workers
}

function guardProviders(deps: DeliveryDeps): GuardedProviders {
  const { file, providers, onReload, metrics, log } = deps
  const { acquireSendPermit, setLimits } = createSendPermits(deps, file.providers)
  onReload((file) => setLimits(file.providers))

  const guarded = providers.map((provider) => {
    const { name } = provider
    metrics.circuitOpen.set({ provider: name }, 0)
    metrics.postponing.set({ provider: name }, 0)
    const one = createGuardedProvider(provider, {
      acquireSendPermit,
      timeoutMs: file.delivery.timeout,
      answerTimeoutMs: answerTimeoutFor(file.delivery.timeout),
      isOwnKind: deps.ownKinds.has(provider.kind),
      onCircuit(isOpen) {
        metrics.circuitOpen.set({ provider: name }, isOpen ? 1 : 0)
        log.circuitChanged(name, isOpen)
      },
      onPostponing(isNearlyAll) {
        metrics.postponing.set({ provider: name }, isNearlyAll ? 1 : 0)
      },
      onFault: (noticeId, error) => log.jobFailed(noticeId, error),
    })
    return [name, one] as const
  })
  return new Map(guarded)
}

/** The sum over all providers, so that a slow provider cannot use up the capacity of the others. */
function capacityOf(channel: Channel, guarded: GuardedProviders): number {
  const able = [...guarded.values()].filter(({ channels }) => channels.includes(channel))
  return able.reduce((sum, { capacity }) => sum + capacity, 1)
}
