/** The worker role: delivery, and all background tasks. */
import { ownerOf } from '../captcha/code-names.ts'
import { answerTimeoutFor, startDelivery } from '../delivery/delivery.ts'
import type { DeliveryWorker } from '../delivery/worker.ts'
import { removeOldKeys } from '../notice/idempotency.ts'
import { createProvider, createServes, ownKinds } from '../providers/kinds.ts'
import type { SandboxDeps } from '../providers/sandbox/index.ts'
import { addressKindOf } from '../recipient/channels.ts'
import { startUpkeep } from '../upkeep/upkeep.ts'
import { composeSends } from './requests.ts'
import { openLimiter, type Shared } from './shared.ts'

/** Starts at once to deliver the notices on the queue. */
export function startWorkerRole(shared: Shared): DeliveryWorker[] {
  const { closers, log, metrics, secrets, limits } = shared
  const { file, templates, providers } = shared.config
  const { database, redis, openRedis, keyPrefix } = shared.servers
  const { notices, receipts, optOuts, codes, events, producer, outbox } = shared.stores
  const { length, ttl: ttlMs } = file.code
  for (const facts of templates.smsLengths({ length, ttlMs, links: file.links })) {
    if (facts.segments > 1) log.longTemplate(facts)
  }
  for (const warning of shared.config.warnings) log.carrierWarning(warning)
  const deps: SandboxDeps = {
    timeoutMs: file.delivery.timeout,
    answerMs: answerTimeoutFor(file.delivery.timeout),
    concurrency: file.delivery.concurrency,
    clock: Date.now,
    onReceipt: (from, receipt) => receipts.take(from, [receipt]),
    onOptOut: optOuts.take,
    ...(outbox ? { outbox } : {}),
  }
  const limiter = openLimiter(shared, openRedis('limiter'), 'pace:', {})
  const sends = Object.keys(file.workflows).length > 0 ? composeSends(shared) : undefined
  // Reported when a way is due.
  sends?.catch(() => {})
  const upkeep = startUpkeep({
    ...{ store: notices, producer, events, database, metrics, log, nowMs: database.nowMs },
    beginDue: sends && (async (due) => (await sends).workflows.beginDue(due)),
    receivers: file.events,
    sweepReceipts: receipts.sweep,
    policy: {
      recipientMs: file.retention.recipient,
      rowsMs: file.retention.rows,
      decisionsMs: file.retention.decisions,
      suppressionsMs: Math.max(
        file.retention.rows,
        ...Object.values(file.recipients.suppress).map(Number),
      ),
    },
    removeOldKeys: () => removeOldKeys(database),
  })
  closers.onClose(() => upkeep.stop())
  return startDelivery({
    ...{ file, templates, limiter, redis, keyPrefix, store: notices, metrics, log, closers },
    producer,
    serves: createServes(providers),
    providers: [...providers].map(([name, setUp]) => createProvider(name, setUp, deps)),
    ownKinds: new Set(ownKinds.map(({ kind }) => kind)),
    onReload: limits.onReload,
    isEnabled: limits.isEnabled,
    findReceipt: receipts.find,
    queueConnection: openRedis('worker'),
    unseal: secrets.unseal,
    withoutWebOtpIn: file.recipients.withoutWebOtp,
    settleCode: (notice) =>
      codes.settle(ownerOf(notice), notice.id, notice.verificationId ?? undefined),
    isRefused: ({ channel, recipient }) =>
      limits.file().recipients.refuse.has(addressKindOf(channel).mailboxOf(recipient)),
  })
}
