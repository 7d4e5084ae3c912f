/** `npm run doctor`: checks what a start needs and what production should have. Exit code 1 on an error. */
import { parseArgs } from 'node:util'
import { commandLine } from '../../base/command-line.ts'
import { reportOf } from '../../base/finding.ts'
import { loadEnvFile } from '../../config/env-file.ts'
import { orUsage } from './stop.ts'

const usage = `Usage: ${commandLine('doctor', '[--json] [--dkim-selector NAME]')}`

const { json, selector } = orUsage(usage, () => {
  const { values } = parseArgs({
    options: { json: { type: 'boolean', default: false }, 'dkim-selector': { type: 'string' } },
  })
  const selector = values['dkim-selector']
  if (selector !== undefined && !/^[a-z0-9._-]{1,63}$/i.test(selector))
    throw new Error(`--dkim-selector "${selector}" is not a DNS name`)
  return { json: values.json, selector }
})
loadEnvFile()
// A mistake in the arguments, and --help, need not wait for the whole product to load.
const { examine } = await import('./examine.ts')
const findings = await examine(process.env, selector)
const text = json ? JSON.stringify(findings, null, 2) : reportOf(findings)
const hasError = findings.some(({ state }) => state === 'error')
// A check that timed out may keep a connection open, so the process ends itself.
process.stdout.write(`${text}\n`, () => process.exit(hasError ? 1 : 0))
