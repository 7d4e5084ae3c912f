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
import { createReadMessage } from '../notice/message.ts'
import { createOncePerKey } from '../notice/once-per-key.ts'
import { createSendNotice } from '../notice/send.ts'
import { createRecipientNormaliser } from '../recipient/normalise-recipient.ts'
import { createTestRecipients } from '../recipient/test-recipients.ts'
import { createCheckLimits } from '../rules/check-limits.ts'
import { createLoginThrottle } from '../rules/login-throttle.ts'
import { createPriceOf } from '../rules/price-of.ts'
import { createQuota, type OnDecided } from '../rules/quota.ts'
import { createRecorder } from '../support/recorder.ts'
import {
  createSupport,
  keepTrying,
  openCanReach,
  openChallenges,
  receiptReaders,
  warnOfTestRecipients,
} from './api-parts.ts'
import { openRouters } from './plugins.ts'
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
  const testRecipients = createTestRecipients(file.testing, {
    defaultCountry: file.recipients.defaultCountry,
    nowMs: database.nowMs,
  })
  const { isTestRecipient } = testRecipients
  const creator = createNoticeCreator({
    store: notices,
    producer,
    secrets,
    metrics,
    log,
    isTestRecipient,
    nowMs: database.nowMs,
  })
  closers.onClose(() => creator.close())
  warnOfTestRecipients(testRecipients, file.testing.until, log)
  const canReach = openCanReach(file, testRecipients, closers)
  const normaliseRecipient = createRecipientNormaliser(file.recipients, isTestRecipient)
  const recorder = createRecorder({
    ...{ redis, secrets, keyPrefix, policies },
    codeTtlMs: file.code.ttl,
    onDropped: (record, lines) => metrics.recordsDropped.inc({ record }, lines),
  })
  closers.onClose(() => recorder.close())
  const quota = createQuota({
    limiter,
    secrets,
    // They change with the rules that take them.
    priceOf: (channel, country) => createPriceOf(shared.limits.prices())(channel, country),
    isTestRecipient,
    onDecided(decided) {
      recorder.decided(decided)
      onDecided?.(decided)
    },
    onReleased: recorder.released,
  })
  closers.onClose(() => quota.close())
  const checkLimits = createCheckLimits({ quota, limiter, policies })
  const support = createSupport(shared, quota)
  const passes = await createPasses({ redis, keyPrefix, secrets, nowMs: database.nowMs })
  closers.onClose(() => passes.close())
  const challenges = openChallenges(shared)
  const sending = {
    readMessage: createReadMessage({
      normaliseRecipient,
      templates,
      isRouted: (message: RoutedMessage) => findRoute(file.routes, message) !== undefined,
      isTestRecipient,
    }),
    oncePerKey: createOncePerKey(idempotency),
    quota,
    createNotice: creator.createNotice,
    store: notices,
    canReach,
    nowMs: database.nowMs,
  }
  const routes = [
    ...captchaRoutes({
      sendCaptcha: createSendCaptcha({
        ...sending,
        challenges,
        checkLimits,
        codes,
        code: { length: file.code.length, ttlMs: file.code.ttl },
        testRecipients,
      }),
      checkCaptcha: createCheckCaptcha({
        normaliseRecipient,
        challenges,
        quota,
        limits: checkLimits,
        codes,
        codeLength: file.code.length,
        passes,
        metrics,
        testRecipients,
        nowMs: database.nowMs,
        events: createCaptchaEvents({
          redis,
          secrets,
          keyPrefix,
          types: wantedEvents,
          write: events.add,
        }),
        onChecked: recorder.checked,
      }),
      offerChallenge: challenges.offer,
      pageTemplates: file.browser.templates,
    }),
    ...passRoutes({ passes, normaliseRecipient }),
    ...noticeRoutes({
      sendNotice: createSendNotice({ ...sending, ttlMs: file.notice.ttl }),
      store: notices,
      normaliseRecipient,
      recipientHashes: secrets.recipientHashes,
      cursorMarks: secrets.cursorMarks,
    }),
    ...recipientRoutes({ ...support, normaliseRecipient, isTestRecipient }),
    receiptRoute({ readers: receiptReaders(shared.config), takeReceipts: receipts.take, metrics }),
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
  const beside = await openRouters(shared.config.plugins, {})
  const router: Router = createRouter({
    routes: [...routes, openApiRoute(routes)],
    findKey: keys.find,
    isListedOrigin: createListedOrigins(database).has,
    metrics,
    log,
    underWay,
    beside,
  })
  closers.onClose(() => underWay.close())
  return {
    router,
    underWay,
    rooms: { ...support, normaliseRecipient, isTestRecipient, keys },
  }
}
