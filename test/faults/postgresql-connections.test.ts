import { testFaults } from './fault.ts'
import { connectionFaults } from './postgresql-connections.ts'

testFaults(connectionFaults)
