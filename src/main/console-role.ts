/** Builds the console. It runs at the admin port of API processes; workers serve no people. */
import type { RequestListener } from 'node:http'
import { appsIn } from '../compat/facades.ts'
import { createConsole } from '../console/console.ts'
import { deliveryRoute } from '../console/delivery-page.ts'
import { createDoor } from '../console/door.ts'
import { createLastDay } from '../console/last-day.ts'
import { listRoutes } from '../console/list-pages.ts'
import { createSealing, createWaysOf } from '../console/looked-at.ts'
import { noticesRoute } from '../console/notices-page.ts'
import { searchRoutes } from '../console/search-page.ts'
import { createSessions } from '../console/sessions.ts'
import { createSignIn, signInPolicies } from '../console/sign-in.ts'
import { storyRoutes } from '../console/story-page.ts'
import { createDeliveryState } from '../delivery/delivery-state.ts'
import { providerPolicies } from '../delivery/provider-limits.ts'
import { rejectingRules, rulesOf } from '../sms-rules/index.ts'
import type { Requests } from './requests.ts'
import { openLimiter, type Shared } from './shared.ts'

export function composeConsole(shared: Shared, requests: Requests): RequestListener {
  const { secrets, log, metrics, limits, config } = shared
  const { database, redis, keyPrefix, openRedis } = shared.servers
  const { notices, events, backlog } = shared.stores
  const limiterRedis = openRedis('limiter')
  const pacePolicies = providerPolicies(limits.file().providers)
  const paces = openLimiter(shared, limiterRedis, 'pace:', pacePolicies)
  const { state, paceOf } = createDeliveryState({ backlog, redis, keyPrefix, paces, ...limits })
  const ofPages = {
    ...{ ...requests, ...limits, notices, events, secrets, paceOf, deliveryState: state },
    sealing: createSealing(secrets),
    waysOf: createWaysOf({ notices, secrets }),
    lastDay: createLastDay(async (apps, fromMs) => ({
      ...(await notices.countHour(apps, fromMs)),
      decisions: await requests.decisions.countHour(apps, fromMs),
    })),
    allApps: async () => [
      ...(await requests.keys.apps()),
      ...appsIn(limits.file().compat),
      ...(await notices.latestApps()),
    ],
    templates: config.templates.names,
    rejectingRules: (country: string) => {
      const rules = rulesOf(country)
      return rules ? rejectingRules(rules) : []
    },
    providers: () => limits.file().providers,
  }
  return createConsole({
    routes: [
      ...searchRoutes(ofPages),
      ...storyRoutes(ofPages),
      noticesRoute(ofPages),
      deliveryRoute(ofPages),
      ...listRoutes(ofPages),
    ],
    door: createDoor({
      sessions: createSessions({ redis, keyPrefix }),
      signIn: createSignIn({
        limiter: openLimiter(shared, limiterRedis, 'console:', signInPolicies),
        authenticate: requests.keys.authenticate,
        onTried: (outcome) => metrics.signIns.inc({ outcome }),
      }),
      findKeyById: requests.keys.findById,
    }),
    nowMs: database.nowMs,
    log,
  })
}
