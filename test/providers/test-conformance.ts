import { afterAll, beforeAll, describe, it } from 'vitest'
import { type ConformanceCase, createSuite } from './conformance.ts'
import { farEndTools } from './far-ends/http.ts'

/** Runs the promises of the suite as tests of the calling file. */
export function testConformance(given: ConformanceCase): void {
  const suite = createSuite(given, farEndTools)
  describe(`${given.default.kind} keeps the provider contract`, () => {
    beforeAll(suite.open)
    afterAll(suite.close)
    for (const { says, keep } of suite.promises) it(says, keep)
  })
}
