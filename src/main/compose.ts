/**
 * The composition root. Only this file and its neighbours (shared, requests, API router, console and worker role) build,
 * connect and close the parts of a process. API processes, worker processes and tests (both in one) use the same code.
 */
import type { Router } from 'express'
import type { createLog } from '../base/log.ts'
import { startLiveness } from '../delivery/liveness.ts'
import { createAdminServer } from '../http/admin.ts'
import { createApp } from '../http/app.ts'
import { listen, listenAtDoors } from '../http/listen.ts'
import { startReadiness } from '../http/readiness.ts'
import { answerUnknownPath } from '../http/router.ts'
import { createHttpServer } from '../http/server.ts'
import type { OnDecided } from '../rules/quota.ts'
import { createApiRouter } from './api-router.ts'
import { composeConsole } from './console-role.ts'
import type { Config } from './load-config.ts'
import type { Limits } from './reloadable-limits.ts'
import { composeRequests } from './requests.ts'
import { defaultKeyPrefix, measure, openShared, type Shared } from './shared.ts'
import { startWorkerRole } from './worker-role.ts'

export interface Roles {
  api: boolean
  worker: boolean
}

export interface Running {
  /** Addresses where it listens: `api` (API role only) and `admin`. */
  readonly addresses: Readonly<Record<string, string>>
  readonly log: ReturnType<typeof createLog>
  reload: Limits['reload']
  /** Accepts no new work, finishes the work under way, closes everything. */
  close(): Promise<void>
}

/** Routes that `npm run demo` adds to the port of the API. Production has none. */
export interface DemoParts {
  /** This router runs before the routes of the API. */
  createRouter(shared: Shared): Router
  /** Called with every decision of the limits about sends and checks. */
  onDecided: OnDecided
}

interface Options {
  keyPrefix?: string
  clock?: () => number
  demo?: DemoParts | undefined
  /** For tests: their clients keep connections that they no longer use. */
  quietMs?: number
}

export async function start(config: Config, roles: Roles, options: Options = {}): Promise<Running> {
  const processName = roles.api && roles.worker ? 'demo' : roles.api ? 'api' : 'worker'
  const { keyPrefix = defaultKeyPrefix, clock } = options
  const shared = openShared(config, processName, keyPrefix, clock)
  const { log, closers, limits } = shared
  try {
    const addresses = await startRoles(shared, roles, options)
    return { addresses, log, reload: limits.reload, close: closers.close }
  } catch (error) {
    // A worker may be sending already, so it ends in order although the start failed.
    await closers.close().catch(() => {})
    throw error
  }
}

async function startRoles(shared: Shared, roles: Roles, options: Options) {
  const { config, closers, log, metrics, servers, stores } = shared
  const { environment } = config
  const addresses: Record<string, string> = {}
  const readiness = startReadiness({
    look: servers.look,
    onChange({ reasons, warnings }) {
      for (const warning of warnings) log.readyWarning(warning)
      if (reasons.length === 0) log.ready(addresses)
      else log.notReady(reasons)
    },
  })
  closers.onClose(() => readiness.stop())
  let console: ReturnType<typeof composeConsole> | undefined
  let liveness: ReturnType<typeof startLiveness> | undefined
  // Opened before the roles and closed after them: a load balancer must see that this process is stopping.
  const adminServer = createAdminServer({
    metrics,
    measure: () => measure(shared, readiness.ask),
    readiness: readiness.ask,
    reasonsNotLive: () => liveness?.reasonsNotLive() ?? [],
    console: () => console,
  })
  addresses.admin = await listen(adminServer, environment.ADMIN_PORT, environment.HOST)
  closers.onClose(() => adminServer.stop({ quietMs: 0 }))

  const { firstStatements } = stores.notices
  const statements: { warmUp(): Promise<unknown> }[] = []
  const workers = roles.worker ? startWorkerRole(shared) : []
  if (roles.worker) statements.push(...firstStatements.delivery)
  liveness = startLiveness({ workers, depths: stores.producer.depths })
  closers.onClose(() => liveness?.stop())
  if (roles.api) {
    const requests = await composeRequests(shared, options.demo?.onDecided)
    const api = await createApiRouter(shared, requests)
    console = composeConsole(shared, requests)
    statements.push(requests.keys, ...firstStatements.send)
    addresses.api = await serveApi(shared, api, options.demo?.createRouter(shared), options.quietMs)
  }
  // Waits for the first connection. Otherwise a slow connection would look like a missing Redis.
  await servers.firstTries()
  await servers.warmUp(statements)
  await readiness.begin()
  // The last part is closed first: a load balancer must see the stop before anything ends.
  closers.onClose(readiness.beginStop)
  return addresses
}

/** Serves the router of the API on its port. Returns the address. */
async function serveApi(
  { config, closers, metrics, log }: Shared,
  { router, refuse, underWay }: Awaited<ReturnType<typeof createApiRouter>>,
  routerBefore: Router | undefined,
  quietMs: number | undefined,
): Promise<string> {
  const { environment } = config
  const app = createApp({
    router,
    routerBefore,
    unknownPath: answerUnknownPath({ metrics, log, underWay }),
    trustProxyHops: environment.TRUST_PROXY_HOPS,
  })
  const server = createHttpServer(app, undefined, refuse)
  const address = await listenAtDoors(server, environment.PORT, environment.HOST)
  const drainMs = environment.DRAIN_SECONDS * 1_000
  closers.onClose(() => server.stop({ drainMs, quietMs, onLateBodies: underWay.refuseBodies }))
  return address
}
