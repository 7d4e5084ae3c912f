import type { AddressInfo } from 'node:net'
import express from 'express'
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import {
  createLimiter,
  type Limiter,
  rateLimit,
  rateLimitHeaders,
} from '../../src/limiter/index.ts'
import { releaseLater } from '../support/release.ts'

const policies = {
  api: [
    { name: 'burst', key: '{ip}', sliding: ['2 per 10s', '100 per 1h'] },
    { name: 'day', key: '{ip}', calendar: { limit: 500, cron: '0 0 * * *', timezone: 'UTC' } },
  ],
  login: [{ name: 'tries', key: '{user}', lockout: { limit: 1, window: '5m', lock: '15m' } }],
  own: [{ name: 'r', key: '{ip}', sliding: '0 per 1m', message: 'Only members.' }],
}

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

  test('a policy that is not there is told when the middleware is made', () => {
    const limiter = createLimiter({ policies })
    expect(() => rateLimit(limiter, 'apii', () => ({}))).toThrow('there is no policy apii')
  })

  test('what the next handler throws is not told to it once more', async () => {
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
      status: 429,
      code: 'limited',
      policy: 'api',
      rule: 'burst',
      window: '10s',
      detail: 'Try again in 10 s.',
    })
  })

  test('a lock answers locked, a rule’s message is the detail, a missing field is the programmer’s', async () => {
    const url = await serve(createLimiter({ policies }))
    const login = (body: object) =>
      fetch(`${url}/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    expect((await login({ user: 'a' })).status).toBe(200)
    expect(await (await login({ user: 'a' })).json()).toMatchObject({
      code: 'locked',
      rule: 'tries',
    })
    expect(await (await fetch(`${url}/own`)).json()).toMatchObject({ detail: 'Only members.' })
    expect(await (await login({})).json()).toEqual({ error: 'MissingField' })
  })

  test('Redis out of reach answers 503, never lets through', async () => {
    const redis = new Redis({ port: 1, host: '127.0.0.1', lazyConnect: true, retryStrategy: null })
    redis.on('error', () => {})
    releaseLater(() => redis.disconnect())
    const limiter = createLimiter({ policies, redis, deadlineMs: 100 })
    releaseLater(() => limiter.close())
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
