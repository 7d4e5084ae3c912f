/** The API role. */
import type { Router } from 'express'
import { createApiKeys } from '../access/api-keys.ts'
import { createCaptchaEvents } from '../captcha/captcha-events.ts'
import { createCheckCaptcha } from '../captcha/check.ts'
import { createSendCaptcha } from '../captcha/send.ts'
import type { PolicyFile } from '../config/policy-file.ts'
import { createApp } from '../http/app.ts'
import { captchaRoutes } from '../http/captchas.ts'
import { limitRoutes } from '../http/limits.ts'
import { noticeRoutes } from '../http/notices.ts'
import { openApiRoute } from '../http/openapi.ts'
import { type ReceiptReader, receiptRoute } from '../http/receipts.ts'
import { answerUnknownPath, createRouter } from '../http/router.ts'
import { sandboxRoutes } from '../http/sandbox.ts'
import { createPublicServer } from '../http/server.ts'
import { createIdempotency } from '../idempotency/idempotency.ts'
import { createLoginThrottle } from '../login-throttle/login-throttle.ts'
import { createNoticeCreator } from '../notice/create.ts'
import { createQuota } from '../notice/quota.ts'
import { createSendNotice } from '../notice/send.ts'
import { findProviderKind } from '../providers/index.ts'
import { createRecipientNormaliser } from '../recipient/normalise-recipient.ts'
import { closeServer, listen } from './listen.ts'
import type { Parts } from './parts.ts'

/** Every route with what stands behind it, for our own app or a host's. */
export async function createApiRouter(parts: Parts): Promise<Router> {
  const { environment, file, templates, keyPrefix, closers, log, metrics, secrets } = parts
  const { database, redis, wantedEvents, store, receipts, events, codes, producer, outbox } = parts
  const { limiter, policies } = parts
  const keys = createApiKeys(database)
  const idempotency = createIdempotency(database)
  closers.onClose(() => idempotency.close())
  const creator = createNoticeCreator({ store, producer, secrets, metrics, log })
  closers.onClose(() => creator.close())
  const { createNotice } = creator
  const shared = {
    idempotency,
    templates,
    routedChannels: new Set(
      Object.entries(file.routes).flatMap(([channel, rules]) => (rules.length > 0 ? channel : [])),
    ),
    normaliseRecipient: createRecipientNormaliser(file.recipients),
  }
  const quota = createQuota({ limiter, secrets })
  const routes = [
    ...captchaRoutes({
      ...shared,
      sendCaptcha: createSendCaptcha({
        quota,
        codes,
        createNotice,
        store,
        code: { length: file.code.length, ttlMs: file.code.ttl },
      }),
      checkCaptcha: createCheckCaptcha({
        quota,
        limiter,
        policies,
        codes,
        metrics,
        events: createCaptchaEvents({
          redis,
          secrets,
          keyPrefix,
          types: wantedEvents,
          write: events.add,
        }),
      }),
      codeLength: file.code.length,
    }),
    ...noticeRoutes({
      ...shared,
      nowMs: database.nowMs,
      sendNotice: createSendNotice({ quota, createNotice, store, ttlMs: file.notice.ttl }),
      store,
      secrets,
    }),
    receiptRoute({ readers: receiptReaders(file), receipts, metrics }),
    ...limitRoutes({
      loginThrottle: createLoginThrottle({ limiter, policies }),
      limiter,
      policies,
    }),
    ...(outbox ? sandboxRoutes(outbox) : []),
  ]
  const bootstrapKey = environment.BOOTSTRAP_SECRET_KEY
  if (bootstrapKey) {
    // Awaited once, because whoever sees `ready` may use the key at once.
    await keepTrying(parts, () => keys.ensure(bootstrapKey, { name: 'bootstrap', app: 'default' }))
  }

  return createRouter({ routes: [...routes, openApiRoute(routes)], keys, metrics, log })
}

/** The API on a port of its own. Resolves with its address once it listens. */
export async function startApiRole(parts: Parts): Promise<string> {
  const { environment, closers } = parts
  const app = createApp({
    router: await createApiRouter(parts),
    unknownPath: answerUnknownPath(parts),
    trustProxyHops: environment.TRUST_PROXY_HOPS,
  })
  const server = createPublicServer(app)
  const address = await listen(server, environment.PORT, environment.HOST)
  closers.onClose(() => closeServer(server))
  return address
}

/** How each provider's receipts are read, for those that come over HTTP. */
function receiptReaders(file: PolicyFile): Map<string, ReceiptReader> {
  const readers = new Map<string, ReceiptReader>()
  for (const [name, entry] of Object.entries(file.providers)) {
    const kind = findProviderKind(entry.kind)
    const receipts = kind?.receipts
    if (!receipts) continue
    const settings = kind.settings.parse(entry.settings)
    readers.set(name, {
      maxBodyBytes: receipts.maxBodyBytes,
      mayBeGenuine: (head) => receipts.mayBeGenuine(head, settings),
      parse: (request) => receipts.parse(request, settings),
    })
  }
  return readers
}

/** For what needs PostgreSQL at start: resolves after the first try, because the process is up before its servers are. */
function keepTrying({ closers, log }: Parts, work: () => Promise<void>): Promise<void> {
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
