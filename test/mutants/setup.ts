import fc from 'fast-check'
import './browser.ts'
import './processes.ts'

/** A property that fails has noticed the mutant. Searching its smallest case would take longer than all tests. */
fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true })
