/** Joins the rooms of the API: every route with what stands behind it. */
import type { Router } from 'express'
import { createApiKeys } from '../access/api-keys.ts'
import { createListedOrigins } from '../access/listed-origins.ts'
import { createCaptchaEvents } from '../captcha/captcha-events.ts'
import { createCheckCaptcha } from '../captcha/check.ts'
import { createPasses } from '../captcha/passes.ts'
import { createSendCaptcha } from '../captcha/send.ts'
import { findRoute, type RoutedMessage } from '../delivery/provider-order.ts'
import { captchaRoutes } from '../http/captchas.ts'
import { challengeRoute, createPastChallenge } from '../http/challenges.ts'
import { limitRoutes } from '../http/limits.ts'
import { noticeRoutes } from '../http/notices.ts'
import { openApiRoute } from '../http/openapi.ts'
import { passRoutes } from '../http/passes.ts'
import { receiptRoute } from '../http/receipts.ts'
import { recipientRoutes } from '../http/recipients.ts'
import { createRouter } from '../http/router.ts'
import { sandboxRoutes } from '../http/sandbox.ts'
import { createUnderWay } from '../http/under-way.ts'
import { createNoticeCreator } from '../notice/create.ts'
import { createIdempotency } from '../notice/idempotency.ts'
import { createSendNotice } from '../notice/send.ts'
import { createTakeTestNotice } from '../notice/test-notice.ts'
import { createRecipientNormaliser } from '../recipient/normalise-recipient.ts'
import { createTestRecipients } from '../recipient/test-recipients.ts'
import { createCheckLimits } from '../rules/check-limits.ts'
import { createLoginThrottle } from '../rules/login-throttle.ts'
import { createPriceOf } from '../rules/price-of.ts'
import { createQuota, type OnDecided } from '../rules/quota.ts'
import { createHistory } from '../support/history.ts'
import { createRecorder } from '../support/recorder.ts'
import {
  createSupport,
  keepTrying,
  openCanReach,
  openChallenges,
  receiptReaders,
  warnOfTestRecipients,
} from './api-parts.ts'
import type { Shared } from './shared.ts'

/** What the console of this process is joined of besides. */
export type ApiRooms = Awaited<ReturnType<typeof createApiRouter>>['rooms']

/** Every route with what stands behind it, for our own app or a host's. `onDecided` is told what the limits decide. */
export async function createApiRouter(shared: Shared, onDecided?: OnDecided) {
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
    codeTtlMs: file.code.ttl,
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
      onDecided?.(decided)
    },
    onReleased: ({ to }, requestId) => recorder.released(String(to), requestId),
  })
  closers.onClose(() => quota.close())
  const checkLimits = createCheckLimits({ quota, limiter, policies })
  const support = createSupport(shared, quota, history)
  const passes = await createPasses({ redis, keyPrefix, secrets, nowMs: database.nowMs })
  closers.onClose(() => passes.close())
  const challenges = openChallenges(shared)
  const routes = [
    ...captchaRoutes({
      ...sendable,
      sendCaptcha: createSendCaptcha({
        quota,
        checkLimits,
        codes,
        createNotice,
        store: notices,
        code: { length: file.code.length, ttlMs: file.code.ttl },
        testRecipients,
        takeTestNotice,
        canReach,
      }),
      checkCaptcha: createCheckCaptcha({
        quota,
        limits: checkLimits,
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
      ...createPastChallenge(challenges),
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

  const underWay = createUnderWay()
  const router: Router = createRouter({
    routes: [...routes, openApiRoute(routes)],
    findKey: keys.find,
    isListedOrigin: createListedOrigins(database).has,
    idempotency,
    metrics,
    log,
    underWay,
  })
  closers.onClose(() => underWay.close())
  return { router, underWay, rooms: { ...support, ...sendable, keys, history } }
}
