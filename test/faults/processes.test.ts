import { testFaults } from './fault.ts'
import { processFaults } from './processes.ts'

testFaults(processFaults)
