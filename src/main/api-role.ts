/** The API role: an app with the router on its own port, and the console for the admin port. */
import type { RequestListener } from 'node:http'
import type { Router } from 'express'
import { createApp } from '../http/app.ts'
import { listen } from '../http/listen.ts'
import { answerUnknownPath } from '../http/router.ts'
import { createHttpServer } from '../http/server.ts'
import type { OnDecided } from '../rules/quota.ts'
import { createApiRouter } from './api-router.ts'
import { openConsole } from './console-role.ts'
import type { Shared } from './shared.ts'

/** Routes that `npm run demo` adds to the same port. Production has none. */
export interface DemoParts {
  /** This router runs before the routes of the API. */
  createRouter(shared: Shared): Router
  /** Called with every decision of the limits about sends and checks. */
  onDecided: OnDecided
}

export interface ApiRole {
  address: string
  console: RequestListener
}

/** Starts the API on its port. Resolves when it listens. */
export async function startApiRole(
  shared: Shared,
  { demo, quietMs }: { demo?: DemoParts | undefined; quietMs?: number | undefined } = {},
): Promise<ApiRole> {
  const { config, closers, metrics, log } = shared
  const { environment } = config
  const api = await createApiRouter(shared, demo?.onDecided)
  const { router, underWay } = api
  const console = openConsole(shared, api)
  const app = createApp({
    router,
    routerBefore: demo?.createRouter(shared),
    unknownPath: answerUnknownPath({ metrics, log }),
    trustProxyHops: environment.TRUST_PROXY_HOPS,
  })
  const server = createHttpServer(app)
  const address = await listen(server, environment.PORT, environment.HOST)
  closers.onClose(() =>
    server.stop({
      drainMs: environment.DRAIN_SECONDS * 1_000,
      quietMs,
      onLateBodies: underWay.refuseBodies,
    }),
  )
  return { address, console }
}
