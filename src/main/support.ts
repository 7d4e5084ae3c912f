/** Builds the look-up and reset of a recipient for the API and the console. */
import { createOperations } from '../support/operations.ts'
import { createFindRecorded } from '../support/recorded.ts'
import { createSupport } from '../support/support.ts'
import { createReadTally } from '../support/tally.ts'
import type { Requests } from './requests.ts'
import type { Shared } from './shared.ts'

export function composeSupport(shared: Shared, { quota }: Requests) {
  const { notices: store, codes } = shared.stores
  const { limiter, policies } = shared.limits
  const { secrets } = shared
  const { database, redis, keyPrefix } = shared.servers
  const codeTtlMs = shared.config.file.code.ttl
  const operations = createOperations(database)
  const findRecorded = createFindRecorded({ redis, secrets, keyPrefix, codeTtlMs })
  const support = createSupport({
    ...{ store, operations, findRecorded, codes, limiter, quota, secrets, policies },
  })
  const readTally = createReadTally(redis, keyPrefix)
  return { ...support, operations, findRecorded, readTally }
}
