import { testFaults } from './fault.ts'
import { rollingFaults } from './rolling.ts'

testFaults(rollingFaults)
