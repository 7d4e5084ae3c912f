/** Builds the router of the API, and the calls in process. */
import type { Router } from 'express'
import { createListedOrigins } from '../access/listed-origins.ts'
import { captchaRoutes } from '../http/captchas.ts'
import { createEarlyRefusal } from '../http/early-refusal.ts'
import { createCalls } from '../http/in-process.ts'
import { limitRoutes } from '../http/limits.ts'
import { createNoticeReads } from '../http/notice-reads.ts'
import { noticeRoutes } from '../http/notices.ts'
import { openApiRoute } from '../http/openapi.ts'
import { passRoutes } from '../http/passes.ts'
import { openRouters } from '../http/plugins.ts'
import { receiptRoutes } from '../http/receipts.ts'
import { recipientRoutes } from '../http/recipients.ts'
import { createRouter } from '../http/router.ts'
import { sandboxRoutes } from '../http/sandbox.ts'
import { createUnderWay } from '../http/under-way.ts'
import { verificationRoutes } from '../http/verifications.ts'
import { createReceiptReaders } from '../providers/kinds.ts'
import { createLoginThrottle } from '../rules/login-throttle.ts'
import type { Requests } from './requests.ts'
import type { Shared } from './shared.ts'

/** For the app of Postern or of a host. */
export async function createApiRouter(shared: Shared, requests: Requests) {
  const { closers, log, metrics, secrets, limits } = shared
  const { file, plugins } = shared.config
  const { database } = shared.servers
  const { notices, receipts, optOuts, outbox } = shared.stores
  const { normaliseRecipient, challenges, keys } = requests
  const reads = createNoticeReads({ ...secrets, store: notices, normaliseRecipient })
  const routes = [
    ...captchaRoutes({
      ...requests,
      offerChallenge: challenges.offer,
      pageTemplates: file.browser.templates,
      pageWorkflows: file.browser.workflows,
    }),
    ...verificationRoutes(requests),
    ...passRoutes(requests),
    ...noticeRoutes({ ...requests, ...reads }),
    ...recipientRoutes(requests),
    ...receiptRoutes({
      readers: createReceiptReaders(shared.config.providers),
      takeReceipts: receipts.take,
      takeOptOut: optOuts.take,
      metrics,
    }),
    ...limitRoutes({ ...limits, loginThrottle: createLoginThrottle(limits) }),
    ...(outbox ? sandboxRoutes(outbox) : []),
  ]
  const underWay = createUnderWay({ waitSeconds: metrics.waitSeconds })
  const answering = { authenticate: keys.authenticate, metrics, log, underWay }
  const calls = createCalls({
    ...{ ...requests, ...answering, reads, nowMs: database.nowMs },
    sendsOwnCodes: plugins.some(({ sendsOwnCodes }) => sendsOwnCodes),
  })
  const pluginRouters = await openRouters(plugins, calls)
  const router: Router = createRouter({
    ...{ ...answering, pluginRouters },
    routes: [...routes, openApiRoute(routes)],
    isListedOrigin: createListedOrigins(database).has,
    takesPageTraces: file.browser.traces,
  })
  const refuse = createEarlyRefusal({ ...answering, routes, lastKnown: keys.lastKnown })
  closers.onClose(() => underWay.close())
  return { router, refuse, underWay, calls }
}
