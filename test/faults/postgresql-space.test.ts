import { testFaults } from './fault.ts'
import { spaceFaults } from './postgresql-space.ts'

testFaults(spaceFaults)
