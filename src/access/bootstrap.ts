import type { Log } from '../base/log.ts'
import { createUntilAnswered } from '../base/until-answered.ts'
import type { ApiKeys } from './api-keys.ts'

/**
 * Creates the key of `BOOTSTRAP_SECRET_KEY`, now or as soon as PostgreSQL answers. A caller can use the key as soon as it sees
 * `ready`, so the first try is awaited. Never rejects. Returns a function that ends the tries.
 */
export async function ensureBootstrapKey(
  token: string,
  ensure: ApiKeys['ensure'],
  log: Pick<Log, 'backgroundFailed'>,
): Promise<() => void> {
  const unanswered = createUntilAnswered({
    ...{ maxAgeMs: Number.POSITIVE_INFINITY, maxEntries: 1, isOnceEnough: true },
  })
  const run = () => ensure(token, { name: 'bootstrap', app: 'default' })
  await run().catch((error) => {
    log.backgroundFailed('bootstrap_key', error)
    unanswered.add('bootstrap key', run)
  })
  return unanswered.close
}
