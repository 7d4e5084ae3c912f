import { testFaults } from './fault.ts'
import { rotationFaults } from './rotation.ts'

testFaults(rotationFaults)
