/** The worker role: delivery, and everything that runs by itself. */
import type { PolicyFile } from '../config/policy-file.ts'
import { createDeliver } from '../delivery/deliver.ts'
import { createGate, type Gate } from '../delivery/gate.ts'
import { createTakeTurn, pacePolicies, type TakeTurn } from '../delivery/pace.ts'
import { captchaPauses, noticePauses } from '../delivery/retry.ts'
import { createRouter } from '../delivery/route.ts'
import { createSettle } from '../delivery/settle.ts'
import { type DeliveryWorker, startDeliveryWorker } from '../delivery/worker.ts'
import { startEventCarrier } from '../events/carry.ts'
import { createLimiter } from '../limiter/index.ts'
import { createIdempotency } from '../notice/idempotency.ts'
import { startReconciler } from '../notice/reconcile.ts'
import { startRetention } from '../notice/retention.ts'
import { findProviderKind } from '../providers/index.ts'
import { type QueuedChannel, queuedChannels } from '../queue/contract.ts'
import type { Parts } from './parts.ts'

/** Begins at once to carry what is on the queue. */
export function startWorkerRole(parts: Parts): DeliveryWorker[] {
  const { file, templates, keyPrefix, closers, log, metrics, secrets, database } = parts
  const { openRedis, store, receipts, events, codes, producer } = parts
  const gates = openGates(parts)
  const { tries, unknownRetries, timeout: timeoutMs } = file.delivery
  for (const facts of templates.smsLengths(file.code.length)) {
    if (facts.segments > 1) log.longTemplate(facts)
  }
  const deliver = createDeliver({
    store,
    templates,
    routeOf: createRouter(file.routes, gates),
    settle: createSettle({ earlyReceipts: receipts, timeoutMs }),
    secrets,
    isCodeCurrent: ({ app, scene, channel, recipient, id }) =>
      codes.settle({ app, scene: scene ?? 'default', channel, to: recipient }, id),
    retry: {
      captcha: { tries, unknownRetries: 1, ...captchaPauses },
      notice: { tries, unknownRetries, ...noticePauses },
    },
    timeoutMs,
    metrics,
    log,
  })
  const reconciler = startReconciler({ store, producer, receipts, metrics, log })
  closers.onClose(() => reconciler.stop())
  if (file.events.length > 0) {
    const carrier = startEventCarrier({ store: events, receivers: file.events, metrics, log })
    closers.onClose(() => carrier.stop())
  }
  const retention = startRetention({
    database,
    policy: { recipientMs: file.retention.recipient, rowsMs: file.retention.rows },
    removeOldKeys: createIdempotency(database).removeOld,
    log,
  })
  closers.onClose(() => retention.stop())
  const workers = queuedChannels.map((channel) => {
    return startDeliveryWorker({
      channel,
      connection: openRedis('worker'),
      keyPrefix,
      concurrency: capacityOf(channel, gates),
      deliver,
      log,
    })
  })
  closers.onClose(async () => {
    const closing = workers.map((worker) => worker.close())
    // What still waits for a provider goes back on the queue, so that they end in time.
    for (const gate of gates.values()) gate.stopWaiting()
    await Promise.all(closing)
  })
  return workers
}

/** A slow provider with all its share in hand leaves that of the others free. */
function capacityOf(channel: QueuedChannel, gates: ReadonlyMap<string, Gate>): number {
  const carriers = [...gates.values()].filter(({ channels }) => channels.includes(channel))
  return carriers.reduce((sum, { capacity }) => sum + capacity, 1)
}

/** Every provider of the policy file behind its gate, none of them connected yet. */
function openGates(parts: Parts): Map<string, Gate> {
  const { file, keyPrefix, closers, log, metrics, secrets, openRedis, receipts, outbox } = parts
  const paceLimiter = createLimiter({
    policies: {},
    redis: openRedis('limiter'),
    keyPrefix: `${keyPrefix}pace:`,
    subjectKey: secrets.limiterKey,
  })
  closers.onClose(() => paceLimiter.close())
  const turns = new Map<string, TakeTurn>()
  function setPaces({ providers }: PolicyFile): void {
    const policies = pacePolicies(providers)
    paceLimiter.setPolicies(policies)
    for (const name of Object.keys(providers)) {
      turns.set(name, createTakeTurn(name, paceLimiter, name in policies))
    }
  }
  setPaces(file)
  parts.onReload(setPaces)
  const gates = new Map<string, Gate>()
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
    const gate = createGate(provider, {
      takeTurn: (...turn) => (turns.get(name) as TakeTurn)(...turn),
      onCircuit(isOpen) {
        metrics.circuitOpen.set({ provider: name }, isOpen ? 1 : 0)
        log.circuitChanged(name, isOpen)
      },
      onFault: (noticeId, error) => log.jobFailed(noticeId, error),
    })
    gates.set(name, gate)
  }
  return gates
}
