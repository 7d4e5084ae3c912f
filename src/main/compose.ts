/**
 * The composition root: this file and the parts, API role and worker role beside it are the only place
 * that builds things, joins the rooms and closes what was opened. An API process, a worker process and
 * the demo (both in one) are the same parts in other numbers.
 */
import type { createLog } from '../base/log.ts'
import { reasonsPostgresNotReady } from '../db/ready.ts'
import { startLiveness } from '../delivery/liveness.ts'
import { createAdminServer } from '../http/admin.ts'
import { firstTry } from '../redis/connect.ts'
import { lookAtRedis } from '../redis/ready.ts'
import { startApiRole } from './api-role.ts'
import { closeServer, listen } from './listen.ts'
import type { Config } from './load-config.ts'
import { defaultKeyPrefix, openParts, type Parts } from './parts.ts'
import { type Readiness, startReadiness } from './readiness.ts'
import { startWorkerRole } from './worker-role.ts'

export interface Roles {
  api: boolean
  worker: boolean
}

export interface Running {
  /** Where it listens: `api` (API role only) and `admin`. */
  readonly addresses: Readonly<Record<string, string>>
  readonly log: ReturnType<typeof createLog>
  reload: Parts['reload']
  /** Takes nothing new, ends what is under way, closes everything. */
  close(): Promise<void>
}

export async function start(
  config: Config,
  roles: Roles,
  options: { keyPrefix?: string } = {},
): Promise<Running> {
  const processName = roles.api && roles.worker ? 'demo' : roles.api ? 'api' : 'worker'
  const parts = openParts(config, processName, options.keyPrefix ?? defaultKeyPrefix)
  const { log, closers, reload } = parts
  try {
    const addresses = await startRoles(parts, roles)
    return { addresses, log, reload, close: () => closers.close() }
  } catch (error) {
    // A worker may be sending already: it ends in order although the start came to nothing.
    await closers.close().catch(() => {})
    throw error
  }
}

async function startRoles(parts: Parts, roles: Roles): Promise<Record<string, string>> {
  const { environment, closers, log, producer } = parts
  let isListening = false
  const workers = roles.worker ? startWorkerRole(parts) : []
  const liveness = startLiveness({ workers, depths: producer.depths })
  closers.onClose(() => liveness.stop())

  const addresses: Record<string, string> = {}
  const readiness = startReadiness({
    look: async () => (isListening ? lookAtServers(parts) : stillStarting),
    onChange({ reasons, warnings }) {
      if (!isListening) return
      for (const warning of warnings) log.readyWarning(warning)
      if (reasons.length === 0) log.ready(addresses)
      else log.notReady(reasons)
    },
  })
  closers.onClose(() => readiness.stop())
  const adminServer = createAdminServer({
    metrics: parts.metrics,
    measure: async () => {
      const [{ reasons }] = await Promise.all([readiness.ask(), parts.measureGauges()])
      parts.metrics.ready.set(reasons.length === 0 ? 1 : 0)
    },
    readiness: readiness.ask,
    reasonsNotLive: liveness.reasonsNotLive,
  })
  addresses.admin = await listen(adminServer, environment.ADMIN_PORT, environment.HOST)
  closers.onClose(() => closeServer(adminServer))

  if (roles.api) addresses.api = await startApiRole(parts)
  // A connection that is still being made is not a missing Redis.
  await firstTry(parts.redis)
  isListening = true
  await readiness.ask()
  return addresses
}

const stillStarting: Readiness = { reasons: ['still starting'], warnings: [] }

async function lookAtServers({ redis, keyPrefix, database }: Parts): Promise<Readiness> {
  const [ofRedis, ofPostgres] = await Promise.all([
    lookAtRedis(redis, keyPrefix),
    reasonsPostgresNotReady(database),
  ])
  return { reasons: [...ofRedis.reasons, ...ofPostgres], warnings: ofRedis.warnings }
}
