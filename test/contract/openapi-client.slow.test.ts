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

const wrongUses = [
  ['a member of another code', 'export const f = (r: Refusal) => r.window'],
  ['a code that is none', "export const f = (p: Problem) => p.code === 'no_such_code'"],
  ['a channel that is none', "export const b: typeof body = { channel: 'fax', to: 'x' }"],
] as const

test('openapi-typescript: the generated types narrow a problem by its code, and refuse what is wrong', async () => {
  const postern = await startPostern({ roles: { api: true, worker: false } })
  const { body: document } = await postern.get('/openapi.json', { key: null })
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(document))
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  const run = (program: string, ...args: string[]) =>
    execFileSync(program, args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' })
  run(
    'npm',
    'install',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    'openapi-typescript@7',
    'typescript@5',
  )
  // What has a default may be left out of a request.
  run(
    'npx',
    'openapi-typescript',
    'openapi.json',
    '-o',
    'schema.ts',
    '--default-non-nullable=false',
  )

  const compile = (name: string, source: string) => {
    writeFileSync(join(folder, name), source)
    const args = ['tsc', '--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext']
    return spawnSync('npx', [...args, '--allowImportingTsExtensions', name], {
      cwd: folder,
      encoding: 'utf8',
    }).stdout
  }
  expect(compile('right.ts', usage)).toBe('')
  for (const [what, line] of wrongUses) {
    expect(compile('wrong.ts', `${usage}\n${line}\n`), what).toMatch(/error TS/)
  }
}, 120_000)
