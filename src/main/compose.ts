/**
 * The composition root: this file and the parts, API role and worker role beside it are the only place
 * that builds things, joins the rooms and closes what was opened. An API process, a worker process and
 * the demo (both in one) are the same parts in other numbers.
 */
import type { createLog } from '../base/log.ts'
import type { PolicyFile } from '../config/policy-file.ts'
import { pendingMigrations } from '../db/migrate.ts'
import { startLiveness } from '../delivery/liveness.ts'
import { createAdminServer } from '../http/admin.ts'
import { reasonsRedisNotReady } from '../redis/ready.ts'
import { startApiRole } from './api-role.ts'
import { closeServer, listen } from './listen.ts'
import type { Config } from './load-config.ts'
import { openParts, type Parts } from './parts.ts'
import { startWorkerRole } from './worker-role.ts'

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

export async function start(
  config: Config,
  roles: Roles,
  options: { keyPrefix?: string } = {},
): Promise<Running> {
  const processName = roles.api && roles.worker ? 'demo' : roles.api ? 'api' : 'worker'
  const parts = openParts(config, processName, options.keyPrefix ?? defaultKeyPrefix)
  const { environment, closers, log, producer } = parts

  let isListening = false
  const workers = roles.worker ? startWorkerRole(parts) : []
  const liveness = startLiveness({ workers, depths: producer.depths })
  closers.onClose(() => liveness.stop())

  async function reasonsNotReady(): Promise<string[]> {
    return isListening ? reasonsServersNotReady(parts) : ['still starting']
  }
  const adminServer = createAdminServer({
    metrics: parts.metrics,
    measure: () => measure(parts, roles, reasonsNotReady),
    reasonsNotReady,
    reasonsNotLive: liveness.reasonsNotLive,
  })
  const admin = await listen(adminServer, environment.ADMIN_PORT, environment.HOST)
  closers.onClose(() => closeServer(adminServer))

  const addresses: Record<string, string> = { admin }
  if (roles.api) addresses.api = await startApiRole(parts)
  isListening = true
  log.ready(addresses)
  return { addresses, log, reload: parts.reload, close: () => closers.close() }
}

async function reasonsServersNotReady({ redis, database }: Parts): Promise<string[]> {
  const [ofRedis, ofPostgres] = await Promise.all([
    reasonsRedisNotReady(redis),
    pendingMigrations(database.pool).then(
      (names) => names.map((name) => `migration ${name} is not applied; run npm run migrate`),
      () => ['postgresql is out of reach'],
    ),
  ])
  return [...ofRedis, ...ofPostgres]
}

/** Gauges are measured when somebody looks. */
async function measure(
  { metrics, producer }: Parts,
  roles: Roles,
  reasonsNotReady: () => Promise<string[]>,
): Promise<void> {
  const reasons = await reasonsNotReady()
  metrics.ready.set(reasons.length === 0 ? 1 : 0)
  if (!roles.worker) return
  const depths = await producer.depths().catch(() => [])
  for (const { channel, state, count } of depths) metrics.queueDepth.set({ channel, state }, count)
}
