import fc from 'fast-check'
import { afterEach } from 'vitest'
import './browser.ts'
import { noteReachedInProcesses } from './processes.ts'

/** A property that fails has noticed the mutant. Searching its smallest case would take longer than all tests. */
fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true })

// Here, because only this file is loaded again for each file of tests. The modules that it imports are loaded once.
afterEach(noteReachedInProcesses)
