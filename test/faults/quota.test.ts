import { testFaults } from './fault.ts'
import { quotaFaults } from './quota.ts'

testFaults(quotaFaults)
