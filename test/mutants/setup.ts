import fc from 'fast-check'

/** A property that fails has noticed the mutant: the search for its smallest case would take longer than all tests. */
fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true })
