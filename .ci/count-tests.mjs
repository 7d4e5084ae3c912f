// Prints "<passed> <failed>" for a file of Vitest's JSON reporter. A file that failed without a failed
// test (an error while it loaded, a handle it left open) counts as one failure.
import { readFileSync } from 'node:fs'

const results = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const brokenFiles = results.testResults.filter(
  (file) =>
    file.status === 'failed' && file.assertionResults.every((test) => test.status !== 'failed'),
)
console.log(results.numPassedTests, results.numFailedTests + brokenFiles.length)
