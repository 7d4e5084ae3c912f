/** The last value that is accepted, and the first that is not. */
import { describe, expect, test } from 'vitest'
import { newPhone } from '../tools/people.ts'
import { noLimits, type RequestOptions, startPostern } from '../tools/postern.ts'
import { badRequest, expectRefused } from './ledger.ts'

const postern = await startPostern({
  roles: { api: true, worker: false },
  policyFile: {
    policies: {
      ...noLimits,
      free: [{ name: 'r', key: '{user}', sliding: '1000 per 1h' }],
      login: [
        { name: 'tries', key: '{app}:{subject}', lockout: { limit: 3, window: '5m', lock: '15m' } },
      ],
    },
  },
})

const welcome = (name: unknown = 'Ada', more: object = {}) => ({
  channel: 'sms',
  to: newPhone(),
  template: 'welcome',
  params: { name },
  ...more,
})
const post = (path: string, body: unknown, options?: RequestOptions) =>
  postern.post(path, body, options)

async function expectTaken(path: string, body: unknown, options?: RequestOptions) {
  const reply = await post(path, body, options)
  expect({ status: reply.status, body: reply.body }).toMatchObject({
    status: expect.toSatisfy((status: number) => [200, 202, 204].includes(status)),
  })
  return reply
}
async function expectFieldRefused(path: string, body: unknown, field: string) {
  const reply = await expectRefused(postern, badRequest, () => post(path, body))
  expect(reply.body.errors.map((error: { path: string }) => error.path)).toContain(field)
}

describe('length', () => {
  test('a variable has 1,000 characters at most', async () => {
    await expectTaken('/v1/notices', welcome('x'.repeat(1_000)))
    await expectFieldRefused('/v1/notices', welcome('x'.repeat(1_001)), 'params.name')
  })

  test('a body has 16 kB at most, announced or not', async () => {
    const body = JSON.stringify(welcome())
    const padded = (bytes: number) => body + ' '.repeat(bytes - body.length)
    await expectTaken('/v1/notices', padded(16_384))
    const tooLarge = { status: 413, code: 'payload_too_large' }
    await expectRefused(postern, tooLarge, () => post('/v1/notices', padded(16_385)))
  })

  test('an Idempotency-Key has at most 255 characters and no space', async () => {
    const withKey = (key: string) => ({ headers: { 'idempotency-key': key } })
    await expectTaken('/v1/notices', welcome(), withKey('!'))
    await expectTaken('/v1/notices', welcome(), withKey('x'.repeat(255)))
    const { status } = await post('/v1/notices', welcome(), withKey('x'.repeat(256)))
    expect(status).toBe(400)
  })

  test('a scene has 32 characters at most, small letters first', async () => {
    const captcha = (scene: string) => ({ channel: 'sms', to: newPhone(), scene })
    await expectTaken('/v1/captchas', captcha('s'))
    await expectTaken('/v1/captchas', captcha(`s${'9'.repeat(29)}_-`))
    for (const scene of ['', 's'.repeat(33), '9s', 'S', 'a b', 'a.b']) {
      await expectFieldRefused('/v1/captchas', captcha(scene), 'scene')
    }
  })

  test('a subject has 320 characters at most, and a policy 64', async () => {
    const attempt = (subject: string, policy = 'login') => ({ policy, subject })
    await expectTaken('/v1/attempts', attempt('x'.repeat(320)))
    await expectFieldRefused('/v1/attempts', attempt('x'.repeat(321)), 'subject')
    await expectFieldRefused('/v1/attempts', attempt(''), 'subject')
    await expectFieldRefused('/v1/attempts', attempt('x', 'x'.repeat(65)), 'policy')
  })

  test('32 fields at most, each of 320 characters, with names of letters, digits and _', async () => {
    const acquire = (fields: object) => ({ fields })
    const path = '/v1/limits/free/acquire'
    const fields = (count: number) => ({
      user: 'ada',
      ...Object.fromEntries(Array.from({ length: count - 1 }, (_, index) => [`f${index}`, index])),
    })
    await expectTaken(path, acquire(fields(32)))
    await expectFieldRefused(path, acquire(fields(33)), 'fields')
    await expectTaken(path, acquire({ user: 'x'.repeat(320), _a1: 'y' }))
    await expectFieldRefused(path, acquire({ user: 'x'.repeat(321) }), 'fields.user')
    await expectFieldRefused(path, acquire({ user: 'x', '1a': 'y' }), 'fields.1a')
    await expectFieldRefused(path, acquire({ user: 'x', app: 'shop' }), 'fields')
  })
})

describe('number', () => {
  test('a page has 1 to 100 items, and a next one only where there is more', async () => {
    const to = newPhone()
    for (let count = 0; count < 3; count++) await post('/v1/notices', welcome(`n${count}`, { to }))
    const search = (limit: number) =>
      post('/v1/notices/search', { channel: 'sms', to, limit }).then(({ body }) => body)
    const two = await search(2)
    expect(two.items).toHaveLength(2)
    expect(two.nextCursor).toEqual(expect.any(String))
    expect((await search(3)).items).toHaveLength(3)
    expect(await search(3)).not.toHaveProperty('nextCursor')
    expect((await search(100)).items).toHaveLength(3)
    for (const limit of [0, 101, 1.5, '2']) {
      await expectFieldRefused('/v1/notices/search', { limit }, 'limit')
    }
    const rest = await post('/v1/notices/search', {
      channel: 'sms',
      to,
      limit: 2,
      cursor: two.nextCursor,
    })
    expect(rest.body.items).toHaveLength(1)
    expect(rest.body).not.toHaveProperty('nextCursor')
    expect(two.items.map(({ id }: { id: string }) => id)).not.toContain(rest.body.items[0].id)
  })

  test('a recipient is searched for in the form of its channel; without one, in all channels', async () => {
    await expectTaken('/v1/notices/search', { to: newPhone() })
    const invalid = { status: 422, code: 'invalid_recipient' }
    await expectRefused(postern, invalid, () =>
      post('/v1/notices/search', { channel: 'sms', to: 'ada@example.test' }),
    )
  })

  test('permits are whole and at least 1', async () => {
    const path = '/v1/limits/free/acquire'
    const acquire = (permits: unknown) => ({ fields: { user: 'permits' }, permits })
    const { body } = await expectTaken(path, acquire(3))
    expect(body).toEqual({ allowed: true, remaining: [{ rule: 'r', window: '1h', left: 997 }] })
    for (const permits of [0, -1, 1.5, '1', null]) {
      await expectFieldRefused(path, acquire(permits), 'permits')
    }
  })
})

describe('time', () => {
  const viewOf = async (body: object) => {
    const sent = await expectTaken('/v1/notices', welcome('Ada', body))
    return (await postern.get(`/v1/notices/${sent.body.id}`)).body
  }
  const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()

  test('sendAt is at most seven days ahead; the time to live counts from it', async () => {
    const sendAt = inMs(7 * 86_400_000 - 60_000)
    const view = await viewOf({ sendAt, ttl: '5m' })
    expect(view.sendAt).toBe(sendAt)
    expect(Date.parse(view.expiresAt)).toBe(Date.parse(sendAt) + 300_000)
    await expectFieldRefused(
      '/v1/notices',
      welcome('Ada', { sendAt: inMs(7 * 86_400_000 + 60_000) }),
      'sendAt',
    )
    await expectFieldRefused('/v1/notices', welcome('Ada', { sendAt: 'tomorrow' }), 'sendAt')
  })

  test('a sendAt that has passed means now, and ttl counts from the row', async () => {
    const view = await viewOf({ sendAt: inMs(-60_000), ttl: '90s' })
    expect(view).not.toHaveProperty('sendAt')
    expect(Date.parse(view.expiresAt) - Date.parse(view.createdAt)).toBe(90_000)
  })

  test('ttl is at most 30 days, so that no app keeps a message open for years', async () => {
    const view = await viewOf({ ttl: '30d' })
    expect(Date.parse(view.expiresAt) - Date.parse(view.createdAt)).toBe(30 * 86_400_000)
    for (const ttl of ['31d', '721h', '3650d']) {
      await expectFieldRefused('/v1/notices', welcome('Ada', { ttl }), 'ttl')
    }
  })

  test.each(['0', '0s', '-5m', '1.5h', '5', '5 minutes', 'five', ''])(
    'ttl %j is invalid',
    async (ttl) => {
      await expectFieldRefused('/v1/notices', welcome('Ada', { ttl }), 'ttl')
    },
  )
})

describe('values in a body', () => {
  test('its type is JSON in UTF-8, in any spelling', async () => {
    for (const type of [
      'application/json',
      'Application/JSON',
      'application/json; charset=utf-8',
      'application/json;charset="UTF-8"',
      // Clients of some languages write these; JSON has no parameter that matters (RFC 8259).
      'application/json; charset=utf8',
      'application/json; charset=us-ascii',
      'application/json; odata.metadata=minimal; Charset=UTF-8',
      'application/json; version=1;',
    ]) {
      const headers = { 'content-type': type }
      const reply = await post('/v1/notices', JSON.stringify(welcome()), { headers })
      expect({ type, status: reply.status }).toEqual({ type, status: 202 })
    }
    for (const type of [
      'application/json; charset=utf-16',
      'application/json; charset=utf-8; charset=latin1',
      'application/json, application/json',
      'text/plain; application/json',
    ]) {
      const headers = { 'content-type': type }
      const reply = await post('/v1/notices', JSON.stringify(welcome()), { headers })
      expect({ type, status: reply.status }).toEqual({ type, status: 415 })
    }
  })

  test('a byte order mark before it, and an encoding that is none in any case, change nothing', async () => {
    const body = `\uFEFF${JSON.stringify(welcome())}`
    const headers = { 'content-encoding': 'Identity' }
    expect((await post('/v1/notices', body, { headers })).status).toBe(202)
    expect((await post('/v1/notices', `\uFEFF${body}`)).status).toBe(400)
  })

  test('of a wide body 20 problems are listed', async () => {
    const params = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`1${index}`, 'x']))
    const reply = await post('/v1/notices', welcome('Ada', { params }))
    expect(reply.body.errors).toHaveLength(20)
  })
})

describe('key', () => {
  test('the scheme is Bearer in any case', async () => {
    for (const [scheme, status] of [
      ['bearer', 202],
      ['BEARER', 202],
      ['Bearer  ', 202],
      ['Basic', 401],
      ['', 401],
    ] as const) {
      const headers = { authorization: `${scheme} ${postern.key}`.trim() }
      const reply = await post('/v1/notices', welcome(), { key: null, headers })
      expect({ scheme, status: reply.status }).toEqual({ scheme, status })
    }
  })
})

describe('path', () => {
  test('a slash behind it, or a query, changes nothing', async () => {
    expect((await post('/v1/notices/', welcome())).status).toBe(202)
    expect((await post('/v1/notices?x=1', welcome())).status).toBe(202)
  })

  test('a request id of 8 to 64 plain characters comes back; any other is replaced', async () => {
    const idOf = async (id: string) =>
      (await postern.get('/nothing', { headers: { 'x-request-id': id } })).headers.get(
        'x-request-id',
      )
    for (const id of ['a'.repeat(8), 'Z-_9'.repeat(16)]) expect(await idOf(id)).toBe(id)
    for (const id of [
      'a'.repeat(7),
      'a'.repeat(65),
      'a.b.c.d.e',
      'with space in it',
      '{"a":1}---',
    ]) {
      expect(await idOf(id)).toMatch(/^[0-9a-f-]{36}$/)
    }
    expect(await idOf('x')).not.toBe(await idOf('x'))
  })
})

test('each answer is counted once, by route, method and status; a path without a route as unknown', async () => {
  const counted = async (wanted: string) => {
    const metrics = await (await fetch(`${postern.adminUrl}/metrics`)).text()
    const [name = '', labels = ''] = wanted.split('{')
    const match = metrics
      .split('\n')
      .find(
        (line) =>
          line.startsWith(`${name}{`) && labels.split(',').every((one) => line.includes(one)),
      )
    return Number(match?.split(' ').at(-1) ?? 0)
  }
  const lines = {
    accepted: 'postern_http_requests_total{route="/v1/notices",method="POST",status="202"',
    refused: 'postern_http_requests_total{route="/v1/notices",method="POST",status="400"',
    wrongMethod: 'postern_http_requests_total{route="/v1/notices",method="PUT",status="405"',
    oddMethod: 'postern_http_requests_total{route="/v1/notices",method="other",status="405"',
    unknown: 'postern_http_requests_total{route="unknown",method="GET",status="404"',
    seconds: 'postern_http_request_duration_seconds_count{route="/v1/notices"',
  }
  const read = async () =>
    Object.fromEntries(
      await Promise.all(
        Object.entries(lines).map(async ([name, line]) => [name, await counted(line)] as const),
      ),
    ) as Record<keyof typeof lines, number>
  const before = await read()
  await post('/v1/notices', welcome())
  await post('/v1/notices', welcome())
  await post('/v1/notices', {})
  await postern.get('/v1/notices', { method: 'PUT' })
  await postern.get('/v1/notices', { method: 'PROPFIND' })
  await postern.get('/nothing/here')
  const after = await read()
  const change = (name: keyof typeof lines) => after[name] - before[name]
  expect(Object.keys(lines).map((name) => [name, change(name as keyof typeof lines)])).toEqual([
    ['accepted', 2],
    ['refused', 1],
    ['wrongMethod', 1],
    ['oddMethod', 1],
    ['unknown', 1],
    ['seconds', 5],
  ])
})
