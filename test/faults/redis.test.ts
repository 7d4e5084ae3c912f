import { testFaults } from './fault.ts'
import { redisFaults } from './redis.ts'

testFaults(redisFaults)
