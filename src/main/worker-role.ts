/** The worker role: delivery, and everything that runs by itself. */
import { type Channel, channels } from '../base/channel.ts'
import type { PolicyFile } from '../config/policy-schema.ts'
import { createDeliver } from '../delivery/deliver.ts'
import { createGuardedProvider, type WatchedProvider } from '../delivery/guarded-provider.ts'
import {
  type AcquireSendPermit,
  createSendPermits,
  providerPolicies,
} from '../delivery/provider-limits.ts'
import { createProviderOrder } from '../delivery/provider-order.ts'
import { createResolveUnknown } from '../delivery/resolve-unknown.ts'
import { captchaPauses, noticePauses } from '../delivery/retry.ts'
import { type DeliveryWorker, startDeliveryWorker } from '../delivery/worker.ts'
import { startWorkerNotes } from '../delivery/worker-notes.ts'
import { createLimiter } from '../limiter/index.ts'
import { createIdempotency } from '../notice/idempotency.ts'
import { findProviderKind } from '../providers/index.ts'
import { startEventDispatcher } from '../upkeep/event-dispatcher.ts'
import { startReconciler } from '../upkeep/reconcile.ts'
import { startRetention } from '../upkeep/retention.ts'
import type { Shared } from './shared.ts'

/** Begins at once to deliver what is on the queue. */
export function startWorkerRole(shared: Shared): DeliveryWorker[] {
  const { closers, log, metrics, secrets } = shared
  const { file, templates } = shared.config
  const { database, redis, openRedis, keyPrefix } = shared.servers
  const { notices, receipts, events, codes, producer } = shared.stores
  const guarded = guardProviders(shared)
  const { tries, unknownRetries, timeout: timeoutMs } = file.delivery
  for (const facts of templates.smsLengths(file.code.length)) {
    if (facts.segments > 1) log.longTemplate(facts)
  }
  const deliver = createDeliver({
    store: notices,
    templates,
    providersFor: createProviderOrder(file.routes, guarded),
    resolveUnknown: createResolveUnknown({ findReceipt: receipts.find, timeoutMs }),
    secrets,
    settleCode: ({ app, scene, channel, recipient, id }) =>
      codes.settle({ app, scene: scene ?? 'default', channel, to: recipient }, id),
    retry: {
      captcha: { tries, unknownRetries: 1, ...captchaPauses },
      notice: { tries, unknownRetries, ...noticePauses },
    },
    timeoutMs,
    metrics,
    log,
  })
  const reconciler = startReconciler({
    store: notices,
    producer,
    sweepReceipts: receipts.sweep,
    metrics,
    log,
  })
  closers.onClose(() => reconciler.stop())
  if (file.events.length > 0) {
    const dispatcher = startEventDispatcher({ store: events, receivers: file.events, metrics, log })
    closers.onClose(() => dispatcher.stop())
  }
  const retention = startRetention({
    database,
    policy: { recipientMs: file.retention.recipient, rowsMs: file.retention.rows },
    removeOldKeys: createIdempotency(database).removeOld,
    log,
  })
  closers.onClose(() => retention.stop())
  const notes = startWorkerNotes({
    redis,
    keyPrefix,
    look: () => ({
      providers: Object.fromEntries([...guarded].map(([name, one]) => [name, one.state()])),
    }),
  })
  closers.onClose(() => notes.stop())
  const workers = channels.map((channel) => {
    return startDeliveryWorker({
      channel,
      connection: openRedis('worker'),
      keyPrefix,
      concurrency: capacityOf(channel, guarded),
      deliver,
      log,
    })
  })
  closers.onClose(async () => {
    const closing = workers.map((worker) => worker.close())
    // What still waits for a provider goes back on the queue, so that they end in time.
    for (const one of guarded.values()) one.stopWaiting()
    await Promise.all(closing)
  })
  return workers
}

/** A slow provider with all its share in hand leaves that of the others free. */
function capacityOf(channel: Channel, guarded: ReadonlyMap<string, WatchedProvider>): number {
  const able = [...guarded.values()].filter(({ channels }) => channels.includes(channel))
  return able.reduce((sum, { capacity }) => sum + capacity, 1)
}

/** Every provider of the policy file, guarded; none of them is connected yet. */
function guardProviders(shared: Shared): Map<string, WatchedProvider> {
  const { closers, log, metrics, secrets, limits } = shared
  const { file } = shared.config
  const { openRedis, keyPrefix } = shared.servers
  const { receipts, outbox } = shared.stores
  const providerLimiter = createLimiter({
    policies: {},
    redis: openRedis('limiter'),
    keyPrefix: `${keyPrefix}pace:`,
    subjectKey: secrets.limiterKey,
  })
  closers.onClose(() => providerLimiter.close())
  const permits = new Map<string, AcquireSendPermit>()
  function setLimits({ providers }: PolicyFile): void {
    const policies = providerPolicies(providers)
    providerLimiter.setPolicies(policies)
    for (const name of Object.keys(providers)) {
      permits.set(name, createSendPermits(name, providerLimiter, name in policies))
    }
  }
  setLimits(file)
  limits.onReload(setLimits)
  const guarded = new Map<string, WatchedProvider>()
  for (const [name, { kind, settings }] of Object.entries(file.providers)) {
    const known = findProviderKind(kind)
    if (!known) throw new Error(`there is no provider kind ${kind}`)
    const provider = known.create(name, known.settings.parse(settings), {
      timeoutMs: file.delivery.timeout,
      concurrency: file.delivery.concurrency,
      clock: Date.now,
      onReceipt: (from, receipt) => receipts.take(from, [receipt]),
      ...(outbox ? { outbox } : {}),
    })
    closers.onClose(() => provider.close())
    metrics.circuitOpen.set({ provider: name }, 0)
    const one = createGuardedProvider(provider, {
      acquireSendPermit: (...turn) => (permits.get(name) as AcquireSendPermit)(...turn),
      onCircuit(isOpen) {
        metrics.circuitOpen.set({ provider: name }, isOpen ? 1 : 0)
        log.circuitChanged(name, isOpen)
      },
      onFault: (noticeId, error) => log.jobFailed(noticeId, error),
    })
    guarded.set(name, one)
  }
  return guarded
}
