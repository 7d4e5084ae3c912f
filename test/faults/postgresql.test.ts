import { testFaults } from './fault.ts'
import { postgresqlFaults } from './postgresql.ts'

testFaults(postgresqlFaults)
