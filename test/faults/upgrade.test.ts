import { testFaults } from './fault.ts'
import { upgradeFaults } from './upgrade.ts'

testFaults(upgradeFaults)
