/**
 * What API and worker share: connections, stores, the limiter. Everything that is opened here is closed
 * by `closers`, last opened first.
 */
import { eventTypes } from '../base/event-types.ts'
import { createLog } from '../base/log.ts'
import { createCodeStore } from '../captcha/code-store.ts'
import { changedSections, type PolicyFile } from '../config/policy-file.ts'
import { createSecrets } from '../crypto/secrets.ts'
import { openDatabase } from '../db/database.ts'
import { wantedEventTypes } from '../events/dispatcher.ts'
import { createEventOutbox } from '../events/outbox.ts'
import { createLimiter, type Policies, parsePolicies, type RawPolicies } from '../limiter/index.ts'
import { createMetrics } from '../metrics/metrics.ts'
import { createNoticeStore } from '../notice/store.ts'
import { createSandboxOutbox } from '../providers/sandbox/outbox.ts'
import { createProducer } from '../queue/producer.ts'
import { createReceipts } from '../receipt/receipts.ts'
import { closeRedis, connectRedis } from '../redis/connect.ts'
import { createClosers } from './closers.ts'
import type { Config } from './load-config.ts'

export type Parts = ReturnType<typeof openParts>

/** Before every key in Redis; another value in tests, so that files don't meet. */
export const defaultKeyPrefix = 'postern:'

export function openParts(
  config: Config,
  processName: 'api' | 'worker' | 'demo' | 'embedded',
  keyPrefix: string,
) {
  const { environment, file, templates } = config
  const closers = createClosers()
  const metrics = createMetrics({
    process: processName,
    providers: Object.keys(file.providers),
  })
  const log = createLog({
    level: environment.LOG_LEVEL,
    process: processName,
    onDropped: (lines) => metrics.logDropped.inc(lines),
  })
  closers.onClose(() => log.close())
  const secrets = createSecrets(environment.SECRET, environment.SECRET_PREVIOUS)

  const onRedisError = (error: Error) => log.connectionFailed('redis', error)
  const openRedis = (role: Parameters<typeof connectRedis>[1]) => {
    const client = connectRedis(environment.REDIS_URL, role, onRedisError)
    closers.onClose(() => closeRedis(client))
    return client
  }
  const database = openDatabase(environment.DATABASE_URL, {
    maxConnections: 10,
    onError: (error) => log.connectionFailed('postgresql', error),
  })
  closers.onClose(() => database.close())

  const redis = openRedis('command')
  const wantedEvents = wantedEventTypes(file.events, eventTypes)
  const store = createNoticeStore(database, {
    claimMs: claimMsFor(file.delivery.timeout),
    wantedEvents,
  })
  const receipts = createReceipts(database, metrics, wantedEvents)
  const events = createEventOutbox(database)
  const codes = createCodeStore(openRedis('code'), secrets, {
    keyPrefix,
    ttlMs: file.code.ttl,
    triesPerCode: file.code.triesPerCode,
  })
  closers.onClose(() => codes.close())
  const producer = createProducer(openRedis('producer'), keyPrefix)
  closers.onClose(() => producer.close())

  const hasSandbox = Object.values(file.providers).some(({ kind }) => kind === 'sandbox')
  const outbox = hasSandbox ? createSandboxOutbox(redis, keyPrefix) : undefined

  /** As it is in force: of what `reload` was given, only what it could take. */
  let running = file
  const reloaders: ((next: PolicyFile) => void)[] = []
  let rules = parsedPolicies(file)
  metrics.startRulesAtZero(rules)
  const limiter = createLimiter({
    policies: file.policies as RawPolicies,
    redis: openRedis('limiter'),
    keyPrefix,
    subjectKey: secrets.limiterKey,
    onRefused: (labels) => metrics.rejected.inc(labels),
    onObserved: (labels) => metrics.observed.inc(labels),
  })
  closers.onClose(() => limiter.close())
  reloaders.push((next) => {
    limiter.setPolicies(next.policies as RawPolicies)
    rules = parsedPolicies(next)
    metrics.startRulesAtZero(rules)
  })

  return {
    environment,
    file,
    templates,
    keyPrefix,
    closers,
    log,
    metrics,
    secrets,
    database,
    redis,
    openRedis,
    wantedEvents,
    store,
    receipts,
    events,
    codes,
    producer,
    outbox,
    limiter,
    /** Those of queue and tables, measured at each scrape; every process says the same of them. */
    async measureGauges(): Promise<void> {
      await Promise.all([
        metrics.queueDepth.measure(producer.depths),
        metrics.oldestPendingSeconds.measure(store.oldestOpenSeconds),
        metrics.scheduled.measure(async () => [{ value: await store.scheduledCount() }]),
        metrics.oldestEventSeconds.measure(async () => [{ value: await events.oldestSeconds() }]),
      ])
    },
    /** The rules as they are now. */
    policies: () => rules,
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
      if (next.templates.digest !== templates.digest) needRestart.push('templates')
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

/** A claim outlives one provider call and its bookkeeping; it is kept up before each further call. */
const claimMsFor = (callMs: number) => callMs * 2 + 2_000

/** Checked when the file was read. */
function parsedPolicies({ policies }: PolicyFile): Policies {
  const parsed = parsePolicies(policies)
  return parsed.ok ? parsed.policies : {}
}
