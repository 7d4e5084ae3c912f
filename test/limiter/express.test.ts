import type { AddressInfo } from 'node:net'
import express from 'express'
import { Redis } from 'ioredis'
import { describe, expect, test, vi } from 'vitest'
import {
  createLimiter,
  type Limiter,
  type RawPolicies,
  rateLimit,
  rateLimitHeaders,
} from '../../src/limiter/index.ts'
import { closeLater, releaseLater } from '../tools/release.ts'

const policies = {
  api: [
    { name: 'burst', key: '{ip}', sliding: ['2 per 10s', '100 per 1h'] },
    { name: 'day', key: '{ip}', calendar: { limit: 500, cron: '0 0 * * *', timezone: 'UTC' } },
  ],
  login: [{ name: 'tries', key: '{user}', lockout: { limit: 1, window: '5m', lock: '15m' } }],
  own: [{ name: 'r', key: '{ip}', sliding: '0 per 1m', message: 'Only members.' }],
  spend: [{ name: 'money', key: '{user}', sliding: '10 per 1h', permits: 'price' }],
} satisfies RawPolicies

async function serve(limiter: Limiter) {
  const app = express().use(express.json())
  const ip = (req: express.Request) => ({ ip: req.ip })
  app.get('/api', rateLimit(limiter, 'api', ip), (_req, res) => void res.json({ ok: true }))
  app.get('/own', rateLimit(limiter, 'own', ip), (_req, res) => void res.json({ ok: true }))
  app.post(
    '/login',
    rateLimit(limiter, 'login', (req) => ({ user: req.body.user })),
    (_req, res) => void res.json({ ok: true }),
  )
  app.post(
    '/spend',
    rateLimit(limiter, 'spend', (req) => ({ user: 'ada', price: req.body.price })),
    (_req, res) => void res.json({ ok: true }),
  )
  app.post(
    '/mistyped',
    rateLimit(limiter, 'login', (req) => ({ usr: req.body.user })),
    (_req, res) => void res.json({ ok: true }),
  )
  app.use(((error, _req, res, _next) => {
    res.status(500).json({ error: error.name })
  }) as express.ErrorRequestHandler)
  const server = app.listen(0, '127.0.0.1')
  releaseLater(() => {
    server.closeAllConnections()
    server.close()
  })
  await new Promise((listening) => server.once('listening', listening))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('Express middleware', () => {
  test('a bucket: its rate is the window, and w the time in which all of it is back', async () => {
    const limiter = createLimiter({
      policies: {
        ...policies,
        api: [{ name: 'ip', key: '{ip}', bucket: { rate: '10 per 1m', burst: 1 } }],
      },
      clock: () => 1_000,
    })
    const url = await serve(limiter)
    await fetch(`${url}/api`)
    const answer = await fetch(`${url}/api`)
    expect(answer.status).toBe(429)
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'retry-after': '6',
      'ratelimit-policy': '"api/ip 10 per 1m";q=1;w=6',
      ratelimit: '"api/ip 10 per 1m";r=0;t=6',
    })
    expect(await answer.json()).toMatchObject({
      rule: 'ip',
      window: '10 per 1m',
      retryAfterMs: 6_000,
    })
  })

  test('a rule that only observes is not the one that matters', async () => {
    const limiter = createLimiter({
      policies: {
        api: [
          { name: 'burst', key: 'all', sliding: '5 per 10s' },
          { name: 'tried-out', key: 'all', sliding: '1 per 1h', mode: 'observe' },
        ],
      },
    })
    const decision = await limiter.acquire('api', {})
    expect(decision).toMatchObject({ remaining: [{ left: 4 }, { left: 0, isObserved: true }] })
    expect(rateLimitHeaders('api', decision)).toEqual({ RateLimit: '"api/burst 10s";r=4' })
  })

  test('a policy that is not there is an error when the middleware is made', () => {
    const limiter = createLimiter({ policies })
    expect(() => rateLimit(limiter, 'apii', () => ({}))).toThrow('there is no policy apii')
  })

  test('what the next handler throws does not reach it a second time', async () => {
    const limiter = createLimiter({ policies })
    const limit = rateLimit(limiter, 'api', () => ({ ip: '10.0.0.9' }))
    const errors: unknown[] = []
    const response = { statusCode: 200, setHeader() {}, end() {} }
    const next = (error?: unknown) => {
      errors.push(error)
      throw new Error('of the handler')
    }
    await expect(limit({ headers: {} }, response, next)).rejects.toThrow('of the handler')
    expect(errors).toEqual([undefined])
  })

  test('passes with the headers of the draft, then refuses with 429 problem+json', async () => {
    const url = await serve(createLimiter({ policies }))
    const first = await fetch(`${url}/api`)
    expect(first.status).toBe(200)
    expect(first.headers.get('ratelimit-policy')).toBe(
      '"api/burst 10s";q=2;w=10, "api/burst 1h";q=100;w=3600, "api/day 0 0 * * *";q=500',
    )
    expect(first.headers.get('ratelimit')).toBe('"api/burst 10s";r=1')
    await fetch(`${url}/api`)
    const refused = await fetch(`${url}/api`)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('content-type')).toContain('application/problem+json')
    expect(refused.headers.get('retry-after')).toBe('10')
    expect(refused.headers.get('ratelimit')).toBe('"api/burst 10s";r=0;t=10')
    expect(await refused.json()).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      'violated-policies': ['api/burst 10s'],
      status: 429,
      code: 'limited',
      policy: 'api',
      rule: 'burst',
      window: '10s',
      detail: 'Try again in 10 seconds.',
    })
  })

  const postJson = (url: string, body: object) =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })

  test('a lock answers locked, and a rule’s message is the detail', async () => {
    const url = await serve(createLimiter({ policies }))
    expect((await postJson(`${url}/login`, { user: 'a' })).status).toBe(200)
    expect(await (await postJson(`${url}/login`, { user: 'a' })).json()).toMatchObject({
      code: 'locked',
      rule: 'tries',
    })
    expect(await (await fetch(`${url}/own`)).json()).toMatchObject({ detail: 'Only members.' })
  })

  test.each([
    ['/login', {}, 'user', 'The field user is missing.'],
    ['/login', { user: null }, 'user', 'The field user is missing.'],
    ['/login', { user: ['a', 'b'] }, 'user', 'The field user must be a text or a number.'],
    ['/spend', {}, 'price', 'The field price is missing.'],
    ['/spend', { price: -1 }, 'price', 'price must be a whole number above 0, not -1.'],
    ['/spend', { price: 11 }, 'price', 'rule money never has more than 10 permits at once.'],
  ])('POST %s of %j → 400 that names the field', async (path, body, field, detail) => {
    const limiter = createLimiter({ policies })
    const answer = await postJson(`${await serve(limiter)}${path}`, body)
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
    expect(await answer.json()).toEqual({
      type: 'about:blank',
      title: 'Bad Request',
      status: 400,
      code: 'invalid_request',
      detail,
      errors: [{ path: field, message: expect.stringMatching(/./) }],
    })
    expect(answer.status).toBe(400)
  })

  test('a connection whose address is gone → 400, like any field without a value', async () => {
    const limit = rateLimit(createLimiter({ policies }), 'api', ({ ip }) => ({ ip }))
    const response = { statusCode: 200, setHeader() {}, end: vi.fn() }
    const next = vi.fn()
    await limit({ headers: {}, ip: undefined }, response, next)
    expect(response).toMatchObject({ statusCode: 400 })
    expect(response.end.mock.calls).toEqual([[expect.stringContaining('The field ip is missing.')]])
    expect(next).not.toHaveBeenCalled()
  })

  test('a field that the middleware never names is the programmer’s: no request is blamed for it', async () => {
    const url = await serve(createLimiter({ policies }))
    const answer = await postJson(`${url}/mistyped`, { user: 'a' })
    expect(await answer.json()).toEqual({ error: 'MissingField' })
  })

  test('Redis out of reach answers 503, never lets through', async () => {
    const redis = new Redis({ port: 1, host: '127.0.0.1', lazyConnect: true, retryStrategy: null })
    redis.on('error', () => {})
    releaseLater(() => redis.disconnect())
    const limiter = closeLater(createLimiter({ policies, redis, deadlineMs: 100 }))
    const url = await serve(limiter)
    const answer = await fetch(`${url}/api`)
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(await answer.json()).toMatchObject({ code: 'unavailable' })
  })

  test('trap 22: one millisecond left is "Retry-After: 1", never 0', () => {
    const refusal = {
      admitted: false,
      rule: 'r',
      window: '60s',
      limit: 1,
      windowMs: 60_000,
      kind: 'sliding',
    } as const
    expect(rateLimitHeaders('p', { ...refusal, retryAfterMs: 1 })).toEqual({
      'Retry-After': '1',
      RateLimit: '"p/r 60s";r=0;t=1',
      'RateLimit-Policy': '"p/r 60s";q=1;w=60',
    })
    expect(rateLimitHeaders('p', { ...refusal, retryAfterMs: 1_001 })['Retry-After']).toBe('2')
    expect(rateLimitHeaders('p', { ...refusal, retryAfterMs: 1_000 })['Retry-After']).toBe('1')
  })
})
