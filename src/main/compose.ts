/**
 * The composition root. Only this file and its neighbours (shared, API router and role, worker role) build, connect and
 * close the parts of a process. API processes, worker processes and tests (both in one) use the same code.
 */
import type { createLog } from '../base/log.ts'
import { startLiveness } from '../delivery/liveness.ts'
import { createAdminServer } from '../http/admin.ts'
import { listen } from '../http/listen.ts'
import { startReadiness } from '../http/readiness.ts'
import { type ApiRole, type DemoParts, startApiRole } from './api-role.ts'
import type { Config } from './load-config.ts'
import type { Limits } from './reloadable-limits.ts'
import { defaultKeyPrefix, openShared, type Shared } from './shared.ts'
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

export async function start(
  config: Config,
  roles: Roles,
  options: {
    keyPrefix?: string
    clock?: () => number
    demo?: DemoParts | undefined
    /** For tests, which keep connections that they no longer use. */
    quietMs?: number
  } = {},
): Promise<Running> {
  const processName = roles.api && roles.worker ? 'demo' : roles.api ? 'api' : 'worker'
  const shared = openShared(
    config,
    processName,
    options.keyPrefix ?? defaultKeyPrefix,
    options.clock,
  )
  const { log, closers, limits } = shared
  const phase: Phase = { is: 'starting' }
  try {
    const addresses = await startRoles(shared, roles, phase, options)
    return {
      addresses,
      log,
      reload: limits.reload,
      close() {
        phase.is = 'stopping'
        return closers.close()
      },
    }
  } catch (error) {
    // A worker may be sending already, so it ends in order although the start failed.
    await closers.close().catch(() => {})
    throw error
  }
}

/** The phase of a process. Readiness can be requested in every phase. */
interface Phase {
  is: 'starting' | 'running' | 'stopping'
}

async function startRoles(
  shared: Shared,
  roles: Roles,
  phase: Phase,
  { demo, quietMs }: { demo?: DemoParts | undefined; quietMs?: number },
): Promise<Record<string, string>> {
  const { config, closers, log, metrics, servers, stores } = shared
  const { environment } = config
  const addresses: Record<string, string> = {}
  const readiness = startReadiness({
    look: async () =>
      phase.is === 'running' ? servers.look() : { reasons: [reasonOf[phase.is]], warnings: [] },
    onChange({ reasons, warnings }) {
      if (phase.is !== 'running') return
      for (const warning of warnings) log.readyWarning(warning)
      if (reasons.length === 0) log.ready(addresses)
      else log.notReady(reasons)
    },
  })
  closers.onClose(() => readiness.stop())
  let api: ApiRole | undefined
  let liveness: ReturnType<typeof startLiveness> | undefined
  // Opened before the roles and closed after them: a load balancer must see that this process is stopping.
  const adminServer = createAdminServer({
    metrics,
    measure: async () => {
      const [{ reasons }] = await Promise.all([readiness.ask(), stores.backlog.measure(metrics)])
      metrics.ready.set(reasons.length === 0 ? 1 : 0)
    },
    readiness: readiness.ask,
    reasonsNotLive: () => liveness?.reasonsNotLive() ?? [],
    console: () => api?.console,
  })
  addresses.admin = await listen(adminServer, environment.ADMIN_PORT, environment.HOST)
  closers.onClose(() => adminServer.stop({ quietMs: 0 }))

  const workers = roles.worker ? startWorkerRole(shared) : []
  liveness = startLiveness({ workers, depths: stores.producer.depths })
  closers.onClose(() => liveness?.stop())
  if (roles.api) {
    api = await startApiRole(shared, { demo, quietMs })
    addresses.api = api.address
  }
  // Waits for the first connection, so that a slow one does not look like a missing Redis.
  await servers.firstTries()
  phase.is = 'running'
  await readiness.ask()
  return addresses
}

const reasonOf = { starting: 'still starting', stopping: 'stopping' }
