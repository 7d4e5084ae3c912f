/** The calls in process for routers of plugins: keys, codes made by the caller, reads, ends of codes. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import express from 'express'
import { describe, expect, test } from 'vitest'
import { createKeyStore } from '../../src/access/key-store.ts'
import { canonicalRecord } from '../../src/base/canonical.ts'
import { createCalls } from '../../src/http/in-process.ts'
import { createUnderWay } from '../../src/http/under-way.ts'
import { createPostern, type PosternCalls } from '../../src/main/create-postern.ts'
import { apiKey } from '../tools/api-key.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { listen } from '../tools/listen.ts'
import { clientOf, noLimits, posternEnv, startPostern } from '../tools/postern.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const on = { redis: await testRedis(), database: await testDatabase() }
const app = 'default'
let people = 0
const newPhone = () => `+86138002${String(++people).padStart(5, '0')}`

async function open(policyFile: Record<string, unknown> = {}, plugins: never[] = []) {
  const environment = posternEnv({ ...on, policyFile: { policies: noLimits, ...policyFile } })
  const postern = await createPostern({ environment, keyPrefix: on.redis.prefix, plugins })
  releaseLater(() => postern.close())
  return postern
}
const own = { code: { length: 4, own: true } }
const shared = await open()

describe('codes of the caller', () => {
  test('kept, checked and shown by its length; another case of a letter is a wrong code', async () => {
    const postern = await open(own)
    const asked = { app, channel: 'sms', to: newPhone() } as const
    const sent = await postern.sendCaptcha({ ...asked, code: 'aB3dE' })
    expect(sent).toMatchObject({ outcome: 'accepted', codeLength: 5 })
    const check = (code: string) => postern.checkCaptcha({ ...asked, code })
    expect(await check('ab3de')).toMatchObject({ outcome: 'code_mismatch', triesLeft: 2 })
    expect(await check('aB3d')).toMatchObject({ outcome: 'code_mismatch', triesLeft: 1 })
    expect(await check('aB3dE')).toMatchObject({ outcome: 'passed' })
  })

  test.each(['abc', 'abcdefghijk', 'ab 12', '１２３４', 'abcé', '', 'ab\n12'])(
    'the code %j → invalid_request, for a send and for a check, and no try',
    async (code) => {
      const postern = await open(own)
      const asked = { app, channel: 'sms', to: newPhone() } as const
      await postern.sendCaptcha({ ...asked, code: '1234' })
      const wrong = { outcome: 'invalid_request', errors: [{ path: 'code' }] }
      expect(await postern.sendCaptcha({ ...asked, code })).toMatchObject(wrong)
      expect(await postern.checkCaptcha({ ...asked, code })).toMatchObject(wrong)
      const last = await postern.checkCaptcha({ ...asked, code: '1235' })
      expect(last).toMatchObject({ outcome: 'code_mismatch', triesLeft: 2 })
    },
  )

  test('without code.own: a code is refused, and a check takes exactly the digits', async () => {
    const postern = await open({ code: { length: 6 } })
    const asked = { app, channel: 'sms', to: newPhone() } as const
    const wrong = { outcome: 'invalid_request', errors: [{ path: 'code' }] }
    expect(await postern.sendCaptcha({ ...asked, code: '123456' })).toMatchObject(wrong)
    for (const code of ['1234', '1234567', 'abcdef']) {
      expect(await postern.checkCaptcha({ ...asked, code })).toMatchObject(wrong)
    }
  })

  test('an idempotencyKey: the same code repeats, another code is reused; the row has no hash of it alone', async () => {
    const postern = await open(own)
    const asked = { app, channel: 'sms', to: newPhone(), idempotencyKey: `k${people}` } as const
    const first = await postern.sendCaptcha({ ...asked, code: '1234' })
    expect(await postern.sendCaptcha({ ...asked, code: '1234' })).toEqual(first)
    const other = await postern.sendCaptcha({ ...asked, code: '1235' })
    expect(other).toEqual({ outcome: 'idempotency_key_reused' })
  })

  test('the row of an Idempotency-Key has no hash from which the code could be found', async () => {
    const postern = await open(own)
    const hashFor = async (idempotencyKey: string, more: { code?: string }) => {
      const asked = { channel: 'sms', to: newPhone(), scene: 'rows', ...more } as const
      await postern.sendCaptcha({ app, ...asked, idempotencyKey })
      const { rows } = await on.database.pool.query(
        'SELECT request_hash FROM idempotency_key ORDER BY created_at DESC LIMIT 1',
      )
      const whole = { ...asked, template: 'captcha', params: {} }
      const plain = createHash('sha256')
        .update(`captcha ${canonicalRecord(whole)}`)
        .digest()
      return rows[0].request_hash.equals(plain)
    }
    // An attacker who knows the format can hash the request. So a short code would be found at once.
    expect(await hashFor('rows-1', {})).toBe(true)
    expect(await hashFor('rows-2', { code: '1234' })).toBe(false)
  })

  test('by HTTP: a secret key may, a publishable one may not; the message has it', async () => {
    const { post, codeFor } = await startPostern({ policyFile: { policies: noLimits, ...own } })
    const to = newPhone()
    const sent = await post('/v1/captchas', { channel: 'sms', to, code: '90210' })
    expect(sent).toMatchObject({ status: 202, body: { codeLength: 5 } })
    expect(await codeFor(to)).toBe('90210')
    const check = await post('/v1/captchas/check', { channel: 'sms', to, code: '90210' })
    expect(check.status).toBe(200)
  })
})

test('anyForm: a code of the wrong form is a wrong code, and the last one ends the tries', async () => {
  const postern = await open()
  const asked = { app, channel: 'sms', to: newPhone(), anyForm: true } as const
  const { anyForm: _, ...send } = asked
  await postern.sendCaptcha(send)
  const check = (code: string) => postern.checkCaptcha({ ...asked, code })
  expect(await check('abc')).toMatchObject({ outcome: 'code_mismatch', triesLeft: 2 })
  expect(await check('1'.repeat(300))).toMatchObject({ outcome: 'code_mismatch', triesLeft: 1 })
  expect(await check('')).toMatchObject({ outcome: 'code_mismatch', triesLeft: 0 })
  expect(await check('1234')).toEqual({ outcome: 'code_gone', reason: 'tries' })
})

describe('the end of a code', () => {
  test('tries, passed and canceled differ and stand in the row; by HTTP all are one answer', async () => {
    const { post, get, codeFor, url } = await startPostern({ policyFile: { policies: noLimits } })
    expect(url).toContain('http')
    const end = async (finish: (to: string) => Promise<unknown>) => {
      const to = newPhone()
      const { body } = await post('/v1/captchas', { channel: 'sms', to })
      await finish(to)
      const after = await post('/v1/captchas/check', { channel: 'sms', to, code: '0000' })
      const { codeEnd } = await eventually(async () => {
        const notice = (await get(`/v1/notices/${body.id}`)).body
        return notice.codeEnd !== undefined && notice
      })
      return [codeEnd, after.status, Object.keys(after.body).sort().join()]
    }
    const members = 'code,detail,status,title,type'
    const wrong = async (to: string) => {
      const code = (await codeFor(to)) === '0000' ? '1111' : '0000'
      for (let n = 0; n < 3; n++) await post('/v1/captchas/check', { channel: 'sms', to, code })
    }
    expect(await end(wrong)).toEqual(['tries', 410, members])
    const right = async (to: string) =>
      post('/v1/captchas/check', { channel: 'sms', to, code: await codeFor(to) })
    expect(await end(right)).toEqual(['passed', 410, members])
  })

  test.each([
    undefined,
    null,
    'sms',
    7,
    [],
    {},
    { app },
    { app, id: 7 },
    { app, id: 'x', to: undefined },
  ])('checkCaptcha asked with %o → invalid_request', async (asked) => {
    const { outcome } = await shared.checkCaptcha(asked as never)
    expect(outcome).toBe('invalid_request')
  })

  test('checkCaptcha by an id alone; another app’s id is unknown', async () => {
    const postern = await open(own)
    const sent = await postern.sendCaptcha({ app, channel: 'sms', to: newPhone(), code: '2468' })
    const { id } = sent as { id: string }
    const elsewhere = await postern.checkCaptcha({ app: 'other', id, code: '2468' })
    expect(elsewhere).toEqual({ outcome: 'code_gone', reason: 'unknown' })
    expect(await postern.checkCaptcha({ app, id, code: '2468' })).toMatchObject({
      outcome: 'passed',
    })
    const again = await postern.checkCaptcha({ app, id, code: '2468' })
    expect(again).toEqual({ outcome: 'code_gone', reason: 'used' })
  })

  test('cancelCaptcha: the code passes no more, its message is not sent, a repeat is the same, others are not found', async () => {
    const postern = await open(own)
    const asked = { app, channel: 'sms', to: newPhone() } as const
    const sent = await postern.sendCaptcha({ ...asked, code: '1357' })
    const { id } = sent as { id: string }
    expect(await postern.cancelCaptcha({ app: 'other', id })).toEqual({ outcome: 'not_found' })
    expect(await postern.cancelCaptcha({ app, id: 'x' })).toEqual({ outcome: 'not_found' })
    expect(await postern.cancelCaptcha({ app, id })).toEqual({ outcome: 'canceled' })
    expect(await postern.cancelCaptcha({ app, id })).toEqual({ outcome: 'canceled' })
    const checked = await postern.checkCaptcha({ ...asked, code: '1357' })
    expect(checked).toEqual({ outcome: 'code_gone', reason: 'used' })
    postern.startWorker()
    await eventually(async () => {
      const found = await postern.findNotice({ app, id })
      expect(found).toMatchObject({ notice: { state: 'expired', codeEnd: 'canceled' } })
    })
  })

  test('cancelCaptcha with isPassed: as after a right code, the use of the send comes back and captcha.passed is written, once', async () => {
    const rule = { name: 'unverified', key: '{app}', sliding: '2 per 24h', refund: 'passed' }
    const postern = await open({
      ...own,
      policies: { captcha: [rule], notice: [], check: [] },
      events: {
        url: 'http://127.0.0.1:9/',
        secret: 'a secret of sixteen bytes',
        types: ['captcha.passed'],
      },
    })
    const send = async () => {
      const sent = await postern.sendCaptcha({ app, channel: 'sms', to: newPhone() })
      return 'id' in sent ? sent.id : sent.outcome
    }
    const [first, second] = [await send(), await send()]
    expect(await send()).toBe('limited')
    const asked = { app, id: first, isPassed: true }
    const ended = await Promise.all(Array.from({ length: 5 }, () => postern.cancelCaptcha(asked)))
    // On a busy machine, one may come after another has ended.
    const isEnd = expect.toSatisfy(
      ({ outcome, reason }) => outcome === 'canceled' || reason === 'used',
    )
    expect(ended).toEqual(ended.map(() => isEnd))
    expect(ended).toContainEqual({ outcome: 'canceled' })
    await eventually(async () => expect(await send()).not.toBe('limited'))
    await postern.cancelCaptcha(asked)
    await postern.cancelCaptcha({ app, id: second })
    expect(await send()).toBe('limited')
    const { rows } = await on.database.pool.query('SELECT type, data FROM event')
    const to = expect.stringContaining('*')
    const data = { id: first, channel: 'sms', to, scene: 'default' }
    expect(rows).toEqual([{ type: 'captcha.passed', data }])
  })

  test('cancelCaptcha of an earlier send leaves the newer code', async () => {
    const postern = await open(own)
    const asked = { app, channel: 'sms', to: newPhone() } as const
    const { id } = (await postern.sendCaptcha({ ...asked, code: '1357' })) as { id: string }
    await postern.sendCaptcha({ ...asked, code: '2468' })
    expect(await postern.cancelCaptcha({ app, id })).toEqual({
      outcome: 'code_gone',
      reason: 'expired',
    })
    expect(await postern.checkCaptcha({ ...asked, code: '2468' })).toMatchObject({
      outcome: 'passed',
    })
  })
})

test('searchNotices and countNotices: by scene, kind, time and whether the code passed', async () => {
  const postern = await open(own)
  const scene = 'counted'
  for (const code of ['1111', '2222', '3333']) {
    const asked = { app, channel: 'sms', to: newPhone(), scene, code } as const
    await postern.sendCaptcha(asked)
    if (code === '1111') await postern.checkCaptcha(asked)
  }
  const filter = { app, scenes: [scene], kind: 'captcha' as const }
  await eventually(async () => {
    const counted = await postern.countNotices(filter)
    expect(counted).toEqual({ outcome: 'found', total: 3, passed: 1 })
  })
  const ofOthers = await postern.countNotices({ ...filter, app: 'other' })
  expect(ofOthers).toEqual({ outcome: 'found', total: 0, passed: 0 })
  const from = new Date(Date.now() + 3_600_000).toISOString()
  expect(await postern.countNotices({ ...filter, from })).toMatchObject({ total: 0 })
  expect(await postern.countNotices({ ...filter, before: from })).toMatchObject({ total: 3 })
  const ancient = '0001-01-01T00:00:00Z'
  expect(await postern.countNotices({ ...filter, from: ancient })).toMatchObject({ total: 3 })
  expect(await postern.countNotices({ ...filter, before: ancient })).toMatchObject({ total: 0 })
  const last9999 = '9999-12-31T23:59:59.999Z'
  expect(await postern.countNotices({ ...filter, before: last9999 })).toMatchObject({ total: 3 })
  const passed = await postern.searchNotices({ ...filter, hasPassed: true })
  expect(passed).toMatchObject({ outcome: 'found', items: [{ codeEnd: 'passed', scene }] })
  const others = await postern.searchNotices({ ...filter, hasPassed: false, limit: 1 })
  expect(others).toMatchObject({ items: [{ scene }], nextCursor: expect.any(String) })
  const { nextCursor: cursor } = others as { nextCursor: string }
  const last = await postern.searchNotices({ ...filter, hasPassed: false, cursor })
  expect(last).toMatchObject({ items: [{ scene }] })
  expect(last).not.toHaveProperty('nextCursor')
  const foreign = await postern.searchNotices({ ...filter, app: 'other', cursor })
  expect(foreign).toMatchObject({ outcome: 'invalid_request', errors: [{ path: 'cursor' }] })
})

test('authenticate: app and kind of a key; a made-up, a revoked and an ended one are unauthorized', async () => {
  const postern = await open()
  const database = databaseAt(on.database.url, 1)
  const keys = createKeyStore(database)
  const { id, token } = await keys.create({ name: 'shop', app: 'shop' })
  expect(await postern.authenticate(token)).toEqual({
    outcome: 'authenticated',
    app: 'shop',
    keyId: id,
    kind: 'secret',
  })
  const unauthorized = { outcome: 'unauthorized' }
  for (const wrong of ['', 'x', 'a b', 'psk_\n', 7, undefined, 'x'.repeat(100_000)]) {
    expect(await postern.authenticate(wrong as string)).toEqual(unauthorized)
  }
  const short = await keys.create({ name: 'short', app: 'shop', livesMs: 600_000 })
  expect(await postern.authenticate(short.token)).toMatchObject({ outcome: 'authenticated' })
  await on.database.pool.query('UPDATE api_key SET expires_at = now() WHERE id = $1', [short.id])
  await eventually(async () =>
    expect(await postern.authenticate(short.token)).toEqual(unauthorized),
  )
  await postern.close()
  expect(await postern.authenticate(token)).toEqual({ outcome: 'unavailable' })
})

test("a plugin's policy includes captcha's rules and decides in one step with them", async () => {
  const plugin = {
    name: 'few',
    policies: {
      few: [{ include: 'captcha' }, { name: 'two', key: '{app}:{to}', sliding: '2 per 1h' }],
    },
  }
  const rule = { name: 'three', key: '{app}:{channel}:{to}', sliding: '3 per 1h' }
  const environment = posternEnv({
    ...on,
    policyFile: { policies: { ...noLimits, captcha: [rule] } },
  })
  const keyPrefix = `${on.redis.prefix}few:`
  const routed = {
    ...plugin,
    router: () => ((_: unknown, __: unknown, next: () => void) => next()) as never,
  }
  const postern = await createPostern({ environment, keyPrefix, plugins: [routed as never] })
  releaseLater(() => postern.close())
  const asked = { app, channel: 'sms', to: newPhone() } as const
  const send = (policy?: string) => postern.sendCaptcha({ ...asked, ...(policy ? { policy } : {}) })
  expect(await send('few')).toMatchObject({ outcome: 'accepted' })
  expect(await send('few')).toMatchObject({ outcome: 'accepted' })
  expect(await send('few')).toMatchObject({ outcome: 'limited', rule: 'two' })
  expect(await send()).toMatchObject({ outcome: 'accepted' })
  expect(await send()).toMatchObject({ outcome: 'limited', rule: 'three' })
})

describe('templates of a plugin', () => {
  const shout = {
    variables: new Set(['name', 'code']),
    render: ({ name, code }: Readonly<Record<string, string>>) => ({ text: `${name}! ${code}!` }),
  }
  const pluginWith = (name: string) => ({ name: 'shouting', templates: { [name]: { sms: shout } } })
  const router = () => express.Router()

  test('rendered in any language, with the values as they are; a missing variable is refused', async () => {
    const postern = await open({}, [{ ...pluginWith('shout'), router } as never])
    postern.startWorker()
    const { messageFor } = clientOf(await served(postern), '')
    const asked = { app, channel: 'sms', to: newPhone(), template: 'shout', locale: 'fr' } as const
    const params = { name: '{{code}} <b>' }
    const sent = await postern.sendCaptcha({ ...asked, params })
    if (sent.outcome !== 'accepted') expect.unreachable(JSON.stringify(sent))
    expect((await messageFor(sent.id)).text).toMatch(/^\{\{code\}\} <b>! \d{4}!$/)
    expect(await postern.sendCaptcha(asked)).toMatchObject({
      outcome: 'invalid_request',
      errors: [{ path: 'params.name' }],
    })
  })

  test('named by a key → 400, for a channel and for a workflow; begun in process, a key begins its next way', async () => {
    const key = await apiKey(on.database, { app })
    const plugin = { name: 'shouting', templates: { shout: { sms: shout, email: shout } }, router }
    const policyFile = { workflows: { all: ['sms', 'email'] } }
    const postern = await open(policyFile, [plugin as never])
    const { post } = clientOf(await served(postern), key)
    const asked = { template: 'shout', params: { name: 'Ada' }, to: newPhone() }
    for (const by of [{ channel: 'sms' }, { workflow: 'all' }]) {
      expect(await post('/v1/captchas', { ...asked, ...by })).toMatchObject({
        status: 400,
        body: { errors: [{ path: 'template' }] },
      })
    }
    const begun = { app, workflow: 'all', email: 'ada@shop.test', ...asked }
    const sent = await postern.sendCaptcha(begun)
    if (sent.outcome !== 'accepted') expect.unreachable(JSON.stringify(sent))
    expect((await post(`/v1/captchas/${sent.id}/next`, {})).status).toBe(202)
  })

  test('with the name of a template in the folder → the start fails with both', async () => {
    const plugin = { ...pluginWith('captcha'), router } as never
    await expect(open({}, [plugin])).rejects.toThrow(/captcha: is the name of a plugin's template/)
  })
})

test('sendsOwnCodes: a plugin sends codes without code.own', async () => {
  const plugin = { name: 'codes', sendsOwnCodes: true, router: () => express.Router() } as never
  const postern = await open({}, [plugin])
  const sent = await postern.sendCaptcha({ app, channel: 'sms', to: newPhone(), code: 'A1B2C3' })
  expect(sent).toMatchObject({ outcome: 'accepted', codeLength: 6 })
})

describe('readBody', () => {
  const plugin = {
    name: 'echo',
    router: (postern: PosternCalls) =>
      express.Router().post('/echo', async (request, response) => {
        const bytes = await postern.readBody(request, 10)
        response.send(bytes.toString('hex'))
      }),
  } as never

  test('the bytes as they came, 413 above the limit, 503 if a parser took them', async () => {
    const postern = await open({}, [plugin])
    const url = await served(postern)
    const post = async (body: string | Uint8Array<ArrayBuffer>, at = url) => {
      const answer = await fetch(`${at}/echo`, { method: 'POST', body })
      return [answer.status, await answer.text()]
    }
    expect(await post(new Uint8Array([0, 255, 13, 10]))).toEqual([200, '00ff0d0a'])
    expect(await post('')).toEqual([200, ''])
    expect((await post('x'.repeat(11)))[0]).toBe(413)
    const parsing = await served(postern, express.text({ type: () => true }))
    expect((await post('x', parsing))[0]).toBe(503)
    const keeping = await served(postern, express.raw({ type: () => true }))
    expect(await post('x', keeping)).toEqual([200, '78'])
  })

  test.each([
    ['with their heads', undefined],
    ['in two pieces', 500],
  ])(
    'bodies %s, one after the other, of three times the bytes of the room → none gets 503',
    async (_, firstBytes) => {
      const calls = createCalls({ underWay: createUnderWay({ maxBodyBytes: 10_000 }) } as never)
      const app = express().post('/', async (request, response) => {
        const bytes = await calls.readBody(request, 1_000)
        response.send(String(bytes.length))
      })
      const url = await served({ router: app })
      const body = Buffer.alloc(1_000, 'x')
      const agent = closeLater(new Agent({ keepAlive: true, maxSockets: 1 }), 'destroy')
      for (let count = 0; count < 30; count++) {
        const headers = { 'content-length': body.length }
        const sending = request(url, { method: 'POST', agent, headers })
        const answered = once(sending, 'response')
        if (firstBytes) {
          sending.write(body.subarray(0, firstBytes))
          await once(sending, 'socket')
          // The first piece is on its way before the second is written.
          await new Promise((resolve) => setImmediate(resolve))
        }
        sending.end(body.subarray(firstBytes ?? 0))
        const [answer] = (await answered) as [IncomingMessage]
        expect([answer.statusCode, await text(answer)]).toEqual([200, '1000'])
      }
    },
  )

  test('bodies that end after their answer, of twice the bytes of the room → each is read, and none keeps its room', async () => {
    const calls = createCalls({ underWay: createUnderWay({ maxBodyBytes: 10_000 }) } as never)
    const lengths: (number | string)[] = []
    const app = express().post('/', async (request, response) => {
      const reading = calls.readBody(request, 2_000)
      await once(request, 'data')
      response.send('early')
      lengths.push(await reading.then(({ length }) => length, String))
    })
    const url = await served({ router: app })
    for (let count = 1; count <= 10; count++) {
      const sending = request(url, { method: 'POST', headers: { 'content-length': 2_000 } })
      sending.write(Buffer.alloc(500))
      const [answer] = (await once(sending, 'response')) as [IncomingMessage]
      expect(await text(answer)).toBe('early')
      sending.end(Buffer.alloc(1_500))
      await eventually(() => lengths.length === count)
    }
    expect(lengths).toEqual(Array(10).fill(2_000))
  })
})

/** The address of an app with this Postern, after a body parser if one is given. */
async function served(
  postern: { router: express.Router },
  ...parsers: express.RequestHandler[]
): Promise<string> {
  return listen(express().use(...parsers, postern.router))
}
