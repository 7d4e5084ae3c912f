import { farEndFaults } from './far-end.ts'
import { testFaults } from './fault.ts'

testFaults(farEndFaults)
