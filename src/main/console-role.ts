/** Connects the console with its rooms. It runs at the admin port of API processes; workers serve no people. */
import type { RequestListener } from 'node:http'
import { everyApp } from '../access/key-store.ts'
import { openConsole } from '../console/open-console.ts'
import { signInPolicies } from '../console/sign-in.ts'
import { createDeliveryState } from '../delivery/delivery-state.ts'
import { providerPolicies } from '../delivery/provider-limits.ts'
import type { createApiRouter } from './api-router.ts'
import { openLimiter, type Shared } from './shared.ts'

type Api = Awaited<ReturnType<typeof createApiRouter>>

export function composeConsole(
  shared: Shared,
  { keys, requests, support }: Pick<Api, 'keys' | 'requests' | 'support'>,
): RequestListener {
  const { secrets, log, metrics, limits, config } = shared
  const { database, redis, keyPrefix, openRedis } = shared.servers
  const { notices, events, backlog } = shared.stores
  const limiterRedis = openRedis('limiter')
  const paces = openLimiter(
    shared,
    limiterRedis,
    'pace:',
    providerPolicies(limits.file().providers),
  )
  const { state, paceOf } = createDeliveryState({ backlog, redis, keyPrefix, paces, ...limits })
  return openConsole({
    ...requests,
    ...support,
    ...{ keys, notices, events, everyApp, secrets, redis, keyPrefix, metrics, log, paceOf },
    policies: limits.policies,
    deliveryState: state,
    templates: config.templates.names,
    providers: () =>
      Object.entries(limits.file().providers).map(([name, { kind, pace }]) => ({
        name,
        kind,
        pace,
      })),
    signInLimiter: openLimiter(shared, limiterRedis, 'console:', signInPolicies),
    nowMs: database.nowMs,
  })
}
