import { farEndFaults } from './far-end.ts'
import type { Fault } from './fault.ts'
import { mailServerFaults } from './mail-servers.ts'
import { postgresqlFaults } from './postgresql.ts'
import { connectionFaults } from './postgresql-connections.ts'
import { spaceFaults } from './postgresql-space.ts'
import { processFaults } from './processes.ts'
import { quotaFaults } from './quota.ts'
import { redisFaults } from './redis.ts'
import { rollingFaults } from './rolling.ts'
import { rotationFaults } from './rotation.ts'
import { upgradeFaults } from './upgrade.ts'

/** Every fault by number. There is one test file per group. Chaos draws from the faults with `strike`. */
export const faults: readonly Fault[] = [
  ...processFaults,
  ...redisFaults,
  ...postgresqlFaults,
  ...connectionFaults,
  ...spaceFaults,
  ...farEndFaults,
  ...mailServerFaults,
  ...quotaFaults,
  ...rollingFaults,
  ...rotationFaults,
  ...upgradeFaults,
]
