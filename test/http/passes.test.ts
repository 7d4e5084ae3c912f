import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose'
import { expect, test, vi } from 'vitest'
import { noLimits, startPostern } from '../tools/postern.ts'
import { openApiAnswers } from './openapi-answers.ts'

const postern = await startPostern({ policyFile: { policies: noLimits } })
const { expectPromised } = await openApiAnswers(postern)
const recipient = { channel: 'sms', to: '+8613800138000' }

async function passOf(to = recipient): Promise<string> {
  const { body: sent } = await postern.post('/v1/captchas', { ...to, scene: 'login' })
  const code = await postern.codeFor(sent.id)
  const checked = await postern.post('/v1/captchas/check', { ...to, scene: 'login', code })
  expectPromised('post /v1/captchas/check', checked)
  return checked.body.pass
}

const verify = (body: unknown) => postern.post('/v1/passes/verify', body)

test('a check that passes returns a pass; a server can verify it once', async () => {
  const pass = await passOf()
  const wrong = await verify({ pass, channel: 'sms', to: '+8613800138001' })
  expect(wrong.body).toEqual({ valid: false, reason: 'other_recipient' })
  const reply = await verify({ pass, ...recipient })
  expectPromised('post /v1/passes/verify', reply)
  expect(reply.body).toEqual({
    valid: true,
    scene: 'login',
    channel: 'sms',
    to: '+8613800138000',
    verifiedAt: expect.stringMatching(/^\d{4}-.*Z$/),
  })
  const again = await verify({ pass })
  expectPromised('post /v1/passes/verify', again)
  expect(again.body).toEqual({ valid: false, reason: 'used' })
})

test.each([
  ['sms', '+86 139 0013 9001', '0086 (139) 00139001', '+8613900139001'],
  ['email', 'Ada@BÜCHER.example', 'ada@xn--bcher-kva.EXAMPLE', 'ada@xn--bcher-kva.example'],
])(
  '%s: a recipient in another spelling → the answer has the one form that limits count by',
  async (channel, to, other, canonical) => {
    const { body } = await postern.post('/v1/captchas', { channel, to, scene: 'login' })
    const code = await postern.codeFor(body.id)
    const checked = await postern.post('/v1/captchas/check', { channel, to, scene: 'login', code })
    const { pass } = checked.body
    const verified = await verify({ pass, channel, to: other })
    expect(verified.body).toMatchObject({ valid: true, to: canonical })
  },
)

test('with the published keys a server checks it alone', async () => {
  const keys = createRemoteJWKSet(new URL(`${postern.url}/.well-known/jwks.json`))
  const { payload } = await jwtVerify(await passOf(), keys, { audience: 'default' })
  expect(payload).toMatchObject({ iss: 'postern', scene: 'login', channel: 'sms' })
  const reply = await postern.get('/.well-known/jwks.json', { key: null })
  expect(reply.headers.get('cache-control')).toBe('public, max-age=300')
  expect(JSON.stringify(reply.body)).not.toContain('"d"')
})

test.each([
  ['no pass', {}],
  ['no compact JWS', { pass: 'hello' }],
  ['a channel without a recipient', { pass: 'a.b.c', channel: 'sms' }],
  ['a recipient without a channel', { pass: 'a.b.c', to: recipient.to }],
  ['2 kB of it', { pass: `${'a'.repeat(2_000)}.b.c` }],
  ['an unknown member', { pass: 'a.b.c', app: 'shop' }],
])('a question with %s is 400', async (_, body) => {
  expect((await verify(body)).status).toBe(400)
})

test('an invalid recipient is 422, and the pass is still good', async () => {
  const pass = await passOf()
  const reply = await verify({ pass, channel: 'sms', to: 'nobody' })
  expect(reply).toMatchObject({ status: 422, body: { code: 'invalid_recipient' } })
  expect((await verify({ pass, ...recipient })).body.valid).toBe(true)
})

test('a pass has the time of PostgreSQL, not of the process’s clock', async () => {
  const { body: sent } = await postern.post('/v1/captchas', recipient)
  const code = await postern.codeFor(sent.id)
  const from = Date.now()
  vi.useFakeTimers({ toFake: ['Date'], now: from + 7_200_000 })
  const { body } = await postern
    .post('/v1/captchas/check', { ...recipient, code })
    .finally(() => vi.useRealTimers())
  expect(Math.abs(Date.parse(body.verifiedAt) - from)).toBeLessThan(5_000)
  const apart = Date.parse(body.verifiedAt) / 1_000 - (decodeJwt(body.pass).iat ?? 0)
  expect(Math.abs(apart)).toBeLessThan(2)
})
