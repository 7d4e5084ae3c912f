/** The worker role: delivery, and all background tasks. */
import { channels } from '../base/channel.ts'
import { createDeliver } from '../delivery/deliver.ts'
import { capacityOf, guardProviders } from '../delivery/guarded-providers.ts'
import { createProviderOrder } from '../delivery/provider-order.ts'
import { createResolveUnknown } from '../delivery/resolve-unknown.ts'
import { retryPolicies } from '../delivery/retry.ts'
import { type DeliveryWorker, startDeliveryWorker } from '../delivery/worker.ts'
import { startWorkerNotes } from '../delivery/worker-notes.ts'
import { createLimiter } from '../limiter/index.ts'
import { removeOldKeys } from '../notice/idempotency.ts'
import { createProvider } from '../providers/kinds.ts'
import type { SandboxDeps } from '../providers/sandbox/index.ts'
import { startEventDispatcher } from '../upkeep/event-dispatcher.ts'
import { startReconciler } from '../upkeep/reconcile.ts'
import { startRetention } from '../upkeep/retention.ts'
import type { Shared } from './shared.ts'

/** Starts at once to deliver the notices on the queue. */
export function startWorkerRole(shared: Shared): DeliveryWorker[] {
  const { closers, log, metrics, secrets } = shared
  const { file, templates, providers } = shared.config
  const { redis, openRedis, keyPrefix } = shared.servers
  const { notices, receipts, codes, outbox } = shared.stores
  const providerLimiter = createLimiter({
    policies: {},
    redis: openRedis('limiter'),
    keyPrefix: `${keyPrefix}pace:`,
    subjectKey: secrets.limiterKey,
  })
  closers.onClose(() => providerLimiter.close())
  const deps: SandboxDeps = {
    timeoutMs: file.delivery.timeout,
    concurrency: file.delivery.concurrency,
    clock: Date.now,
    onReceipt: (from, receipt) => receipts.take(from, [receipt]),
    ...(outbox ? { outbox } : {}),
  }
  const guarded = guardProviders({
    file,
    providers: [...providers].map(([name, setUp]) => createProvider(name, setUp, deps)),
    limiter: providerLimiter,
    onReload: shared.limits.onReload,
    metrics,
    log,
  })
  for (const provider of guarded.values()) closers.onClose(() => provider.close())
  const timeoutMs = file.delivery.timeout
  for (const facts of templates.smsLengths(file.code.length)) {
    if (facts.segments > 1) log.longTemplate(facts)
  }
  const deliver = createDeliver({
    store: notices,
    templates,
    providersFor: createProviderOrder(file.routes, guarded),
    resolveUnknown: createResolveUnknown({ findReceipt: receipts.find, timeoutMs }),
    unseal: secrets.unseal,
    settleCode: ({ app, scene, channel, recipient, id }) =>
      codes.settle({ app, scene: scene ?? 'default', channel, to: recipient }, id),
    retry: retryPolicies(file.delivery),
    timeoutMs,
    metrics,
    log,
  })
  startUpkeep(shared)
  const notes = startWorkerNotes({
    redis,
    keyPrefix,
    look: () => Object.fromEntries([...guarded].map(([name, one]) => [name, one.state()])),
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
    // Notices that wait for a provider go back on the queue, so that the workers end in time.
    for (const one of guarded.values()) one.stopWaiting()
    await Promise.all(closing)
  })
  return workers
}

function startUpkeep({ closers, config: { file }, log, metrics, servers, stores }: Shared): void {
  const reconciler = startReconciler({
    store: stores.notices,
    producer: stores.producer,
    sweepReceipts: stores.receipts.sweep,
    metrics,
    log,
  })
  closers.onClose(() => reconciler.stop())
  if (file.events.length > 0) {
    const dispatcher = startEventDispatcher({
      store: stores.events,
      receivers: file.events,
      metrics,
      log,
    })
    closers.onClose(() => dispatcher.stop())
  }
  const retention = startRetention({
    database: servers.database,
    policy: { recipientMs: file.retention.recipient, rowsMs: file.retention.rows },
    removeOldKeys: () => removeOldKeys(servers.database),
    log,
  })
  closers.onClose(() => retention.stop())
}
