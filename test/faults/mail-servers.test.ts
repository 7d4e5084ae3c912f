import { testFaults } from './fault.ts'
import { mailServerFaults } from './mail-servers.ts'

testFaults(mailServerFaults)
