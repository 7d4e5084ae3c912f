import { describe, expect, test } from 'vitest'
import { createApiKeys } from '../../src/access/api-keys.ts'
import { databaseAt } from '../tools/database.ts'
import { noLimits, startPostern } from '../tools/postern.ts'

const postern = await startPostern({
  policyFile: {
    policies: {
      ...noLimits,
      login: [
        {
          name: 'tries',
          key: '{app}:{subject}:{ip}',
          lockout: { limit: 3, window: '5m', lock: '15m' },
        },
        { name: 'address', key: '{ip}', lockout: { limit: 5, window: '5m', lock: '15m' } },
      ],
      shared: [
        { name: 'tries', key: '{subject}', lockout: { limit: 3, window: '5m', lock: '15m' } },
      ],
      address: [{ name: 'tries', key: '{ip}', lockout: { limit: 3, window: '5m', lock: '15m' } }],
      double: [
        {
          name: 'tries',
          key: '{subject}',
          lockout: { limit: 5, window: '5m', lock: '15m' },
          permits: 2,
        },
      ],
      open: [],
      counted: [{ name: 'tries', key: '{subject}', sliding: '3 per 1h' }],
      watched: [
        { name: 'seen', key: '{subject}', sliding: '1 per 1h', mode: 'observe' },
        { name: 'tries', key: '{subject}', lockout: { limit: 3, window: '5m', lock: '15m' } },
      ],
      asked: [
        { name: 'ask', key: '{subject}', sliding: '1 per 1h', mode: 'challenge' },
        { name: 'tries', key: '{subject}', lockout: { limit: 3, window: '5m', lock: '15m' } },
      ],
      reports: [{ name: 'hour', key: '{user}', sliding: ['2 per 1h', '5 per 1d'] }],
    },
  },
})

const attempt = (subject: string, ip = '203.0.113.1') =>
  postern.post('/v1/attempts', { policy: 'login', subject, ip })

describe('attempts', () => {
  test('three tries, then locked, also for parallel ones (S4, trap 24)', async () => {
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => attempt('ada', '203.0.113.2')),
    )
    const allowed = replies.filter(({ status }) => status === 200)
    expect(allowed.map(({ body }) => body.triesLeft).sort()).toEqual([0, 1, 2])
    const [locked] = replies.filter(({ status }) => status === 429)
    expect(locked?.body).toMatchObject({ code: 'locked', policy: 'login', rule: 'tries' })
    expect(locked?.body.retryAfterMs).toBeGreaterThan(890_000)
    expect(Number(locked?.headers.get('retry-after'))).toBe(900)
    expect(replies).toHaveLength(allowed.length + replies.filter((r) => r.status === 429).length)
  })

  test('cleared after a success: counting starts afresh, and the address keeps its own count', async () => {
    const ip = '203.0.113.3'
    for (const triesLeft of [2, 1])
      expect((await attempt('bob', ip)).body).toEqual({ allowed: true, triesLeft })
    const cleared = await postern.post('/v1/attempts/clear', {
      policy: 'login',
      subject: 'bob',
      ip,
    })
    expect(cleared.status).toBe(204)
    expect((await attempt('bob', ip)).body).toEqual({ allowed: true, triesLeft: 2 })
    // A right password for one's own account between guesses does not clear the address.
    await postern.post('/v1/attempts/clear', { policy: 'login', subject: 'bob', ip })
    expect((await attempt('carol', ip)).body).toEqual({ allowed: true, triesLeft: 1 })
    expect((await attempt('dave', ip)).body).toEqual({ allowed: true, triesLeft: 0 })
    expect((await attempt('eve', ip)).body).toMatchObject({ code: 'locked', rule: 'address' })
  })

  test.each([
    [{ policy: 'nothing', subject: 'x' }, 'policy'],
    [{ policy: 'reports', subject: 'x' }, 'user'],
    [{ policy: 'login' }, 'subject'],
    [{ policy: 'login', subject: 'x', ip: 'here' }, 'ip'],
    [{ policy: '__proto__', subject: 'x' }, 'policy'],
    // Without an address, all callers would share the count of one.
    [{ policy: 'login', subject: 'x' }, 'ip'],
  ])('%j: 400 names the field', async (body, path) => {
    for (const call of ['/v1/attempts', '/v1/attempts/clear']) {
      const reply = await postern.post(call, body)
      expect(reply.status).toBe(400)
      // Without a lockout there is nothing to clear, with any fields in its keys.
      const isClear = call.endsWith('clear') && path === 'user'
      expect(reply.body.errors[0].path).toBe(isClear ? 'policy' : path)
    }
  })

  test.each(['reports', 'address', 'counted', 'open'])(
    'clear of %s, which locks no subject: 400 with the reason instead of doing nothing',
    async (policy) => {
      const reply = await postern.post('/v1/attempts/clear', { policy, subject: 'ada' })
      expect(reply).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
      expect(reply.body.errors[0].path).toBe('policy')
    },
  )

  test('a rule by address refuses an attempt without one, as acquire does', async () => {
    const refused = { status: 400, body: { code: 'invalid_request' } }
    const attempted = await postern.post('/v1/attempts', { policy: 'address', subject: 'x' })
    expect(attempted).toMatchObject(refused)
    expect(attempted.body.errors[0].path).toBe('ip')
    const fields = { subject: 'x' }
    expect(await postern.post('/v1/limits/address/acquire', { fields })).toMatchObject(refused)
  })

  test('a rule that takes two permits for each try: triesLeft is a number of tries', async () => {
    for (const triesLeft of [1, 0]) {
      const reply = await postern.post('/v1/attempts', { policy: 'double', subject: 'x' })
      expect(reply.body).toEqual({ allowed: true, triesLeft })
    }
    expect(await postern.post('/v1/attempts', { policy: 'double', subject: 'x' })).toMatchObject({
      status: 429,
      body: { code: 'locked' },
    })
  })

  test('a policy without rules allows every try, and reports a number', async () => {
    for (let count = 0; count < 5; count++) {
      const { status, body } = await postern.post('/v1/attempts', { policy: 'open', subject: 'x' })
      expect(status).toBe(200)
      expect(body).toEqual({ allowed: true, triesLeft: 1_000_000_000 })
    }
  })

  test('a rule that only observes leaves the tries of the others', async () => {
    for (const triesLeft of [2, 1, 0]) {
      const reply = await postern.post('/v1/attempts', { policy: 'watched', subject: 'x' })
      expect(reply.body).toEqual({ allowed: true, triesLeft })
    }
    expect((await postern.post('/v1/attempts', { policy: 'watched', subject: 'x' })).status).toBe(
      429,
    )
  })

  test('a rule that asks for a challenge asks no secret key: it counts and passes, here and in the limiter', async () => {
    for (const triesLeft of [2, 1, 0]) {
      const reply = await postern.post('/v1/attempts', { policy: 'asked', subject: 'x' })
      expect(reply.body).toEqual({ allowed: true, triesLeft })
    }
    const locked = await postern.post('/v1/attempts', { policy: 'asked', subject: 'x' })
    expect(locked).toMatchObject({ status: 429, body: { code: 'locked', rule: 'tries' } })
    const acquire = () => postern.post('/v1/limits/asked/acquire', { fields: { subject: 'y' } })
    expect((await acquire()).body.remaining).toContainEqual({ rule: 'ask', window: '1h', left: 0 })
    expect((await acquire()).status).toBe(200)
  })

  test('a subject belongs to the app of the key: another app neither sees, uses up nor lifts its lock', async () => {
    const { database } = postern
    const opened = databaseAt(database.url, 1)
    const { token: key } = await createApiKeys(opened).create({ name: 'rival', app: 'rival' })
    const ask = (call: string, body: object, options = {}) => postern.post(call, body, options)
    const ada = { policy: 'shared', subject: 'ada' }

    for (const triesLeft of [2, 1, 0]) {
      expect((await ask('/v1/attempts', ada, { key })).body).toEqual({ allowed: true, triesLeft })
    }
    for (const triesLeft of [2, 1, 0]) {
      expect((await ask('/v1/attempts', ada)).body).toEqual({ allowed: true, triesLeft })
    }
    expect((await ask('/v1/attempts', ada)).body.code).toBe('locked')
    expect((await ask('/v1/attempts/clear', ada, { key })).status).toBe(204)
    expect((await ask('/v1/attempts', ada)).body.code).toBe('locked')
    expect((await ask('/v1/attempts', ada, { key })).body.triesLeft).toBe(2)

    // Also not through the limiter for other services, in any spelling of the subject.
    const acquire = (subject: unknown) =>
      ask('/v1/limits/shared/acquire', { fields: { subject } }, { key })
    const bob = { policy: 'shared', subject: 'bob' }
    for (const subject of ['bob', '7:default3:bob', 'default:bob', 'bob']) await acquire(subject)
    expect((await ask('/v1/attempts', bob)).body.triesLeft).toBe(2)
    // Within one app, both ways count the same subject.
    expect((await ask('/v1/limits/shared/acquire', { fields: { subject: 'bob' } })).body).toEqual({
      allowed: true,
      remaining: [{ rule: 'tries', window: '5m', left: 1 }],
    })
  })
})

describe('limits', () => {
  const acquire = (fields: unknown, more: object = {}, policy = 'reports') =>
    postern.post(`/v1/limits/${policy}/acquire`, { fields, ...more })

  test('takes from every rule of the policy, then refuses with rule and wait', async () => {
    expect((await acquire({ user: 7 })).body).toEqual({
      allowed: true,
      remaining: [
        { rule: 'hour', window: '1h', left: 1 },
        { rule: 'hour', window: '1d', left: 4 },
      ],
    })
    await acquire({ user: 7 })
    const refused = await acquire({ user: 7 })
    expect(refused.status).toBe(429)
    expect(refused.body).toMatchObject({
      code: 'limited',
      policy: 'reports',
      rule: 'hour',
      window: '1h',
    })
    expect((await acquire({ user: 8 }, { permits: 2 })).body.remaining[0].left).toBe(0)
  })

  test.each([
    [{}, {}, 'fields.user'],
    [{ user: { a: 1 } }, {}, 'fields.user'],
    [{ user: 1 }, { permits: 6 }, 'permits'],
    [[], {}, 'fields'],
  ])('fields %j with %j: 400 names %s', async (fields, more, path) => {
    const reply = await acquire(fields, more)
    expect(reply.status).toBe(400)
    expect(reply.body.errors[0].path).toBe(path)
  })

  test('an ip counts as in every other call: spellings are one address, and IPv6 is its /64', async () => {
    const ips = ['2001:db8::1', '2001:DB8:0::2', '2001:db8:0:0:1::', '[2001:db8::3]:80']
    const statuses = []
    for (const ip of ips) statuses.push((await acquire({ ip }, {}, 'address')).status)
    expect(statuses).toEqual([200, 200, 200, 429])
    // A text that is no address is counted unchanged.
    expect((await acquire({ ip: 'a proxy' }, {}, 'address')).status).toBe(200)
  })

  test('a policy that does not exist: 404', async () => {
    expect((await acquire({ user: 1 }, {}, 'nothing')).status).toBe(404)
    expect((await acquire({ user: 1 }, {}, 'constructor')).status).toBe(404)
  })
})
