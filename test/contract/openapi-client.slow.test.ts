/** A client that is generated from the document as users do it: in a separate project. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { docsPages, fencesOf, nameOf } from '../tools/markdown.ts'
import { startPostern } from '../tools/postern.ts'

const folder = mkdtempSync(join(tmpdir(), 'postern-client-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const usage = `
import type { components, operations, paths } from './schema.ts'

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

interface Document {
  paths: Record<string, { post?: { requestBody?: { content: Record<string, unknown> } } }>
}

/** Each body that a page sends with curl, in the generated types: only the shown members. */
function shownBodies(document: Document): { name: string; line: string }[] {
  const blocks = ['README.md', ...docsPages]
    .flatMap(fencesOf)
    .filter(({ language }) => language === 'sh')
  return blocks.flatMap((block) => {
    const calls = block.text.replaceAll('\\\n', ' ').split('\n')
    return calls.flatMap((call) => {
      const path = /https?:\/\/[^/\s]+(\/v1\/[^\s'"]*)/.exec(call)?.[1]
      const body = / -d '(.*)'/.exec(call)?.[1]?.replaceAll(/'"?\$(\w+)"?'/g, '$1')
      if (!path || !body) return []
      const fits = (template: string) =>
        new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path)
      const known = path in document.paths ? path : Object.keys(document.paths).find(fits)
      if (!known) throw new Error(`${nameOf(block)}: there is no ${path}`)
      // The bodies that providers send to `/v1/receipts` are their own.
      if (!document.paths[known]?.post?.requestBody) return []
      const type = `paths['${known}']['post']['requestBody']['content']['application/json']`
      return [{ name: nameOf(block), line: `export const b: ${type} = ${body}` }]
    })
  })
}

const wrongUses = {
  'another-code.ts': 'export const f = (r: Refusal) => r.window',
  'no-such-code.ts': "export const f = (p: Problem) => p.code === 'no_such_code'",
  'no-such-channel.ts': "export const b: typeof body = { channel: 'fax', to: 'x' }",
}

test('openapi-typescript: the generated types take every body of README and docs, narrow a problem by its code, and refuse what is wrong', async () => {
  const postern = await startPostern({ roles: { api: true, worker: false } })
  const { body: document } = await postern.get('/openapi.json', { key: null })
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  write('openapi.json', JSON.stringify(document))
  write('package.json', '{ "private": true, "type": "module" }')
  const run = (program: string, ...args: string[]) =>
    execFileSync(program, args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' })
  const quietly = ['--prefer-offline', '--no-audit', '--no-fund']
  run('npm', 'install', ...quietly, 'openapi-typescript@7', 'typescript@5')
  run('node_modules/.bin/openapi-typescript', 'openapi.json', '-o', 'schema.ts')

  write('right.ts', usage)
  for (const [name, line] of Object.entries(wrongUses)) write(name, `${usage}\n${line}\n`)
  const bodies = shownBodies(document)
  expect(bodies.length).toBeGreaterThan(20)
  const pageOf = (name: string) => `${name.replaceAll(/[/:.]/g, '-')}.ts`
  for (const { name, line } of bodies) {
    write(pageOf(name), `import type { paths } from './schema.ts'\n${line}\n`)
  }
  const flags = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext']
  const { stdout } = spawnSync(
    'node_modules/.bin/tsc',
    [
      ...flags,
      '--allowImportingTsExtensions',
      'right.ts',
      ...Object.keys(wrongUses),
      ...bodies.map(({ name }) => pageOf(name)),
    ],
    { cwd: folder, encoding: 'utf8' },
  )
  const faulty = [...stdout.matchAll(/^([\w-]+\.ts)\(\d+,\d+\): error TS/gm)].map(
    ([, file]) => file,
  )
  expect([...new Set(faulty)].sort(), stdout).toEqual(Object.keys(wrongUses).sort())
}, 120_000)
