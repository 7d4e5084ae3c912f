import { farEndFaults } from './far-end.ts'
import type { Fault } from './fault.ts'
import { mailServerFaults } from './mail-servers.ts'
import { postgresqlFaults } from './postgresql.ts'
import { processFaults } from './processes.ts'
import { quotaFaults } from './quota.ts'
import { redisFaults } from './redis.ts'
import { rollingFaults } from './rolling.ts'
import { rotationFaults } from './rotation.ts'

/** Every fault, by number. One test file per group proves them; chaos draws from those with a strike. */
export const faults: readonly Fault[] = [
  ...processFaults,
  ...redisFaults,
  ...postgresqlFaults,
  ...farEndFaults,
  ...mailServerFaults,
  ...quotaFaults,
  ...rollingFaults,
  ...rotationFaults,
]
