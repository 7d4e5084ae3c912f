/** Calls in process, providers and routers of a host: the answers for a host that has no HTTP before Postern. */
import { createServer } from 'node:http'
import express, { type Response, Router } from 'express'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createPostern, type Plugin, type ProviderKind } from '../../src/main/create-postern.ts'
import { testDatabase } from '../tools/database.ts'
import { listen } from '../tools/listen.ts'
import { ownRedis } from '../tools/own-servers.ts'
import { newPhone } from '../tools/people.ts'
import { clientOf, noLimits, posternEnv } from '../tools/postern.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const on = { redis: await testRedis(), database: await testDatabase() }

async function open(
  policyFile: Record<string, unknown> = { policies: noLimits },
  additions: Parameters<typeof createPostern>[0] = {},
) {
  const environment = posternEnv({ ...on, policyFile })
  const keyPrefix = on.redis.prefix
  const postern = closeLater(await createPostern({ environment, keyPrefix, ...additions }))
  const app = express().use(postern.router)
  app.use((_, response) => void response.status(404).send('of the host'))
  const url = await listen(app)
  return { postern, url, ...clientOf(url, environment.BOOTSTRAP_SECRET_KEY as string) }
}

const app = 'default'

const { postern: shared } = await open()

test('a policy file as an object, in which one object is used 101 times → as if each were written out', async () => {
  const rule = { name: 'one', key: '{who}', fixed: '1 per 1h' }
  const names = Array.from({ length: 101 }, (_, index) => `shared-${index}`)
  const policies = { ...noLimits, ...Object.fromEntries(names.map((name) => [name, [rule]])) }
  const routes = { sms: [{ use: ['box'] }], email: [{ use: ['box'] }] }
  const policy = { policies, routes, providers: { box: { kind: 'sandbox' } } }
  const { post } = await open({}, { policy })
  for (const name of ['shared-0', 'shared-100']) {
    const path = `/v1/limits/${name}/acquire`
    expect((await post(path, { fields: { who: 'a' } })).status).toBe(200)
    expect((await post(path, { fields: { who: 'a' } })).status).toBe(429)
  }
})

describe('the calls in process', () => {
  test('known: a right code answers a token if the call has `known`, and sends and checks with it are in its lane', async () => {
    const rule = { name: 'recipient', key: '{app}:{to}:{lane}', sliding: '1 per 1h' }
    const { postern, codeFor } = await open({ policies: { ...noLimits, captcha: [rule] } })
    postern.startWorker()
    const asked = { app, channel: 'sms', to: newPhone() } as const
    const send = async (known?: string) => {
      const sent = await postern.sendCaptcha({ ...asked, known })
      return sent.outcome === 'accepted' ? { ...sent, code: await codeFor(sent.id) } : sent
    }
    const codeOf = (sent: object) => ('code' in sent ? String(sent.code) : expect.unreachable())
    const code = codeOf(await send())
    const passed = await postern.checkCaptcha({ ...asked, code, known: true })
    expect(passed).toMatchObject({ outcome: 'passed', known: expect.stringMatching(/^ey/) })
    const known = 'known' in passed ? passed.known : undefined
    expect(await send()).toMatchObject({ outcome: 'limited' })
    const { id } = (await send(known)) as { id: string }
    expect(await send(known)).toMatchObject({ outcome: 'limited' })
    const byId = { app, id, code: await codeFor(id) }
    expect(await postern.checkCaptcha(byId)).not.toHaveProperty('known')
    const wrong = { outcome: 'invalid_request', errors: [{ path: 'known' }] }
    expect(await postern.sendCaptcha({ ...asked, known: true as never })).toMatchObject(wrong)
    expect(await postern.checkCaptcha({ ...asked, code, known: 'x' })).toMatchObject(wrong)
  })

  test('a code: accepted as by HTTP, in the same row; a wrong guess, the right one, and then no code', async () => {
    const { postern, post, get, codeFor } = await open()
    postern.startWorker()
    const to = newPhone()
    const asked = { channel: 'sms', to, scene: 'signup', ip: '192.0.2.1' } as const
    const sent = await postern.sendCaptcha({ app, ...asked })
    const byHttp = await post('/v1/captchas', { ...asked, to: newPhone() })
    expect(sent).toEqual({
      ...byHttp.body,
      outcome: 'accepted',
      id: expect.any(String),
      to: expect.stringMatching(/^\+8613\*+/),
      expiresAt: expect.any(String),
      resendAt: expect.any(String),
    })
    if (sent.outcome !== 'accepted') expect.unreachable()
    expect((await get(`/v1/notices/${sent.id}`)).body).toMatchObject({
      id: sent.id,
      kind: 'captcha',
    })
    const code = await codeFor(to)
    const wrong = code === '0000' ? '1111' : '0000'
    expect(await postern.checkCaptcha({ app, ...asked, code: wrong })).toEqual({
      outcome: 'code_mismatch',
      triesLeft: 2,
    })
    expect(await postern.checkCaptcha({ app: 'other', ...asked, code })).toMatchObject({
      outcome: 'code_gone',
    })
    expect(await postern.checkCaptcha({ app, ...asked, code })).toEqual({
      outcome: 'passed',
      id: sent.id,
      scene: 'signup',
      verifiedAt: expect.any(String),
      pass: expect.any(String),
    })
    expect(await postern.checkCaptcha({ app, ...asked, code })).toMatchObject({
      outcome: 'code_gone',
    })
  })

  test('limits: one budget for both doors; the refusal has the members of the 429 and no others', async () => {
    const rule = { name: 'recipient', key: '{app}:{to}:{ip}', sliding: '1 per 1h' }
    const { postern, post } = await open({ policies: { ...noLimits, captcha: [rule] } })
    const asked = { channel: 'sms', to: newPhone(), ip: '192.0.2.1' } as const
    expect(await postern.sendCaptcha({ app, ...asked })).toMatchObject({ outcome: 'accepted' })
    const { status, body } = await post('/v1/captchas', asked)
    expect(status).toBe(429)
    const refused = await postern.sendCaptcha({ app, ...asked })
    expect(refused).toEqual({
      outcome: 'limited',
      policy: body.policy,
      rule: body.rule,
      window: body.window,
      retryAfterMs: expect.any(Number),
    })
    const elsewhere = { ...asked, ip: '2001:db8::1' }
    expect(await postern.sendCaptcha({ app, ...elsewhere })).toMatchObject({ outcome: 'accepted' })
  })

  test('a send with a separate policy: a refusal has the name of that policy, for included rules too', async () => {
    const rule = { name: 'recipient', key: '{app}:{to}', sliding: '1 per 1h' }
    const own = [{ name: 'scene', key: '{scene}', sliding: '1 per 1h' }, { include: 'captcha' }]
    const { postern } = await open({ policies: { ...noLimits, captcha: [rule], own } })
    const send = (to: string, scene: string) =>
      postern.sendCaptcha({ app, channel: 'sms', to, scene, policy: 'own' })
    const to = newPhone()
    expect(await send(to, 'one')).toMatchObject({ outcome: 'accepted' })
    const refused = { outcome: 'limited', policy: 'own' }
    expect(await send(newPhone(), 'one')).toMatchObject({ ...refused, rule: 'scene' })
    expect(await send(to, 'two')).toMatchObject({ ...refused, rule: 'recipient' })
  })

  test('the metrics of a host: ready with working servers, not ready while Redis evicts keys', async () => {
    const { postern } = await open()
    const readyIn = (text: string) => /^postern_ready\{process="embedded"\} (\d)$/m.exec(text)?.[1]
    expect(readyIn(await postern.metrics())).toBe('1')
    const { url } = await ownRedis(['--maxmemory-policy', 'allkeys-lru'])
    const environment = {
      ...posternEnv({ ...on, policyFile: { policies: noLimits } }),
      REDIS_URL: url,
    }
    const { postern: other } = await open(undefined, { environment })
    expect(readyIn(await other.metrics())).toBe('0')
  })

  test('an idempotencyKey: a repeat gets the first answer, by HTTP too; another request is refused', async () => {
    const { postern, post } = await open()
    const asked = { channel: 'sms', to: newPhone() } as const
    const first = await postern.sendCaptcha({ app, ...asked, idempotencyKey: 'one' })
    expect(await postern.sendCaptcha({ app, ...asked, idempotencyKey: 'one' })).toEqual(first)
    const headers = { 'idempotency-key': 'one' }
    const { body } = await post('/v1/captchas', asked, { headers })
    expect(first).toEqual({ outcome: 'accepted', ...body })
    const other = { app, ...asked, scene: 'other', idempotencyKey: 'one' }
    expect(await postern.sendCaptcha(other)).toEqual({ outcome: 'idempotency_key_reused' })
  })

  test('a notice; an invalid recipient, a country that is not allowed, an unknown template', async () => {
    const { postern } = await open({ policies: noLimits, recipients: { countries: ['CN'] } })
    const notice = {
      app,
      channel: 'sms',
      to: newPhone(),
      template: 'notice',
      params: { text: 'x' },
    } as const
    const unknown = await postern.sendNotice({ ...notice, template: 'nowhere' })
    expect(unknown).toEqual({
      outcome: 'invalid_request',
      errors: [{ path: 'template', message: 'there is no such template' }],
    })
    const sendTo = (to: string) => postern.sendCaptcha({ app, channel: 'sms', to })
    expect(await sendTo('12')).toMatchObject({ outcome: 'invalid_recipient' })
    expect(await sendTo('+85291234567')).toEqual({
      outcome: 'destination_not_allowed',
      reason: 'country',
    })
  })

  const good = { app, channel: 'sms', to: '+8613800138000' }
  test.each<[unknown, string]>([
    [undefined, ''],
    [null, ''],
    ['sms', ''],
    [[], ''],
    [() => {}, ''],
    [{ ...good, app: undefined }, 'app'],
    [{ ...good, app: 'a:b' }, 'app'],
    [{ ...good, app: ['default'] }, 'app'],
    [{ ...good, channel: 'pigeon' }, 'channel'],
    [{ ...good, to: 8_613_800_138_000 }, 'to'],
    [{ ...good, to: { toString: () => '+8613800138000' } }, 'to'],
    [{ ...good, to: Symbol('to') }, 'to'],
    [{ ...good, to: 1n }, 'to'],
    [{ ...good, to: '+86138\u0000' }, 'to'],
    [{ ...good, to: 'x'.repeat(1_000_000) }, 'to'],
    [{ ...good, params: { a: {} } }, 'params.a'],
    [{ ...good, params: { a: 7n } }, 'params.a'],
    [{ ...good, params: JSON.parse('{"__proto__":"x"}') }, 'params.__proto__'],
    [{ ...good, ip: 'nowhere' }, 'ip'],
    [{ ...good, scene: 'A b' }, 'scene'],
    [{ ...good, idempotencyKey: 'a b' }, 'idempotencyKey'],
    [{ ...good, idempotencyKey: 7 }, 'idempotencyKey'],
    [{ ...good, challenge: 'x' }, 'challenge'],
    [{ ...good, colour: 'red' }, 'colour'],
    [
      Object.assign(Object.create({ app }), { channel: 'sms', to: good.to, colour: good }),
      'colour',
    ],
  ])('asked with %o → invalid_request that names the field', async (asked, path) => {
    const outcome = await shared.sendCaptcha(asked as never)
    expect(outcome).toMatchObject({ outcome: 'invalid_request' })
    const { errors } = outcome as unknown as { errors: { path: string }[] }
    expect(errors.map((error) => error.path)).toContain(path)
  })

  test('a check with a code of another type, a notice with an invalid time', async () => {
    const { checkCaptcha, sendNotice } = shared
    for (const code of [1234, ['1234'], '12 34', '１２３４', null]) {
      const outcome = await checkCaptcha({ ...good, code } as never)
      expect(outcome).toMatchObject({ outcome: 'invalid_request', errors: [{ path: 'code' }] })
    }
    for (const [name, value] of Object.entries({ ttl: 60_000, sendAt: new Date(), params: 7 })) {
      const outcome = await sendNotice({ ...good, template: 'captcha', [name]: value } as never)
      expect(outcome).toMatchObject({ outcome: 'invalid_request', errors: [{ path: name }] })
    }
  })

  test('PostgreSQL is away, or Postern is closed → unavailable, and nothing is thrown', async () => {
    const away = { DATABASE_URL: 'postgresql://127.0.0.1:1/x', BOOTSTRAP_SECRET_KEY: '' }
    const environment = { ...posternEnv({ ...on }), ...away }
    const keyPrefix = `${on.redis.prefix}away:`
    const postern = closeLater(await createPostern({ environment, keyPrefix }))
    const asked = { app, channel: 'sms', to: newPhone() } as const
    expect(await postern.sendCaptcha(asked)).toEqual({ outcome: 'unavailable' })
    await postern.close()
    expect(await postern.sendCaptcha(asked)).toEqual({ outcome: 'unavailable' })
  })

  test('two in one process: each with separate limits, kinds and plugins', async () => {
    const calls = (name: string): Plugin => ({
      name,
      router: () => Router().get('/who', (_, response) => void response.send(name)),
    })
    const one = await open(undefined, { plugins: [calls('one')] })
    const other = await open(undefined, {
      plugins: [calls('other')],
      keyPrefix: `${on.redis.prefix}2:`,
    })
    expect([(await one.get('/who')).body, (await other.get('/who')).body]).toEqual(['one', 'other'])
    await one.postern.close()
    const asked = { app, channel: 'sms', to: newPhone() } as const
    expect(await other.postern.sendCaptcha(asked)).toMatchObject({ outcome: 'accepted' })
  })
})

describe('provider kinds of a host', () => {
  /** A provider kind that calls `send` for each message. */
  const acmeThat = (send: (message: { to: string }) => unknown): ProviderKind<object> => ({
    kind: 'acme',
    channels: ['sms'],
    settings: z.strictObject({}),
    create: (name) => ({
      name,
      kind: 'acme',
      channels: ['sms'],
      slots: 10,
      send: send as never,
      async close() {},
    }),
  })
  const policyFile = {
    policies: noLimits,
    providers: { carrier: { kind: 'acme' } },
    routes: { sms: [{ use: ['carrier'] }], email: [] },
    delivery: { timeout: '200ms', tries: 1, unknownRetries: 0 },
  }

  test('it carries; sends that never end, throw, or return an invalid value are unknown, and the next one runs', async () => {
    const answers: (() => unknown)[] = [
      () => new Promise(() => {}),
      () => {
        throw new Error('oh')
      },
      () => ({ kind: 'delivered' }),
      () => ({ kind: 'rejected', detail: 'of two\nlines' }),
      () => ({ kind: 'accepted', messageId: 7 }),
    ]
    const expected = [
      { outcome: 'unknown', detail: 'the provider did not end in time' },
      { outcome: 'unknown', detail: 'the code of the provider failed' },
      { outcome: 'unknown', detail: 'the code of the provider failed' },
      { outcome: 'rejected', detail: 'the detail cannot be stored' },
      { outcome: 'accepted' },
    ]
    const people = answers.map(newPhone)
    const acme = acmeThat(({ to }) => answers[people.indexOf(to)]?.())
    const { postern, get } = await open(policyFile, { providerKinds: { acme } })
    postern.startWorker()
    const firstAttemptOf = async (to: string) => {
      const sent = await postern.sendCaptcha({ app, channel: 'sms', to })
      if (sent.outcome !== 'accepted') expect.unreachable()
      const { attempts } = await eventually(async () => {
        const { body } = await get(`/v1/notices/${sent.id}`)
        return ['failed', 'sent', 'expired'].includes(body.state) && body
      })
      return attempts[0]
    }
    expect(await Promise.all(people.map(firstAttemptOf))).toMatchObject(
      expected.map((each) => ({ provider: 'carrier', ...each })),
    )
  })

  test('a create that returns no provider → an Error that names it', async () => {
    const acme = acmeThat(() => {})
    const environment = posternEnv({ ...on, policyFile })
    const none: ProviderKind<object> = { ...acme, create: async () => ({}) as never } as never
    const postern = closeLater(await createPostern({ environment, providerKinds: { acme: none } }))
    expect(() => postern.startWorker()).toThrow(
      'provider "carrier" of kind acme: create returned no provider: ',
    )
  })
})

test('an option that createPostern does not know → an Error that names it and those it knows', async () => {
  const environment = posternEnv(on)
  await expect(createPostern({ environment, keyprefix: 'other:' } as never)).rejects.toThrow(
    'createPostern has no option "keyprefix"; its options are environment, policy, keyPrefix, providerKinds, plugins',
  )
})

test('plugins share the calls, and none can change them for the others', async () => {
  const seen: unknown[] = []
  const plugin = (name: string) => ({
    name,
    router(postern: object) {
      seen.push(Object.isFrozen(postern), Reflect.set(postern, 'sendCaptcha', null))
      return Router()
    },
  })
  await open(undefined, { plugins: [plugin('a'), plugin('b')] })
  expect(seen).toEqual([true, false, true, false])
})

test('openapi.json: one document for every spelling of a mount, and its server is that mount', async () => {
  const url = await listen(createServer(express().use('/otp', shared.router)))
  const documents = await Promise.all(
    ['/otp', '/OTP'].map(async (mount) => {
      const address = `${url}${mount}/openapi.json`
      const text = await (await fetch(address)).text()
      const server = new URL(JSON.parse(text).servers[0].url, address)
      expect(server.pathname.replace(/\/$/, '')).toBe(mount)
      return text
    }),
  )
  expect(new Set(documents).size).toBe(1)
})

test('the first call after createPostern finds its servers connected', async () => {
  const environment = { ...posternEnv(on), BOOTSTRAP_SECRET_KEY: undefined }
  const postern = closeLater(await createPostern({ environment, keyPrefix: on.redis.prefix }))
  const asked = { app, channel: 'sms', to: newPhone() } as const
  expect(await postern.sendCaptcha(asked)).toMatchObject({ outcome: 'accepted' })
})

describe("a plugin's router", () => {
  const failing = () =>
    Router()
      .get('/plugin/throws', () => {
        throw new Error('secret of the plugin')
      })
      .get('/plugin/rejects', async () => Promise.reject(new Error('secret of the plugin')))
      .get('/plugin/nothing', () => Promise.reject(undefined))
      .get('/plugin/half', (_, response) => {
        response.write('half')
        throw new Error('secret of the plugin')
      })

  test('comes after all paths of Postern, calls in process, and its errors are internal: counted, and no stack', async () => {
    const taken: string[] = []
    const plugin: Plugin = {
      name: 'acme-api',
      router: (postern) =>
        failing()
          .post('/v1/acme', express.json(), async (request, response) => {
            response.json(await postern.sendCaptcha({ app, channel: 'sms', to: request.body.to }))
          })
          .use((request, _, next) => {
            taken.push(request.url)
            next()
          }),
    }
    const { post, get, url, postern } = await open(undefined, { plugins: [plugin] })
    expect((await post('/v1/acme', { to: newPhone() })).body).toMatchObject({ outcome: 'accepted' })
    expect((await post('/v1/captchas', { channel: 'sms', to: newPhone() })).status).toBe(202)
    expect((await get('/v1/captchas')).status).toBe(405)
    expect((await get('/v1/captchas/check')).status).toBe(405)
    expect((await get('/openapi.json')).status).toBe(200)
    expect(taken).toEqual([])
    expect(await get('/elsewhere')).toMatchObject({ status: 404, body: 'of the host' })
    expect(taken).toEqual(['/elsewhere'])

    for (const path of ['throws', 'rejects', 'nothing']) {
      const { status, headers, body } = await get(`/plugin/${path}`)
      expect([status, headers.get('content-type')]).toEqual([500, 'application/problem+json'])
      expect(body).toMatchObject({ code: 'internal', requestId: expect.any(String) })
      expect(JSON.stringify(body)).not.toMatch(/secret|plugin| at /)
    }
    // A begun answer can only be cut off.
    await expect(fetch(`${url}/plugin/half`).then((answer) => answer.text())).rejects.toThrow()
    const metrics = await postern.metrics()
    const countOf = (method: string, status: number) =>
      new RegExp(
        `requests_total\\{[^}]*route="plugin acme-api"[^}]*method="${method}"[^}]*status="${status}"[^}]*\\} (\\d+)`,
      ).exec(metrics)?.[1]
    expect(countOf('GET', 500)).toBe('4')
    // Its answers are counted too. A path that it passes on is not its own.
    expect(countOf('POST', 200)).toBe('1')
    expect(countOf('GET', 404)).toBe(undefined)
    expect(countOf('POST', 503)).toBe('0')
  })

  test('what a plugin passes on has nothing of it; a client that leaves before its answer is counted as 499', async () => {
    const asked: Response[] = []
    const plugin: Plugin = {
      name: 'acme-api',
      router: () => Router().get('/v1/acme', (_, response) => void asked.push(response)),
    }
    const { get, url, postern } = await open(undefined, { plugins: [plugin] })
    const ofHost = await get('/elsewhere', { headers: { 'x-request-id': 'request-of-a-client' } })
    expect([ofHost.status, ofHost.headers.get('x-request-id')]).toEqual([404, null])
    const answer = get('/v1/acme', { headers: { 'x-request-id': 'request-of-a-client' } })
    await eventually(() => expect(asked).toHaveLength(1))
    asked[0]?.json({})
    expect((await answer).headers.get('x-request-id')).toBe('request-of-a-client')

    const leaving = new AbortController()
    const left = fetch(`${url}/v1/acme`, { signal: leaving.signal })
    await eventually(() => expect(asked).toHaveLength(2))
    leaving.abort()
    await expect(left).rejects.toThrow()
    await eventually(async () =>
      expect(await postern.metrics()).toMatch(
        /requests_total\{[^}]*route="plugin acme-api"[^}]*status="499"[^}]*\} 1/,
      ),
    )
  })

  test('throw null: a handler without a router is a fault; in a router Express goes on to the next handler', async () => {
    const throwNull = () => {
      throw null
    }
    const plain = { name: 'plain', router: () => throwNull as never }
    const routed = { name: 'routed', router: () => Router().get('/null', throwNull) }
    const ofPlain = await open(undefined, { plugins: [plain] })
    expect((await ofPlain.get('/null')).status).toBe(500)
    const ofRouted = await open(undefined, { plugins: [routed] })
    expect(await ofRouted.get('/null')).toMatchObject({ status: 404, body: 'of the host' })
  })

  test('a body that its parser refuses is a bad request, and no fault; a value that cannot be read ends nothing', async () => {
    const unreadable = new Proxy(
      {},
      {
        get: () => {
          throw new Error('no')
        },
        getPrototypeOf: () => {
          throw new Error('no')
        },
      },
    )
    const vendorError = Object.assign(new Error('no such key'), { status: 401, type: 'auth_error' })
    const plugin: Plugin = {
      name: 'acme-api',
      router: () =>
        Router()
          .post('/v1/acme', express.json({ limit: 100 }), (_, response) => void response.json({}))
          .get('/v1/acme', async () => Promise.reject(unreadable))
          .get('/v1/vendor', async () => Promise.reject(vendorError))
          .get('/v1/items/:id', (_, response) => void response.json({})),
    }
    const { get, url, postern } = await open(undefined, { plugins: [plugin] })
    const statusOf = async (body: string, type = 'application/json') =>
      (await fetch(`${url}/v1/acme`, { method: 'POST', headers: { 'content-type': type }, body }))
        .status
    expect(await statusOf('+8613800138555')).toBe(400)
    expect(await statusOf(JSON.stringify('x'.repeat(200)))).toBe(413)
    expect(await statusOf('{}', 'application/json; charset=klingon')).toBe(415)
    const encoded = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const notGzip = await fetch(`${url}/v1/acme`, { method: 'POST', headers: encoded, body: '{}' })
    expect(notGzip.status).toBe(400)
    expect((await get('/v1/items/%ff')).status).toBe(400)
    expect((await get('/v1/acme')).status).toBe(500)
    expect((await get('/v1/vendor')).status).toBe(500)
    const faults =
      /requests_total\{[^}]*route="plugin acme-api"[^}]*method="POST"[^}]*status="500"[^}]*\} (\d+)/
    expect(faults.exec(await postern.metrics())?.[1]).toBe('0')
  })

  test('examples/own-routes: an earlier address sends and checks; a body without a number is refused', async () => {
    // @ts-expect-error: JavaScript
    const { default: plugin } = await import('../../examples/own-routes/old-address.js')
    const { post, codeFor, postern, url } = await open(undefined, { plugins: [plugin] })
    postern.startWorker()
    const phone = newPhone()
    expect(await post('/otp/send', { phone })).toMatchObject({
      status: 200,
      body: { result: 'accepted' },
    })
    const refused = { status: 400, body: { result: 'invalid_request' } }
    expect(await post('/otp/send', { phone: 7 })).toMatchObject(refused)
    expect(await (await fetch(`${url}/otp/send`, { method: 'POST' })).json()).toEqual(refused.body)
    const code = await codeFor(phone)
    const check = async (typed: string) => (await post('/otp/check', { phone, code: typed })).body
    expect(await check('x')).toEqual({ verified: false })
    expect(await check(code)).toEqual({ verified: true })
  })

  test('it fails at start → an Error with its name, and nothing stays open', async () => {
    const plugin: Plugin = {
      name: 'acme-api',
      router: async () => Promise.reject(new Error('no port is free')),
    }
    await expect(open(undefined, { plugins: [plugin] })).rejects.toThrow(
      'plugin acme-api: no port is free',
    )
  })
})
