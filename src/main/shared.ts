/**
 * The parts that API and worker share, in the order of their opening: log and metrics, servers, stores, limits. `closers`
 * closes all of them, the last opened first.
 */
import { closeWithinMs, createClosers } from '../base/closers.ts'
import { createLog } from '../base/log.ts'
import type { RedisClient } from '../base/redis-script.ts'
import { flushSpans } from '../base/traces.ts'
import { createCodeStore } from '../captcha/code-store.ts'
import { createSecrets } from '../crypto/secrets.ts'
import { createLimiter, type Limiter, type RawPolicies } from '../limiter/index.ts'
import { createBacklog } from '../notice/backlog.ts'
import { claimTtlFor } from '../notice/claim.ts'
import { createEventOutbox } from '../notice/event-outbox.ts'
import { createOptOuts } from '../notice/opt-outs.ts'
import { createProducer } from '../notice/producer.ts'
import { createReceipts } from '../notice/receipts.ts'
import { createNoticeStore } from '../notice/store.ts'
import { createSuppressions } from '../notice/suppressions.ts'
import { createSandboxOutbox } from '../providers/sandbox/outbox.ts'
import { connectServers } from '../storage/servers.ts'
import { wantedEventTypes } from '../upkeep/event-dispatcher.ts'
import type { Config } from './load-config.ts'
import { createMetrics, type ProcessName } from './metrics.ts'
import { createLimits } from './reloadable-limits.ts'

/** Prefix of every Redis key. Tests use other values, so that their keys do not collide. */
export const defaultKeyPrefix = 'postern:'

export type Shared = Readonly<ReturnType<typeof openShared>>

export function openShared(
  config: Config,
  processName: ProcessName,
  keyPrefix: string,
  /** For simulations: replaces the clock of Redis in the limits. */
  clock?: () => number,
) {
  const { environment, file } = config
  const closers = createClosers(closeWithinMs + environment.DRAIN_SECONDS * 1_000)
  const metrics = createMetrics(processName, Object.keys(file.providers))
  const log = createLog({
    level: environment.LOG_LEVEL,
    process: processName,
    onDropped: (lines) => metrics.logDropped.inc({}, lines),
    onBackgroundFailed: (task) => metrics.backgroundFailures.inc({ task }),
  })
  closers.onClose(() => log.close())
  closers.onClose(flushSpans)
  const secrets = createSecrets(environment.SECRET, environment.SECRET_PREVIOUS)
  const servers = connectServers(environment, keyPrefix, closers, log, {
    plansOnce: processName === 'worker',
  })
  const limits = createLimits(config, servers, secrets, metrics, closers, clock)
  const { database, redis, openRedis } = servers
  const { recipientHashes: hashesOf } = secrets
  const suppressFor = () => limits.file().recipients.suppress
  const wantedEvents = wantedEventTypes(file.events)
  const codes = createCodeStore(openRedis('code'), secrets, {
    ...{ keyPrefix, ttlMs: file.code.ttl, triesPerCode: file.code.triesPerCode },
  })
  closers.onClose(() => codes.close())
  const producer = createProducer(openRedis('producer'), keyPrefix)
  closers.onClose(() => producer.close())
  const hasSandbox = Object.values(file.providers).some(({ kind }) => kind === 'sandbox')
  const notices = createNoticeStore(database, {
    ...{ wantedEvents, suppressFor, claimTtlMs: claimTtlFor(file.delivery.timeout) },
    onConverted: (conversion, count) => metrics.conversions.inc(conversion, count),
  })
  const events = createEventOutbox(database)
  const stores = {
    ...{ notices, events, codes, producer },
    suppressions: createSuppressions(database, suppressFor, hashesOf),
    optOuts: createOptOuts({ database, metrics, hashesOf }),
    receipts: createReceipts(database, metrics, wantedEvents, log.receiptUnused),
    backlog: createBacklog({ producer, notices, events }),
    /** Types of events that are written. */
    wantedEvents,
    /** Messages of the sandbox provider; undefined without one. */
    outbox: hasSandbox ? createSandboxOutbox(redis, keyPrefix) : undefined,
  }
  return { config, closers, log, metrics, secrets, servers, stores, limits }
}

/** Sets the gauges that are measured before a scrape. `look` returns why this process can't work now. */
export async function measure(
  { metrics, stores }: Pick<Shared, 'metrics' | 'stores'>,
  look: () => Promise<{ readonly reasons: readonly string[] }>,
): Promise<void> {
  const [{ reasons }] = await Promise.all([look(), stores.backlog.measure(metrics)])
  metrics.ready.set(reasons.length === 0 ? 1 : 0)
}

/** A limiter with separate names of Redis keys, so that they do not collide with policies. */
export function openLimiter(
  { servers, secrets, closers }: Shared,
  redis: RedisClient,
  prefix: string,
  policies: RawPolicies,
): Limiter {
  const keyPrefix = `${servers.keyPrefix}${prefix}`
  const limiter = createLimiter({ policies, redis, keyPrefix, subjectKey: secrets.limiterKey })
  closers.onClose(() => limiter.close())
  return limiter
}
