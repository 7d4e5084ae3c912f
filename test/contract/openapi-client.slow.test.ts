/** A client generated from the document, as its users generate one: in a project of their own. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { startPostern } from '../support/postern.ts'

const folder = mkdtempSync(join(tmpdir(), 'postern-client-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const usage = `
import type { components, operations } from './schema.ts'

type Refusal = operations['sendCaptcha']['responses'][429]['content']['application/problem+json']
type Problem = components['schemas']['Problem']

export function waitMs(refusal: Refusal): number {
  return refusal.code === 'limited' ? refusal.retryAfterMs + refusal.window.length : refusal.retryAfterMs
}

export function triesLeft(problem: Problem): number | undefined {
  return problem.code === 'code_mismatch' ? problem.triesLeft : undefined
}

export const body: components['schemas']['SendCaptcha'] = { channel: 'sms', to: '+8613800138000' }
`

const wrongUses = {
  'another-code.ts': 'export const f = (r: Refusal) => r.window',
  'no-such-code.ts': "export const f = (p: Problem) => p.code === 'no_such_code'",
  'no-such-channel.ts': "export const b: typeof body = { channel: 'fax', to: 'x' }",
}

test('openapi-typescript: the generated types narrow a problem by its code, and refuse what is wrong', async () => {
  const postern = await startPostern({ roles: { api: true, worker: false } })
  const { body: document } = await postern.get('/openapi.json', { key: null })
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  write('openapi.json', JSON.stringify(document))
  write('package.json', '{ "private": true, "type": "module" }')
  const run = (program: string, ...args: string[]) =>
    execFileSync(program, args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' })
  const quietly = ['--prefer-offline', '--no-audit', '--no-fund']
  run('npm', 'install', ...quietly, 'openapi-typescript@7', 'typescript@5')
  // What has a default may be left out of a request.
  const options = ['-o', 'schema.ts', '--default-non-nullable=false']
  run('node_modules/.bin/openapi-typescript', 'openapi.json', ...options)

  write('right.ts', usage)
  for (const [name, line] of Object.entries(wrongUses)) write(name, `${usage}\n${line}\n`)
  const flags = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext']
  const { stdout } = spawnSync(
    'node_modules/.bin/tsc',
    [...flags, '--allowImportingTsExtensions', 'right.ts', ...Object.keys(wrongUses)],
    { cwd: folder, encoding: 'utf8' },
  )
  const faulty = [...stdout.matchAll(/^([\w-]+\.ts)\(\d+,\d+\): error TS/gm)].map(
    ([, file]) => file,
  )
  expect([...new Set(faulty)].sort(), stdout).toEqual(Object.keys(wrongUses).sort())
}, 120_000)
