/** The console with all its pages and its door. */
import type { Express } from 'express'
import type { ApiKey } from '../access/api-keys.ts'
import type { KeyFacts } from '../access/key-store.ts'
import type { Log } from '../base/log.ts'
import type { Metrics } from '../base/metrics.ts'
import type { RedisClient } from '../base/redis-script.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Limiter } from '../limiter/index.ts'
import type { NoticeStore } from '../notice/store.ts'
import { createConsole } from './console.ts'
import { type DeliveryDeps, deliveryRoute } from './delivery-page.ts'
import { createDoor } from './door.ts'
import { createLastDay } from './last-day.ts'
import { type ListDeps, listRoutes } from './list-pages.ts'
import { createSealing } from './looked-at.ts'
import { type NoticesDeps, noticesRoute } from './notices-page.ts'
import { type SearchDeps, searchRoutes } from './search-page.ts'
import { createSessions } from './sessions.ts'
import { createSignIn } from './sign-in.ts'
import { type StoryDeps, storyRoutes } from './story-page.ts'

interface ConsoleDeps
  extends Omit<SearchDeps & StoryDeps, 'sealing' | 'lastDay'>,
    NoticesDeps,
    DeliveryDeps,
    ListDeps {
  notices: NoticeStore
  secrets: Secrets
  keys: StoryDeps['keys'] &
    ListDeps['keys'] & {
      find: (token: string) => Promise<ApiKey | null>
      findById: (id: string) => Promise<KeyFacts | undefined>
    }
  operations: StoryDeps['operations']
  redis: RedisClient
  keyPrefix: string
  /** A limiter with the policies of sign-in.ts. */
  signInLimiter: Pick<Limiter, 'acquire'>
  /** The clock of PostgreSQL. */
  nowMs: () => number
  metrics: Pick<Metrics, 'signIns'>
  log: Pick<Log, 'requestFailed'>
}

export function openConsole(deps: ConsoleDeps): Express {
  const { keys, secrets, everyApp, signInLimiter: limiter, metrics } = deps
  const sealing = createSealing(secrets)
  const lastDay = createLastDay(deps.notices.countHour)
  return createConsole({
    ...deps,
    routes: [
      ...searchRoutes({ ...deps, sealing, lastDay }),
      ...storyRoutes({ ...deps, sealing }),
      noticesRoute(deps),
      deliveryRoute(deps),
      ...listRoutes(deps),
    ],
    door: createDoor({
      sessions: createSessions(deps),
      signIn: createSignIn({
        limiter,
        findKey: keys.find,
        onTried: (outcome) => metrics.signIns.inc({ outcome }),
      }),
      findKeyById: keys.findById,
      everyApp,
    }),
  })
}
