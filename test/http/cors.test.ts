import express, { type Request, type Response } from 'express'
import { expect, test } from 'vitest'
import { createKeyStore } from '../../src/access/key-store.ts'
import { createLog } from '../../src/base/log.ts'
import { createCors } from '../../src/http/cors.ts'
import type { Answer } from '../../src/http/problem.ts'
import { defineRoute } from '../../src/http/route.ts'
import { createRouter } from '../../src/http/router.ts'
import { createUnderWay } from '../../src/http/under-way.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { listen } from '../tools/listen.ts'
import { testMetrics } from '../tools/metrics.ts'
import { startPostern } from '../tools/postern.ts'
import { testRedis } from '../tools/redis.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'

test('PostgreSQL away: 503 that the page may read, for a known key and an unknown one; and a preflight goes on', async () => {
  const real = await testDatabase()
  const proxy = await startTcpProxy(Number(new URL(real.url).port))
  const database = databaseAt(real.url, 1)
  const origin = 'https://shop.example'
  const make = () =>
    createKeyStore(database).create({
      name: 'web',
      app: 'default',
      kind: 'publishable',
      origins: [origin],
    })
  const [known, unseen] = [await make(), await make()]
  const postern = await startPostern({
    on: { redis: await testRedis(), database: { url: proxy.through(real.url), pool: real.pool } },
    roles: { api: true, worker: false },
  })
  const send = (key: string, to: string) =>
    postern.post('/v1/captchas', { channel: 'sms', to }, { key, headers: { origin } })
  const preflight = () =>
    postern.get('/v1/captchas', {
      key: null,
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    })
  expect((await send(known.token, '+8613800138000')).status).toBe(202)
  expect((await preflight()).status).toBe(204)
  proxy.cut()
  for (const key of [known.token, unseen.token]) {
    const startMs = performance.now()
    const reply = await send(key, '+8613800138001')
    expect(performance.now() - startMs).toBeLessThan(10_000)
    expect(reply.status).toBe(503)
    expect(reply.headers.get('retry-after')).toBe('2')
    expect(reply.headers.get('access-control-allow-origin')).toBe(origin)
  }
  expect((await preflight()).status).toBe(204)
  const check = await postern.post(
    '/v1/captchas/check',
    { channel: 'sms', to: '+8613800138999', code: '0000' },
    { key: known.token, headers: { origin } },
  )
  expect(check.status).toBe(410)
  expect(check.headers.get('access-control-allow-origin')).toBe(origin)
  proxy.stall()
  const startMs = performance.now()
  expect((await preflight()).status).toBe(204)
  const late = await send(unseen.token, '+8613800138003')
  expect(late.status).toBe(503)
  expect(late.headers.get('access-control-allow-origin')).toBe(origin)
  expect(performance.now() - startMs).toBeLessThan(15_000)
  proxy.forward()
})

test('the Vary of a host stays, in answers and in preflights', async () => {
  const origin = 'https://shop.example'
  const router = createRouter({
    routes: [
      defineRoute({
        ...{ method: 'post', path: '/page', name: 'page', summary: 'A test.', access: 'page' },
        ...{ answers: {}, problems: [], run: async () => ({ status: 204 }) },
      }),
    ],
    authenticate: async () => ({ id: 'k', app: 'default', kind: 'publishable', origins: [origin] }),
    isListedOrigin: async () => true,
    metrics: testMetrics(),
    log: createLog({ level: 'silent', process: 'test' }),
    underWay: createUnderWay(),
  })
  const host = express().use((_, response, next) => {
    response.vary('Accept-Encoding')
    next()
  })
  const url = `${await listen(host.use(router))}/page`
  for (const init of [
    { method: 'POST', headers: { origin, authorization: 'Bearer ppk_any' } },
    { method: 'POST', headers: { origin } },
    { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'POST' } },
  ]) {
    const { headers } = await fetch(url, init as RequestInit)
    expect(headers.get('access-control-allow-origin')).toBe(origin)
    expect(headers.get('vary')).toBe('Accept-Encoding, Origin')
  }
})

test('traces of pages are taken → a preflight allows the three headers that tracers of pages send', async () => {
  const set = new Map<string, unknown>()
  const response = { vary: (name: string) => set.set('vary', name) } as unknown as Response
  const { preflight } = createCors(async () => true, true)
  const request = { headers: { origin: 'https://shop.example' } } as Request
  const answer = (await preflight(request, response, ['POST'])) as Answer
  expect(answer.headers?.['access-control-allow-headers']).toMatch(
    /, Traceparent, Tracestate, Baggage$/,
  )
  expect(set.get('vary')).toBe('Origin')
})
