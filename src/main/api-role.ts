/** The API role. */
import type { Router } from 'express'
import { createApiKeys } from '../access/api-keys.ts'
import { createListedOrigins } from '../access/listed-origins.ts'
import type { Log } from '../base/log.ts'
import type { ReceiptReader } from '../base/receipt.ts'
import { createCaptchaEvents } from '../captcha/captcha-events.ts'
import { createCheckCaptcha } from '../captcha/check.ts'
import { createSendCaptcha } from '../captcha/send.ts'
import { createAltcha } from '../challenge/altcha.ts'
import { createChallenges } from '../challenge/challenges.ts'
import { createSiteverify } from '../challenge/siteverify.ts'
import { pagePolicy } from '../config/page-policy.ts'
import type { PolicyFile } from '../config/policy-schema.ts'
import { createPriceOf } from '../config/price-of.ts'
import { findRoute, type RoutedMessage } from '../delivery/provider-order.ts'
import { createHistory, type History } from '../history/history.ts'
import { createApp } from '../http/app.ts'
import { captchaRoutes } from '../http/captchas.ts'
import { challengeRoute, createPastChallenge } from '../http/challenges.ts'
import { limitRoutes } from '../http/limits.ts'
import { noticeRoutes } from '../http/notices.ts'
import { openApiRoute } from '../http/openapi.ts'
import { passRoutes } from '../http/passes.ts'
import { receiptRoute } from '../http/receipts.ts'
import { recipientRoutes } from '../http/recipients.ts'
import { answerUnknownPath, createRouter } from '../http/router.ts'
import { sandboxRoutes } from '../http/sandbox.ts'
import { createPublicServer } from '../http/server.ts'
import { createIdempotency } from '../idempotency/idempotency.ts'
import { createLoginThrottle } from '../login-throttle/login-throttle.ts'
import { createLookUp } from '../lookup/look-up.ts'
import { createOperations } from '../lookup/operations.ts'
import { createReset } from '../lookup/reset.ts'
import { createNoticeCreator } from '../notice/create.ts'
import { createQuota, type Quota } from '../notice/quota.ts'
import { createSendNotice } from '../notice/send.ts'
import { createTakeTestNotice } from '../notice/test-notice.ts'
import { createPasses } from '../pass/passes.ts'
import { findProviderKind } from '../providers/index.ts'
import { type CanReach, createCanReach } from '../recipient/can-reach.ts'
import { createMailDomains } from '../recipient/mail-domains.ts'
import { maskRecipient } from '../recipient/mask-recipient.ts'
import { createRecipientNormaliser } from '../recipient/normalise-recipient.ts'
import { createTestRecipients, type TestRecipients } from '../recipient/test-recipients.ts'
import { createRecorder } from '../replay/recorder.ts'
import type { Closers } from './closers.ts'
import { closeServer, listen } from './listen.ts'
import type { Shared } from './shared.ts'

/** Every route with what stands behind it, for our own app or a host's. */
export async function createApiRouter(shared: Shared): Promise<Router> {
  const { closers, log, metrics, secrets } = shared
  const { environment, file, templates } = shared.config
  const { database, redis, keyPrefix } = shared.servers
  const { notices, receipts, events, wantedEvents, codes, producer, outbox } = shared.stores
  const { limiter, policies } = shared.limits
  const keys = createApiKeys(database)
  const idempotency = createIdempotency(database)
  closers.onClose(() => idempotency.close())
  const creator = createNoticeCreator({ store: notices, producer, secrets, metrics, log })
  closers.onClose(() => creator.close())
  const { createNotice } = creator
  const testRecipients = createTestRecipients(file.testing, {
    defaultCountry: file.recipients.defaultCountry,
    nowMs: database.nowMs,
  })
  const { isTestRecipient } = testRecipients
  const takeTestNotice = createTakeTestNotice({ metrics, nowMs: database.nowMs })
  warnOfTestRecipients(testRecipients, file.testing.until, log)
  const canReach = openCanReach(file, testRecipients, closers)
  const sendable = {
    templates,
    isTestRecipient,
    isRouted: (message: RoutedMessage) => findRoute(file.routes, message) !== undefined,
    normaliseRecipient: createRecipientNormaliser(file.recipients, isTestRecipient),
  }
  const history = createHistory({
    redis,
    secrets,
    keyPrefix,
    policies,
    onDropped: (count) => metrics.recordsDropped.inc({ record: 'history' }, count),
  })
  closers.onClose(() => history.close())
  const recorder = createRecorder({
    redis,
    secrets,
    keyPrefix,
    onDropped: (count) => metrics.recordsDropped.inc({ record: 'decisions' }, count),
  })
  closers.onClose(() => recorder.close())
  const quota = createQuota({
    limiter,
    secrets,
    // They change with the rules that take them.
    priceOf: (channel, country) => createPriceOf(shared.limits.prices())(channel, country),
    isTestRecipient,
    onDecided(decided) {
      history.decided(decided)
      recorder.decided(decided)
    },
    onReleased: ({ to }, requestId) => recorder.released(String(to), requestId),
  })
  const support = createSupport(shared, quota, history)
  const passes = await createPasses({ redis, keyPrefix, secrets, nowMs: database.nowMs })
  closers.onClose(() => passes.close())
  const challenges = openChallenges(shared)
  const routes = [
    ...captchaRoutes({
      ...sendable,
      sendCaptcha: createSendCaptcha({
        quota,
        codes,
        createNotice,
        store: notices,
        code: { length: file.code.length, ttlMs: file.code.ttl },
        testRecipients,
        takeTestNotice,
        canReach,
        pagePolicy,
        policies,
      }),
      checkCaptcha: createCheckCaptcha({
        quota,
        limiter,
        policies,
        codes,
        metrics,
        testRecipients,
        events: createCaptchaEvents({
          redis,
          secrets,
          keyPrefix,
          types: wantedEvents,
          write: events.add,
        }),
        onChecked(request, requestId, outcome) {
          history.checked(request, outcome.result)
          if (outcome.result === 'passed') {
            recorder.passed(request.to, requestId, outcome.noticeId)
          }
        },
      }),
      passes,
      pastChallenge: createPastChallenge(challenges),
      codeLength: file.code.length,
      nowMs: database.nowMs,
      pageTemplates: file.browser.templates,
    }),
    challengeRoute(challenges),
    ...passRoutes({ passes, normaliseRecipient: sendable.normaliseRecipient }),
    ...noticeRoutes({
      ...sendable,
      nowMs: database.nowMs,
      sendNotice: createSendNotice({
        quota,
        createNotice,
        store: notices,
        ttlMs: file.notice.ttl,
        testRecipients,
        takeTestNotice,
        canReach,
      }),
      store: notices,
      recipientHashes: secrets.recipientHashes,
      cursorMarks: secrets.cursorMarks,
    }),
    ...recipientRoutes({ ...support, ...sendable }),
    receiptRoute({ readers: receiptReaders(file), takeReceipts: receipts.take, metrics }),
    ...limitRoutes({
      loginThrottle: createLoginThrottle({ limiter, policies }),
      limiter,
      policies,
    }),
    ...(outbox ? sandboxRoutes(outbox) : []),
  ]
  const bootstrapKey = environment.BOOTSTRAP_SECRET_KEY
  if (bootstrapKey) {
    // Awaited once, because a caller that sees `ready` may use the key at once.
    await keepTrying(closers, log, () =>
      keys.ensure(bootstrapKey, { name: 'bootstrap', app: 'default' }),
    )
  }

  return createRouter({
    routes: [...routes, openApiRoute(routes)],
    findKey: keys.find,
    isListedOrigin: createListedOrigins(database).has,
    idempotency,
    metrics,
    log,
  })
}

/** How callers from pages are asked. */
function openChallenges({ config, servers, secrets, metrics, closers }: Shared) {
  const { database, redis, keyPrefix } = servers
  const settings = config.file.challenge
  const kind =
    settings.kind === 'altcha'
      ? createAltcha({ secrets, tries: settings.tries, nowMs: database.nowMs })
      : createSiteverify(settings)
  const challenges = createChallenges({ kind, redis, keyPrefix, metrics })
  closers.onClose(() => challenges.close())
  return challenges
}

/** The API on a port of its own. Resolves with its address once it listens. */
export async function startApiRole(shared: Shared): Promise<string> {
  const { config, closers, metrics, log } = shared
  const { environment } = config
  const app = createApp({
    router: await createApiRouter(shared),
    unknownPath: answerUnknownPath({ metrics, log }),
    trustProxyHops: environment.TRUST_PROXY_HOPS,
  })
  const server = createPublicServer(app)
  const address = await listen(server, environment.PORT, environment.HOST)
  closers.onClose(() => closeServer(server))
  return address
}

/** What support asks of a recipient, and what it may take back. */
function createSupport(shared: Shared, quota: Quota, history: History) {
  const { notices: store, codes } = shared.stores
  const { limiter, policies } = shared.limits
  const { secrets, servers } = shared
  const operations = createOperations(servers.database)
  const policyNames = ['captcha', pagePolicy, 'notice', 'check']
  const asked = {
    store,
    operations,
    history,
    codes,
    limiter,
    quota,
    secrets,
    policyNames,
    policies,
  }
  const { lookUp, findKnown } = createLookUp(asked)
  return { lookUp, reset: createReset({ operations, codes, limiter, secrets, findKnown }) }
}

/** Whoever reads their codes in the policy file passes as one of them. */
function warnOfTestRecipients({ list }: TestRecipients, until: string | undefined, log: Log): void {
  const recipients = list().map(({ channel, to }) => maskRecipient(channel, to))
  if (recipients.length === 0) return
  const shown = recipients.slice(0, maxShown)
  log.testRecipients({ count: recipients.length, recipients: shown, until: until ?? 'for ever' })
}

const maxShown = 20

/** Everybody can be reached where no domain is looked up. */
function openCanReach(
  { recipients }: PolicyFile,
  testRecipients: TestRecipients,
  closers: Closers,
): CanReach {
  if (!recipients.mail.checkMx) return async () => true
  const domains = createMailDomains()
  closers.onClose(() => domains.close())
  return createCanReach(domains, testRecipients)
}

/** How each provider's receipts are read, for those that come over HTTP. */
function receiptReaders(file: PolicyFile): Map<string, ReceiptReader> {
  const readers = new Map<string, ReceiptReader>()
  for (const [name, entry] of Object.entries(file.providers)) {
    const kind = findProviderKind(entry.kind)
    const reader = kind?.createReceiptReader?.(kind.settings.parse(entry.settings))
    if (reader) readers.set(name, reader)
  }
  return readers
}

/** For what needs PostgreSQL at start: resolves after the first try, because the process is up before its servers are. */
function keepTrying(closers: Closers, log: Log, work: () => Promise<void>): Promise<void> {
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
