/** Connects the console with its rooms. It runs at the admin port of API processes; workers serve no people. */
import type { RequestListener } from 'node:http'
import { everyApp } from '../access/key-store.ts'
import type { RedisClient } from '../base/redis-script.ts'
import { createConsole } from '../console/console.ts'
import { deliveryRoute } from '../console/delivery-page.ts'
import { createDoor } from '../console/door.ts'
import { createLastDay } from '../console/last-day.ts'
import { listRoutes } from '../console/list-pages.ts'
import { createSealing } from '../console/looked-at.ts'
import { noticesRoute } from '../console/notices-page.ts'
import { searchRoutes } from '../console/search-page.ts'
import { createSessions } from '../console/sessions.ts'
import { createSignIn, signInPolicies } from '../console/sign-in.ts'
import { storyRoutes } from '../console/story-page.ts'
import { createDeliveryState } from '../delivery/delivery-state.ts'
import { providerPolicies } from '../delivery/provider-limits.ts'
import { createLimiter, type Limiter, type RawPolicies } from '../limiter/index.ts'
import type { createApiRouter } from './api-router.ts'
import type { Shared } from './shared.ts'

type Api = Awaited<ReturnType<typeof createApiRouter>>

export function openConsole(
  shared: Shared,
  { keys, requests, support }: Pick<Api, 'keys' | 'requests' | 'support'>,
): RequestListener {
  const { secrets, log, limits } = shared
  const { templates } = shared.config
  const { database, redis, keyPrefix } = shared.servers
  const { notices, events } = shared.stores
  const { normaliseRecipient, isTestRecipient } = requests
  const sealing = createSealing(secrets)
  const limiterRedis = shared.servers.openRedis('limiter')
  const { state, paceOf } = createDeliveryState({
    ...{ backlog: shared.stores.backlog, redis, keyPrefix, ...limits },
    paces: limiterOf(shared, limiterRedis, 'pace:', providerPolicies(limits.file().providers)),
  })
  const providers = () =>
    Object.entries(limits.file().providers).map(([name, { kind, pace }]) => ({ name, kind, pace }))
  const signIn = createSignIn({
    limiter: limiterOf(shared, limiterRedis, 'console:', signInPolicies),
    findKey: keys.find,
    onTried: (outcome) => shared.metrics.signIns.inc({ outcome }),
  })
  return createConsole({
    routes: [
      ...searchRoutes({
        ...{ normaliseRecipient, sealing, deliveryState: state },
        lastDay: createLastDay(notices.countHour),
        readTally: support.readTally,
      }),
      ...storyRoutes({
        ...support,
        ...{ secrets, sealing, normaliseRecipient, isTestRecipient },
        browse: notices,
        findApps: keys.apps,
      }),
      noticesRoute({
        browse: notices.browse,
        secrets,
        templates: templates.names,
        providers: providers().map(({ name }) => name),
      }),
      deliveryRoute({ state, providers, paceOf, latestByProvider: notices.latestByProvider }),
      ...listRoutes({
        policies: limits.policies,
        listKeys: keys.list,
        everyApp,
        listEvents: events.list,
        listOperations: support.operations.list,
        secrets,
      }),
    ],
    door: createDoor({
      sessions: createSessions({ redis, keyPrefix }),
      signIn,
      findKeyById: keys.findById,
      everyApp,
    }),
    nowMs: database.nowMs,
    log,
  })
}

/** A limiter with separate names of Redis keys, so that they do not collide with policies. */
function limiterOf(
  shared: Shared,
  redis: RedisClient,
  prefix: string,
  policies: RawPolicies,
): Limiter {
  const { keyPrefix } = shared.servers
  const subjectKey = shared.secrets.limiterKey
  const limiter = createLimiter({ policies, redis, keyPrefix: `${keyPrefix}${prefix}`, subjectKey })
  shared.closers.onClose(() => limiter.close())
  return limiter
}
