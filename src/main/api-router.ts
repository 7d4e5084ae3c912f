/** Builds the routes of the API and their dependencies. */
import type { Router } from 'express'
import { createApiKeys } from '../access/api-keys.ts'
import { createBootstrap } from '../access/bootstrap.ts'
import { createListedOrigins } from '../access/listed-origins.ts'
import { captchaRoutes } from '../http/captchas.ts'
import { createCalls } from '../http/in-process.ts'
import { limitRoutes } from '../http/limits.ts'
import { createNoticeReads } from '../http/notice-reads.ts'
import { noticeRoutes } from '../http/notices.ts'
import { openApiRoute } from '../http/openapi.ts'
import { passRoutes } from '../http/passes.ts'
import { openRouters } from '../http/plugins.ts'
import { receiptRoute } from '../http/receipts.ts'
import { recipientRoutes } from '../http/recipients.ts'
import { createRouter } from '../http/router.ts'
import { sandboxRoutes } from '../http/sandbox.ts'
import { createUnderWay } from '../http/under-way.ts'
import { createReceiptReaders } from '../providers/kinds.ts'
import { createLoginThrottle } from '../rules/login-throttle.ts'
import type { OnDecided } from '../rules/quota.ts'
import { composeChecking } from './checking.ts'
import { composeRequests } from './requests.ts'
import { composeSending } from './sending.ts'
import type { Shared } from './shared.ts'
import { composeSupport } from './support.ts'

/** For the app of Postern or of a host. `onDecided` is called with every decision of the limits. */
export async function createApiRouter(shared: Shared, onDecided?: OnDecided) {
  const { closers, log, metrics, secrets, limits } = shared
  const { environment, file } = shared.config
  const { database } = shared.servers
  const { notices, receipts, outbox } = shared.stores
  const requests = composeRequests(shared, onDecided)
  const { normaliseRecipient, isTestRecipient, challenges } = requests
  const sending = composeSending(shared, requests)
  const checking = await composeChecking(shared, requests)
  const support = composeSupport(shared, requests)
  const reads = createNoticeReads({ ...secrets, store: notices, normaliseRecipient })
  const routes = [
    ...captchaRoutes({
      ...sending,
      ...checking,
      offerChallenge: challenges.offer,
      pageTemplates: file.browser.templates,
    }),
    ...passRoutes({ ...checking, normaliseRecipient }),
    ...noticeRoutes({ ...sending, ...reads }),
    ...recipientRoutes({ ...support, normaliseRecipient, isTestRecipient }),
    receiptRoute({
      readers: createReceiptReaders(shared.config.providers),
      takeReceipts: receipts.take,
      metrics,
    }),
    ...limitRoutes({ ...limits, loginThrottle: createLoginThrottle(limits) }),
    ...(outbox ? sandboxRoutes(outbox) : []),
  ]
  const keys = createApiKeys(database)
  const bootstrapKey = environment.BOOTSTRAP_SECRET_KEY
  if (bootstrapKey) {
    const bootstrap = createBootstrap(keys.ensure, log)
    closers.onClose(bootstrap.close)
    await bootstrap.ensure(bootstrapKey)
  }
  const underWay = createUnderWay()
  const { plugins } = shared.config
  const calls = createCalls({
    ...sending,
    ...checking,
    ...{ reads, findKey: keys.find, underWay },
    sendsOwnCodes: plugins.some(({ sendsOwnCodes }) => sendsOwnCodes),
  })
  const pluginRouters = await openRouters(plugins, calls)
  const router: Router = createRouter({
    routes: [...routes, openApiRoute(routes)],
    findKey: keys.find,
    isListedOrigin: createListedOrigins(database).has,
    metrics,
    log,
    underWay,
    pluginRouters,
    takesPageTraces: file.browser.traces,
  })
  closers.onClose(() => underWay.close())
  return { router, underWay, calls, keys, requests, support }
}
