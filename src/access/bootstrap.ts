/** Creates the key of `BOOTSTRAP_SECRET_KEY`, as soon as PostgreSQL answers. */
import type { Log } from '../base/log.ts'
import { createUntilAnswered } from '../base/until-answered.ts'
import type { ApiKeys } from './api-keys.ts'

export function createBootstrap(ensure: ApiKeys['ensure'], log: Pick<Log, 'backgroundFailed'>) {
  const unanswered = createUntilAnswered({
    ...{ maxAgeMs: Number.POSITIVE_INFINITY, maxEntries: 1, isOnceEnough: true },
  })
  return {
    /** Awaited once, because a caller can use the key as soon as it sees `ready`. Never rejects. */
    async ensure(token: string): Promise<void> {
      const run = () => ensure(token, { name: 'bootstrap', app: 'default' })
      await run().catch((error) => {
        log.backgroundFailed('bootstrap_key', error)
        unanswered.add('bootstrap key', run)
      })
    },
    close: unanswered.close,
  }
}
