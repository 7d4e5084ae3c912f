/** The OpenAPI document of a running API: valid by the specification, and the same calls as docs/http.md. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { noticeView } from '../../src/http/notices.ts'
import { noticeStates } from '../../src/notice/states.ts'
import { startPostern } from '../tools/postern.ts'

const docs = readFileSync(new URL('../../docs/http.md', import.meta.url), 'utf8')

interface Schema {
  $ref?: string
  properties?: Record<string, unknown>
}

interface Operation {
  operationId: string
  security?: unknown[]
  parameters?: { name: string; in: string }[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>
}

let document: {
  openapi: string
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

/** The schema itself, or the one that it refers to. */
const resolved = (schema: Schema): Schema =>
  schema.$ref ? (document.components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {}) : schema

beforeAll(async () => {
  const postern = await startPostern({ roles: { api: true, worker: false } })
  const reply = await postern.get('/openapi.json', { key: null })
  expect(reply.status).toBe(200)
  document = reply.body
})

const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      call: `${method.toUpperCase()} ${path}`,
      ...operation,
    })),
  )

/** The part of docs/http.md under the heading of a call. */
const sectionOf = (call: string) =>
  docs.split(/^#{2,3} /m).find((section) => section.startsWith(`\`${call}\`\n`)) ?? ''

test('it is valid OpenAPI 3.1, and the validator would report a fault', async () => {
  expect(document.openapi).toBe('3.1.0')
  expect(await new Validator().validate(structuredClone(document))).toEqual({ valid: true })
  const broken = structuredClone(document) as unknown as { info: Record<string, unknown> }
  delete broken.info.title
  expect((await new Validator().validate(broken as never)).valid).toBe(false)
})

test('redocly, with its recommended rules, finds nothing', () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-openapi-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'openapi.json')
  writeFileSync(file, JSON.stringify(document))
  const linted = spawnSync('npx', ['redocly', 'lint', file, '--format=json'], {
    encoding: 'utf8',
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
  })
  expect(JSON.parse(linted.stdout).problems).toEqual([])
})

test('docs/http.md has a section for every call and no other', () => {
  const sections = [...docs.matchAll(/^### `([A-Z]+ \/\S*)`$/gm)].map(([, call]) => call)
  // The document does not describe itself.
  const calls = [...operations().map(({ call }) => call), 'GET /openapi.json']
  expect(sections.sort()).toEqual(calls.sort())
})

test('every section shows a curl of its call, and every answer in it is JSON', () => {
  for (const { call } of [...operations(), { call: 'GET /openapi.json' }]) {
    const [method = '', path = ''] = call.split(' ')
    const section = sectionOf(call)
    const [, curl = ''] = /^```sh.*\n([\s\S]*?)^```/m.exec(section) ?? []
    const pattern = path.replace(/\{\w+\}/g, '[0-9a-z-]+').replaceAll('/', '\\/')
    expect(curl, call).toMatch(new RegExp(`http:\\/\\/localhost:3000${pattern}(\\s|$)`))
    if (method === 'POST') expect(curl).toContain(' -d ')
    if (method === 'DELETE') expect(curl).toContain('-X DELETE')
    for (const [, answer = ''] of section.matchAll(/^```json\n([\s\S]*?)^```/gm)) JSON.parse(answer)
  }
})

test('every field of a request is in the section of its call', () => {
  for (const { call, requestBody, parameters = [] } of operations()) {
    const fields = Object.values(requestBody?.content ?? {}).flatMap(({ schema }) =>
      Object.keys(resolved(schema).properties ?? {}),
    )
    const queries = parameters.filter((one) => one.in === 'query').map(({ name }) => `?${name}=`)
    for (const field of [...fields, ...queries])
      expect(sectionOf(call), call).toContain(`\`${field}\``)
  }
})

test('every shown answer has no member that its schema does not have', () => {
  let compared = 0
  for (const { call, responses } of operations()) {
    const [success] = Object.entries(responses).filter(([status]) => status.startsWith('2'))
    const schema = success?.[1].content?.['application/json']?.schema
    const known = schema && resolved(schema).properties
    if (!known) continue
    const shown = [...sectionOf(call).matchAll(/^\{"(?!type").*\}$/gm)].map(([line]) =>
      JSON.parse(line),
    )
    for (const answer of shown) {
      compared += 1
      for (const member of Object.keys(answer)) expect(Object.keys(known), call).toContain(member)
    }
  }
  expect(compared).toBeGreaterThanOrEqual(5)
})

test('docs/http.md explains every state and every outcome a notice can show', () => {
  const section = sectionOf('GET /v1/notices/{id}')
  for (const state of noticeStates)
    expect(section).toMatch(new RegExp(`^\\| \`${state}\` \\|`, 'm'))
  const view = noticeView.shape.attempts.element.shape.outcome.options
  expect(view.length).toBeGreaterThan(0)
  for (const outcome of view) expect(section).toContain(`\`${outcome}\``)
})

test('every call under /v1 but receipts asks for a key, and operation ids are unique', () => {
  const ids = operations().map(({ operationId }) => operationId)
  expect(new Set(ids).size).toBe(ids.length)
  for (const { call, security } of operations()) {
    const isReceipts = call.includes(' /v1/receipts/')
    expect((security ?? []).length > 0, call).toBe(call.includes(' /v1/') && !isReceipts)
  }
})
