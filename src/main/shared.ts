/**
 * What API and worker are both built on, in the order in which it is opened: log and metrics, servers,
 * stores, limits. Everything that is opened here is closed by `closers`, last opened first.
 */
import { eventTypes } from '../base/event-types.ts'
import { createLog, type Log } from '../base/log.ts'
import { createCodeStore } from '../captcha/code-store.ts'
import { changedSections } from '../config/changed-sections.ts'
import type { PolicyFile } from '../config/policy-schema.ts'
import { createSecrets, type Secrets } from '../crypto/secrets.ts'
import { openDatabase } from '../db/database.ts'
import { wantedEventTypes } from '../events/dispatcher.ts'
import { createEventOutbox } from '../events/outbox.ts'
import { createLimiter, type Policies, parsePolicies, type RawPolicies } from '../limiter/index.ts'
import { createMetrics, type Metrics } from '../metrics/metrics.ts'
import { createNoticeStore } from '../notice/store.ts'
import { createSandboxOutbox } from '../providers/sandbox/outbox.ts'
import { createProducer } from '../queue/producer.ts'
import { createReceipts } from '../receipt/receipts.ts'
import { closeRedis, connectRedis } from '../redis/connect.ts'
import { type Closers, createClosers } from './closers.ts'
import type { Config } from './load-config.ts'

/** Before every key in Redis; another value in tests, so that files don't meet. */
export const defaultKeyPrefix = 'postern:'

export interface Shared {
  readonly config: Config
  readonly closers: Closers
  readonly log: Log
  readonly metrics: Metrics
  readonly secrets: Secrets
  readonly servers: Servers
  readonly stores: Stores
  readonly limits: Limits
}

export function openShared(
  config: Config,
  processName: 'api' | 'worker' | 'demo' | 'embedded',
  keyPrefix: string,
): Shared {
  const { environment, file } = config
  const closers = createClosers()
  const metrics = createMetrics({ process: processName, providers: Object.keys(file.providers) })
  const log = createLog({
    level: environment.LOG_LEVEL,
    process: processName,
    onDropped: (lines) => metrics.logDropped.inc(lines),
  })
  closers.onClose(() => log.close())
  const secrets = createSecrets(environment.SECRET, environment.SECRET_PREVIOUS)
  const servers = connectServers(config, keyPrefix, closers, log)
  const stores = openStores(file, servers, secrets, metrics, closers)
  const limits = createLimits(config, servers, secrets, metrics, closers)
  return { config, closers, log, metrics, secrets, servers, stores, limits }
}

export type Servers = ReturnType<typeof connectServers>

function connectServers({ environment }: Config, keyPrefix: string, closers: Closers, log: Log) {
  const openRedis = (role: Parameters<typeof connectRedis>[1]) => {
    const client = connectRedis(environment.REDIS_URL, role, (error) =>
      log.connectionFailed('redis', error),
    )
    closers.onClose(() => closeRedis(client))
    return client
  }
  const database = openDatabase(environment.DATABASE_URL, {
    maxConnections: 10,
    onError: (error) => log.connectionFailed('postgresql', error),
  })
  closers.onClose(() => database.close())
  return { database, redis: openRedis('command'), openRedis, keyPrefix }
}

export type Stores = ReturnType<typeof openStores>

function openStores(
  file: PolicyFile,
  { database, redis, openRedis, keyPrefix }: Servers,
  secrets: Secrets,
  metrics: Metrics,
  closers: Closers,
) {
  const wantedEvents = wantedEventTypes(file.events, eventTypes)
  const codes = createCodeStore(openRedis('code'), secrets, {
    keyPrefix,
    ttlMs: file.code.ttl,
    triesPerCode: file.code.triesPerCode,
  })
  closers.onClose(() => codes.close())
  const producer = createProducer(openRedis('producer'), keyPrefix)
  closers.onClose(() => producer.close())
  const hasSandbox = Object.values(file.providers).some(({ kind }) => kind === 'sandbox')
  return {
    notices: createNoticeStore(database, {
      claimMs: claimMsFor(file.delivery.timeout),
      wantedEvents,
    }),
    receipts: createReceipts(database, metrics, wantedEvents),
    events: createEventOutbox(database),
    /** Of which events are written. */
    wantedEvents,
    codes,
    producer,
    /** Where the sandbox provider keeps its messages; undefined without one. */
    outbox: hasSandbox ? createSandboxOutbox(redis, keyPrefix) : undefined,
  }
}

/** A claim outlives one provider call and its bookkeeping; it is kept up before each further call. */
const claimMsFor = (callMs: number) => callMs * 2 + 2_000

/** Those of queue and tables, measured at each scrape; every process says the same of them. */
export async function measureGauges(
  metrics: Metrics,
  { producer, notices, events }: Stores,
): Promise<void> {
  await Promise.all([
    metrics.queueDepth.measure(producer.depths),
    metrics.oldestPendingSeconds.measure(notices.oldestOpenSeconds),
    metrics.scheduled.measure(async () => [{ value: await notices.scheduledCount() }]),
    metrics.oldestEventSeconds.measure(async () => [{ value: await events.oldestSeconds() }]),
  ])
}

export type Limits = ReturnType<typeof createLimits>

/** The limiter, and what a SIGHUP may change without a restart. */
function createLimits(
  config: Config,
  { openRedis, keyPrefix }: Servers,
  secrets: Secrets,
  metrics: Metrics,
  closers: Closers,
) {
  /** As it is in force: of what `reload` was given, only what it could take. */
  let running = config.file
  let policies = parsedPolicies(running)
  const reloaders: ((next: PolicyFile) => void)[] = []
  const limiter = createLimiter({
    policies: running.policies as RawPolicies,
    redis: openRedis('limiter'),
    keyPrefix,
    subjectKey: secrets.limiterKey,
    onRefused: (labels) => metrics.rejected.inc(labels),
    onObserved: (labels) => metrics.observed.inc(labels),
  })
  closers.onClose(() => limiter.close())
  metrics.startRulesAtZero(policies)
  reloaders.push((next) => {
    limiter.setPolicies(next.policies as RawPolicies)
    policies = parsedPolicies(next)
    metrics.startRulesAtZero(policies)
  })

  return {
    limiter,
    /** The rules as they are now. */
    policies: () => policies,
    /** Called with the file as it is in force from now on. */
    onReload(take: (next: PolicyFile) => void): void {
      reloaders.push(take)
    },
    /** Takes new rules without losing counts, and says which sections it took and which it could not. */
    reload(next: Config): { reloaded: string[]; needRestart: string[] } {
      const before = running
      running = withRulesOf(before, next.file)
      for (const take of reloaders) take(running)
      const needRestart = changedSections(running, next.file)
      if (next.templates.digest !== config.templates.digest) needRestart.push('templates')
      return {
        reloaded: changedSections(before, running),
        needRestart: [...new Set(needRestart)],
      }
    },
  }
}

/** What `reload` takes over: the policies, and the limits of providers that were there before. */
function withRulesOf(running: PolicyFile, next: PolicyFile): PolicyFile {
  const providers = Object.entries(running.providers).map(([name, entry]) => {
    const { pace, quotas } = next.providers[name] ?? entry
    return [name, { ...entry, pace, quotas }] as const
  })
  return { ...running, policies: next.policies, providers: Object.fromEntries(providers) }
}

/** Checked when the file was read. */
function parsedPolicies({ policies }: PolicyFile): Policies {
  const parsed = parsePolicies(policies)
  return parsed.ok ? parsed.policies : {}
}
