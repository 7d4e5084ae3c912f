/**
 * The composition root: the only place that builds things, joins the rooms and closes what was opened.
 * An API process, a worker process and the demo (both in one) are the same parts in other numbers.
 */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createApiKeys } from '../access/api-keys.ts'
import { eventTypes } from '../base/event-types.ts'
import { newId } from '../base/ids.ts'
import { createLog } from '../base/log.ts'
import { createSecrets } from '../base/secrets.ts'
import { createCaptchaAnnouncer } from '../captcha/announce.ts'
import { createCheckCaptcha } from '../captcha/check.ts'
import { createCodeStore } from '../captcha/code-store.ts'
import { createSendCaptcha } from '../captcha/send.ts'
import type { PolicyFile } from '../config/policy-file.ts'
import { openDatabase } from '../db/database.ts'
import { pendingMigrations } from '../db/migrate.ts'
import { createDeliver } from '../delivery/deliver.ts'
import { createGate, type Gate } from '../delivery/gate.ts'
import { startLiveness } from '../delivery/liveness.ts'
import { createTakeTurn, pacePolicies } from '../delivery/pace.ts'
import { captchaPauses, noticePauses } from '../delivery/retry.ts'
import { createRouter } from '../delivery/route.ts'
import { createSettle } from '../delivery/settle.ts'
import { type DeliveryWorker, startDeliveryWorker } from '../delivery/worker.ts'
import { announcedTypes, startEventCarrier } from '../events/carry.ts'
import { createEventStore } from '../events/store.ts'
import { createAdminServer } from '../http/admin.ts'
import { createApp } from '../http/app.ts'
import { captchaRoutes } from '../http/captchas.ts'
import { noticeRoutes } from '../http/notices.ts'
import { openApiRoute } from '../http/openapi.ts'
import { type ReadReceipts, receiptRoute } from '../http/receipts.ts'
import { createRecipientNormaliser } from '../http/recipient.ts'
import { sandboxRoutes } from '../http/sandbox.ts'
import { createPublicServer } from '../http/server.ts'
import { createLimiter, type RawPolicies } from '../limiter/index.ts'
import { createMetrics } from '../metrics/metrics.ts'
import { createAdmission } from '../notice/admission.ts'
import { createNoticeCreator } from '../notice/create.ts'
import { createIdempotency } from '../notice/idempotency.ts'
import { createReceipts } from '../notice/receipts.ts'
import { startReconciler } from '../notice/reconcile.ts'
import { startRetention } from '../notice/retention.ts'
import { createSendNotice } from '../notice/send.ts'
import { createNoticeStore } from '../notice/store.ts'
import { findProviderKind } from '../providers/index.ts'
import { createSandboxOutbox } from '../providers/sandbox/outbox.ts'
import { queuedChannels } from '../queue/contract.ts'
import { createProducer } from '../queue/producer.ts'
import { closeRedis, connectRedis } from '../redis/connect.ts'
import { reasonsRedisNotReady } from '../redis/ready.ts'
import { createClosers } from './closers.ts'
import type { Config } from './load-config.ts'

export interface Roles {
  api: boolean
  worker: boolean
}

export interface Running {
  /** Where it listens: `api` (API role only) and `admin`. */
  readonly addresses: Readonly<Record<string, string>>
  readonly log: ReturnType<typeof createLog>
  /** Takes new rules without losing counts. */
  reload(file: PolicyFile): void
  /** Takes nothing new, ends what is under way, closes everything. */
  close(): Promise<void>
}

/** Before every key in Redis; another value in tests, so that files don't meet. */
const defaultKeyPrefix = 'postern:'

/** A claim outlives one provider call and its bookkeeping; it is kept up before each further call. */
const claimMsFor = (callMs: number) => callMs * 2 + 2_000

export async function start(
  config: Config,
  roles: Roles,
  options: { keyPrefix?: string } = {},
): Promise<Running> {
  const { environment, file, templates } = config
  const keyPrefix = options.keyPrefix ?? defaultKeyPrefix
  const processName = roles.api && roles.worker ? 'demo' : roles.api ? 'api' : 'worker'
  const closers = createClosers()
  const log = createLog({ level: environment.LOG_LEVEL, process: processName })
  closers.onClose(() => log.close())
  const metrics = createMetrics({ process: processName })
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
  const announced = announcedTypes(file.events, eventTypes)
  const store = createNoticeStore(database, {
    claimMs: claimMsFor(file.delivery.timeout),
    announced,
  })
  const receipts = createReceipts(database, metrics, announced)
  const events = createEventStore(database)
  const codes = createCodeStore(redis, secrets, {
    keyPrefix,
    ttlMs: file.code.ttl,
    triesPerCode: file.code.triesPerCode,
  })
  const producer = createProducer(openRedis('producer'), keyPrefix)
  closers.onClose(() => producer.close())

  const hasSandbox = Object.values(file.providers).some(({ kind }) => kind === 'sandbox')
  const outbox = hasSandbox ? createSandboxOutbox(redis, keyPrefix) : undefined

  const limiter = createLimiter({
    policies: file.policies as RawPolicies,
    redis: openRedis('limiter'),
    keyPrefix,
    subjectKey: secrets.limiterKey,
    onRefused: (labels) => metrics.rejected.inc(labels),
    onObserved: (labels) => metrics.observed.inc(labels),
  })
  closers.onClose(() => limiter.close())

  let isListening = false
  const workers = roles.worker ? startWorkerRole() : []
  const liveness = startLiveness({ workers, depths: producer.depths })
  closers.onClose(() => liveness.stop())
  const addresses: Record<string, string> = { admin: await startAdmin() }
  if (roles.api) addresses.api = await startApiRole()
  isListening = true
  log.ready(addresses)

  return {
    addresses,
    log,
    reload: (next) => limiter.setPolicies(next.policies as RawPolicies),
    close: () => closers.close(),
  }

  async function startApiRole(): Promise<string> {
    const keys = createApiKeys(database)
    const idempotency = createIdempotency(database)
    const createNotice = createNoticeCreator({ store, producer, secrets, metrics, log })
    const shared = {
      idempotency,
      templates,
      normaliseRecipient: createRecipientNormaliser(file.recipients),
    }
    const now = Date.now
    const admission = createAdmission({ limiter, secrets })
    const routes = [
      ...captchaRoutes({
        ...shared,
        sendCaptcha: createSendCaptcha({
          admission,
          codes,
          createNotice,
          findNotice: store.find,
          code: { length: file.code.length, ttlMs: file.code.ttl },
          now,
        }),
        checkCaptcha: createCheckCaptcha({
          admission,
          limiter,
          codes,
          metrics,
          newRequestId: newId,
          announce: createCaptchaAnnouncer({
            redis,
            secrets,
            keyPrefix,
            types: announced,
            write: events.add,
          }),
        }),
        codeLength: file.code.length,
      }),
      ...noticeRoutes({
        ...shared,
        sendNotice: createSendNotice({
          admission,
          createNotice,
          findNotice: store.find,
          ttlMs: file.notice.ttl,
          now,
        }),
        store,
        secrets,
      }),
      receiptRoute({ readers: receiptReaders(), receipts, metrics }),
      ...(outbox ? sandboxRoutes(outbox) : []),
    ]
    const app = createApp({
      routes: [...routes, openApiRoute(routes)],
      keys,
      metrics,
      log,
      trustProxyHops: environment.TRUST_PROXY_HOPS,
    })
    const bootstrapKey = environment.BOOTSTRAP_SECRET_KEY
    if (bootstrapKey) {
      // Awaited once, because whoever sees `ready` may use the key at once.
      await keepTrying(() => keys.ensure(bootstrapKey, { name: 'bootstrap', app: 'default' }))
    }

    return listen(createPublicServer(app), environment.PORT, environment.HOST)
  }

  function startWorkerRole(): DeliveryWorker[] {
    const gates = openGates()
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
        codes.isCurrent({ app, scene: scene ?? 'default', channel, to: recipient }, id),
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
    return queuedChannels.map((channel) => {
      const worker = startDeliveryWorker({
        channel,
        connection: openRedis('worker'),
        keyPrefix,
        concurrency: file.delivery.concurrency,
        deliver,
        log,
      })
      closers.onClose(() => worker.close())
      return worker
    })
  }

  /** Every provider of the policy file behind its gate, none of them connected yet. */
  function openGates(): Map<string, Gate> {
    const policies = pacePolicies(file.providers)
    const paceLimiter = createLimiter({
      policies,
      redis: openRedis('limiter'),
      keyPrefix: `${keyPrefix}pace:`,
      subjectKey: secrets.limiterKey,
    })
    closers.onClose(() => paceLimiter.close())
    const gates = new Map<string, Gate>()
    for (const [name, { kind, pace: _pace, quotas: _quotas, ...settings }] of Object.entries(
      file.providers,
    )) {
      const known = findProviderKind(kind)
      if (!known) throw new Error(`there is no provider kind ${kind}`)
      const provider = known.create(name, known.settings.parse(settings), {
        timeoutMs: file.delivery.timeout,
        clock: Date.now,
        onReceipt: (from, receipt) => receipts.take(from, [receipt]),
        ...(outbox ? { outbox } : {}),
      })
      closers.onClose(() => provider.close())
      metrics.circuitOpen.set({ provider: name }, 0)
      const gate = createGate(provider, {
        takeTurn: createTakeTurn(name, paceLimiter, name in policies),
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

  /** How each provider's receipts are read, for those that come over HTTP. */
  function receiptReaders(): Map<string, ReadReceipts> {
    const readers = new Map<string, ReadReceipts>()
    for (const [name, { kind, pace: _pace, quotas: _quotas, ...raw }] of Object.entries(
      file.providers,
    )) {
      const known = findProviderKind(kind)
      const settings = known?.settings.parse(raw)
      const parse = known?.parseReceipts
      if (parse) readers.set(name, (request) => parse(request, settings))
    }
    return readers
  }

  function startAdmin(): Promise<string> {
    async function measure() {
      const reasons = await reasonsNotReady()
      metrics.ready.set(reasons.length === 0 ? 1 : 0)
      if (!roles.worker) return
      const depths = await producer.depths().catch(() => [])
      for (const { channel, state, count } of depths)
        metrics.queueDepth.set({ channel, state }, count)
    }
    async function reasonsNotReady() {
      if (!isListening) return ['still starting']
      const [ofRedis, ofPostgres] = await Promise.all([
        reasonsRedisNotReady(redis),
        pendingMigrations(database.pool).then(
          (names) => names.map((name) => `migration ${name} is not applied; run npm run migrate`),
          () => ['postgresql is out of reach'],
        ),
      ])
      return [...ofRedis, ...ofPostgres]
    }
    const server = createAdminServer({
      metrics,
      measure,
      reasonsNotReady,
      reasonsNotLive: liveness.reasonsNotLive,
    })
    return listen(server, environment.ADMIN_PORT, environment.HOST)
  }

  /** Listens, and on close lets requests under way end within a few seconds. */
  async function listen(server: Server, port: number, host: string): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, host, resolve)
    })
    closers.onClose(
      () =>
        new Promise<void>((resolve) => {
          const cutOff = setTimeout(() => server.closeAllConnections(), 5_000)
          server.close(() => {
            clearTimeout(cutOff)
            resolve()
          })
          server.closeIdleConnections()
        }),
    )
    const { port: actualPort } = server.address() as AddressInfo
    return `http://${host === '0.0.0.0' ? 'localhost' : host}:${actualPort}`
  }

  /** For what needs PostgreSQL at start: resolves after the first try, because the process is up before its servers are. */
  function keepTrying(work: () => Promise<void>): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    closers.onClose(() => clearTimeout(timer))
    const attempt = async () => {
      try {
        await work()
      } catch (error) {
        log.backgroundFailed('bootstrap key', error)
        timer = setTimeout(attempt, 1_000)
      }
    }
    return attempt()
  }
}
