import { expect, test } from 'vitest'
import { problems } from '../../src/base/problems.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { badRequest, expectRefused } from './ledger.ts'
import { openApiAnswers } from './openapi-answers.ts'

const lockout = { limit: 3, window: '5m', lock: '15m' }
const login = [{ name: 'tries', key: '{subject}', lockout }]
const workflows = { default: ['sms', 'email'] }
const postern = await startPostern({ policyFile: { policies: { ...noLimits, login }, workflows } })
const { document } = await openApiAnswers(postern)

/** Providers sign in their own way. */
const isReceipts = (path: string) => path.startsWith('/v1/receipts/')

/** A named schema by its reference. */
const resolved = ({ $ref }: { $ref: string }) =>
  document.components.schemas[$ref.split('/').at(-1) as string]

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  // biome-ignore lint/suspicious/noExplicitAny: the document is what is under test
  Object.entries(methods as Record<string, any>).map(([method, operation]) => ({
    method,
    path,
    operation,
  })),
)

/** The named schemas of a body: some calls read one of two forms. */
// biome-ignore lint/suspicious/noExplicitAny: the document is what is under test
function formsOf(operation: any): { $ref: string }[] {
  const schema = operation.requestBody?.content['application/json']?.schema
  return schema ? (schema.anyOf ?? [schema]) : []
}

test('openapi.json: lists the routes of the contract, each with a name and a summary', () => {
  expect(operations.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([
    'delete /sandbox/messages',
    'get /.well-known/jwks.json',
    'get /sandbox/messages',
    'get /v1/captchas/{id}',
    'get /v1/notices/{id}',
    'get /v1/receipts/{provider}',
    'post /v1/attempts',
    'post /v1/attempts/clear',
    'post /v1/captchas',
    'post /v1/captchas/check',
    'post /v1/captchas/{id}/cancel',
    'post /v1/captchas/{id}/next',
    'post /v1/captchas/{id}/way',
    'post /v1/challenges',
    'post /v1/limits/{policy}/acquire',
    'post /v1/notices',
    'post /v1/notices/search',
    'post /v1/passes/verify',
    'post /v1/receipts/{provider}',
    'post /v1/recipients/lookup',
    'post /v1/recipients/reset',
  ])
  const names = operations.map(({ operation }) => operation.operationId)
  expect(new Set(names).size).toBe(names.length)
  for (const { operation } of operations) expect(operation.summary).toMatch(/\.$/)
})

test('openapi.json: every /v1 operation but receipts needs a key and promises 401, 500 and 503', () => {
  const ours = operations.filter(({ path }) => path.startsWith('/v1') && !isReceipts(path))
  for (const { path, operation } of ours) {
    expect({ path, security: operation.security }).toEqual({ path, security: [{ key: [] }] })
    expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(['401', '500', '503']))
  }
})

test('openapi.json: Problem is a union by code, with one named schema for each code of the catalogue', () => {
  const { oneOf, discriminator } = document.components.schemas.Problem
  expect(discriminator.propertyName).toBe('code')
  expect(Object.keys(discriminator.mapping)).toEqual(Object.keys(problems))
  expect(oneOf.map(({ $ref }: { $ref: string }) => $ref)).toEqual(
    Object.values(discriminator.mapping),
  )
  for (const [code, { status }] of Object.entries(problems)) {
    const schema = document.components.schemas[discriminator.mapping[code].split('/').at(-1)]
    expect(schema.properties.code.const).toBe(code)
    expect(schema.properties.status.const).toBe(status)
  }
})

test('openapi.json: an answer names only codes of the same status, and a wait comes with Retry-After', () => {
  for (const { path, operation } of operations) {
    // biome-ignore lint/suspicious/noExplicitAny: the document is what is under test
    for (const [status, response] of Object.entries<any>(operation.responses)) {
      if (!(Number(status) >= 400)) continue
      const codes = [...response.description.matchAll(/`(\w+)`/g)].map(
        ([, code]) => code as keyof typeof problems,
      )
      expect(codes.length, `${path} ${status}`).toBeGreaterThan(0)
      for (const code of codes)
        expect({ code, status: problems[code]?.status }).toEqual({ code, status: Number(status) })
      if (status === '429' || status === '503')
        expect(Object.keys(response.headers)).toContain('Retry-After')
    }
  }
})

test('openapi.json: bodies, answers and problems are named schemas; every field of a body is described', () => {
  for (const { path, operation } of operations) {
    for (const schema of formsOf(operation)) {
      expect(schema.$ref, path).toMatch(/^#\/components\/schemas\/[A-Z]\w+$/)
      for (const [field, property] of Object.entries(resolved(schema).properties)) {
        const { $ref, description } = property as { $ref?: string; description?: string }
        const text =
          description ?? document.components.schemas[$ref?.split('/').at(-1) ?? '']?.description
        expect(text, `${path} ${field}`).toMatch(/\.$/)
      }
    }
  }
})

test('openapi.json: bodies are strict, defaults are in descriptions, and no schema is empty', () => {
  const bodies = operations.filter(
    ({ path, operation }) => operation.requestBody && !isReceipts(path),
  )
  expect(bodies).toHaveLength(14)
  const forms = bodies.flatMap(({ path, operation }) =>
    formsOf(operation).map((form) => ({ path, schema: resolved(form) })),
  )
  for (const { schema } of forms) {
    expect(schema.additionalProperties).toBe(false)
    for (const property of Object.values(schema.properties)) {
      expect(Object.keys(property as object)).not.toEqual([])
    }
  }
  const captcha = document.components.schemas.SendCaptcha
  expect(captcha.required.sort()).toEqual(['channel', 'to'])
  expect(captcha.properties.scene.description).toMatch(/\. Default: `"default"`\.$/)
  // In a generated client, a member with a `default` would be required.
  const withDefault = forms.flatMap(({ path, schema }) =>
    Object.entries(schema.properties)
      .filter(([, property]) => 'default' in (property as object))
      .map(([name]) => `${path} ${name}`),
  )
  expect(withDefault).toEqual([])
})

test('a send that no route fits, by channel, country, template or app: 400 with the reason, nothing used', async () => {
  const postern = await startPostern({
    roles: { api: true, worker: false },
    policyFile: {
      policies: noLimits,
      routes: {
        sms: [
          { match: { country: ['CN'], template: ['captcha'] }, use: ['sandbox'] },
          { match: { app: ['other'] }, use: ['sandbox'] },
        ],
      },
    },
  })
  const sms = { channel: 'sms', to: '+8613800138000' }
  const welcome = { template: 'welcome', params: { name: 'Ada' } }
  for (const [path, body] of [
    ['/v1/captchas', { channel: 'email', to: 'ada@example.com' }],
    ['/v1/captchas', { channel: 'sms', to: '+4915112345678' }],
    ['/v1/notices', { ...sms, ...welcome }],
  ] as const) {
    const reply = await expectRefused(postern, badRequest, () => postern.post(path, body))
    const message = `no route carries ${body.channel} for this recipient and template`
    expect(reply.body.errors).toEqual([{ path: 'channel', message }])
  }
  expect((await postern.post('/v1/captchas', sms)).status).toBe(202)
})

test('without a sandbox provider there is no sandbox, neither in the document nor at its path', async () => {
  const mailOnly = await startPostern({
    roles: { api: true, worker: false },
    policyFile: {
      policies: noLimits,
      providers: { mail: { kind: 'smtp', url: 'smtp://127.0.0.1:9', from: 'a@b.test' } },
      routes: { email: [{ use: ['mail'] }] },
    },
  })
  const { body } = await mailOnly.get('/openapi.json')
  expect(Object.keys(body.paths)).not.toContain('/sandbox/messages')
  expect((await mailOnly.get('/sandbox/messages')).status).toBe(404)
})

test('/sandbox/messages: filtered by recipient, newest first, limited, and emptied', async () => {
  const { expectPromised } = await openApiAnswers(postern)
  for (const to of ['+8613800138000', '+8613900139000', '+8613800138000']) {
    const { body } = await postern.post('/v1/captchas', { channel: 'sms', to })
    await postern.messageFor(body.id)
  }
  const all = await postern.get('/sandbox/messages', { key: null })
  expectPromised('get /sandbox/messages', all)
  expect(all.body).toHaveLength(3)
  const times = all.body.map(({ sentAt }: { sentAt: string }) => sentAt)
  expect([...times].sort().reverse()).toEqual(times)
  expect((await postern.get('/sandbox/messages?limit=1')).body).toEqual([all.body[0]])
  expect(await postern.messages('+8613900139000')).toHaveLength(1)
  expect((await postern.get('/sandbox/messages?limit=1000')).status).toBe(200)
  for (const limit of ['0', '1001', '1.5', 'x', '']) {
    const refused = await postern.get(`/sandbox/messages?limit=${limit}`)
    expect(refused).toMatchObject({ status: 400, body: { errors: [{ path: 'query.limit' }] } })
  }
  for (const query of ['foo=1', 'to[]=%2B8613800138000', 'to=%2B1&to=%2B2']) {
    expect((await postern.get(`/sandbox/messages?${query}`)).status).toBe(400)
  }
  const cleared = await postern.get('/sandbox/messages', { key: null, method: 'DELETE' })
  expectPromised('delete /sandbox/messages', cleared)
  expect(cleared.status).toBe(204)
  expect(await postern.messages()).toEqual([])
})

test('openapi.json: every body has an example, which its call can read', async () => {
  for (const { path, operation } of operations) {
    if (!operation.requestBody || isReceipts(path) || path === '/v1/challenges') continue
    for (const form of formsOf(operation)) {
      const { examples } = resolved(form)
      expect({ path, examples }).toEqual({ path, examples: [expect.any(Object)] })
      const { body } = await postern.post(path.replace('{policy}', 'login'), examples[0])
      expect({ path, code: body?.code }).not.toEqual({ path, code: 'invalid_request' })
    }
  }
})
