import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { createLog } from '../../src/base/log.ts'
import { Problem } from '../../src/base/problems.ts'
import { Unavailable } from '../../src/base/unavailable.ts'
import { createApp } from '../../src/http/app.ts'
import type { Route, RouteRequest } from '../../src/http/route.ts'
import { answerUnknownPath, createRouter } from '../../src/http/router.ts'
import { createUnderWay } from '../../src/http/under-way.ts'
import { listen } from '../tools/listen.ts'
import { testMetrics } from '../tools/metrics.ts'
import { eventually } from '../tools/wait.ts'

/** The router with routes of the test. */
async function open(routes: Partial<Route>[], maxBodyBytes?: number) {
  const metrics = testMetrics()
  const log = createLog({ level: 'silent', process: 'test' })
  const underWay = createUnderWay(maxBodyBytes ? { maxBodyBytes } : {})
  const router = createRouter({
    routes: routes.map((route) => ({
      method: 'post',
      path: '/x',
      name: 'x',
      summary: 'x',
      access: 'open',
      answers: {},
      problems: [],
      run: async () => ({ status: 200, body: {} }),
      ...route,
    })),
    authenticate: async (token) =>
      token === 'good' ? { id: 'k', app: 'shop', kind: 'secret', origins: [] } : null,
    isListedOrigin: async () => false,
    metrics,
    log,
    underWay,
  })
  const unknownPath = answerUnknownPath({ metrics, log, underWay })
  const server = createServer(createApp({ router, unknownPath, trustProxyHops: 0 }))
  const url = await listen(server)
  const call = (path: string, init: RequestInit & { body?: string } = {}) =>
    fetch(url + path, {
      method: 'POST',
      ...init,
      headers: {
        authorization: 'Bearer good',
        connection: 'close',
        ...(init.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...init.headers,
      },
    })
  return Object.assign(call, { port: Number(new URL(url).port) })
}

test('an unexpected error: 500 with a fixed sentence and the id of the request, and nothing of the error', async () => {
  const call = await open([
    {
      run: async () => {
        throw new Error('SELECT secret FROM table')
      },
    },
  ])
  const response = await call('/x', { headers: { 'x-request-id': 'request-4711' } })
  const text = await response.text()
  expect(response.status).toBe(500)
  expect(JSON.parse(text)).toMatchObject({ code: 'internal', requestId: 'request-4711' })
  expect(response.headers.get('x-request-id')).toBe('request-4711')
  expect(text).not.toContain('SELECT')
})

test('a server out of reach: 503 with when to come again', async () => {
  const call = await open([
    { run: () => Promise.reject(new Unavailable('redis', new Error('ECONNREFUSED 10.0.0.1'))) },
  ])
  const response = await call('/x')
  expect(response.status).toBe(503)
  expect(response.headers.get('retry-after')).toBe('2')
  const text = await response.text()
  expect(JSON.parse(text).code).toBe('unavailable')
  expect(text).not.toContain('10.0.0.1')
})

test('a problem is the same, thrown or returned', async () => {
  const call = await open([
    { path: '/thrown', run: () => Promise.reject(new Problem('code_gone')) },
    { path: '/returned', run: async () => new Problem('code_gone') },
  ])
  const [thrown, returned] = [await call('/thrown'), await call('/returned')]
  expect([thrown.status, returned.status]).toEqual([410, 410])
  expect(await thrown.text()).toBe(await returned.text())
})

test('an answer: its status, headers and body; without a body no content-type', async () => {
  const call = await open([
    {
      path: '/json',
      run: async () => ({ status: 202, headers: { location: '/y' }, body: { ü: 1 } }),
    },
    { path: '/none', run: async () => ({ status: 204 }) },
    {
      path: '/text',
      run: async () => ({ status: 200, headers: { 'content-type': 'text/plain' }, text: 'gütig' }),
    },
  ])
  const json = await call('/json')
  expect(json.status).toBe(202)
  expect(json.headers.get('location')).toBe('/y')
  expect(json.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(json.headers.get('content-length')).toBe('8')
  expect(await json.text()).toBe('{"ü":1}')
  const none = await call('/none')
  expect([none.status, none.headers.get('content-type'), await none.text()]).toEqual([
    204,
    null,
    '',
  ])
  const plain = await call('/text')
  expect([plain.headers.get('content-type'), await plain.text()]).toEqual(['text/plain', 'gütig'])
})

test('a route gets app, caller, parameters, query and the checked body', async () => {
  const told: RouteRequest[] = []
  const call = await open([
    {
      path: '/v1/:name',
      access: 'secret',
      body: z.strictObject({ n: z.number(), more: z.string().default('given') }),
      query: z.object({ page: z.coerce.number() }),
      async run(request) {
        told.push(request)
        return { status: 200, body: {} }
      },
    },
    { path: '/v1/fixed', run: async () => ({ status: 201 }) },
  ])
  expect((await call('/v1/a%20b?page=3', { body: '{"n":1}' })).status).toBe(200)
  expect(told).toMatchObject([
    {
      caller: { app: 'shop', keyId: 'k', ip: '127.0.0.1', isPage: false },
      params: { name: 'a b' },
      query: { page: 3 },
      body: { n: 1, more: 'given' },
    },
  ])
  expect(told[0]?.rawBody).toHaveLength(0)
  // A path without a parameter does not match a path with one.
  expect((await call('/v1/fixed')).status).toBe(201)
  expect((await call('/v1/a?page=x', { body: '{"n":1}' })).status).toBe(400)
  expect((await call('/v1/a?page=1', { body: '{"n":"1"}' })).status).toBe(400)
  const wrongKey = { headers: { authorization: 'Bearer bad' } }
  expect((await call('/v1/a?page=1', { body: '{"n":1}', ...wrongKey })).status).toBe(401)
  expect(told).toHaveLength(1)
})

test('bodies one after the other each have the whole room, also those that were refused', async () => {
  const call = await open([{ access: 'secret', body: z.strictObject({ n: z.string() }) }], 1_000)
  for (let count = 0; count < 20; count++) {
    expect((await call('/x', { body: JSON.stringify({ n: 'x'.repeat(800) }) })).status).toBe(200)
    expect((await call('/x', { body: JSON.stringify({ m: 'x'.repeat(800) }) })).status).toBe(400)
  }
  expect((await call('/x', { body: JSON.stringify({ n: 'x'.repeat(1_000) }) })).status).toBe(503)
})

test('a body that is cut leaves no room taken', async () => {
  const call = await open([{ access: 'secret', body: z.strictObject({ n: z.string() }) }], 1_000)
  const statusOfAnother = async (bytes = 800) =>
    (await call('/x', { body: JSON.stringify({ n: 'x'.repeat(bytes) }) })).status
  for (let count = 0; count < 5; count++) {
    const socket = connect(call.port, '127.0.0.1')
    await once(socket, 'connect')
    const head =
      'POST /x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\nContent-Type: application/json'
    socket.write(`${head}\r\nContent-Length: 900\r\n\r\n${'x'.repeat(800)}`)
    // This leaves room for a few bytes.
    expect(await statusOfAnother(9)).toBe(200)
    socket.destroy()
    await eventually(async () => expect(await statusOfAnother()).toBe(200))
  }
})

test('a raw body: only if a route needs it, up to the route’s limit for this request', async () => {
  const call = await open([
    {
      path: '/raw/:bytes',
      admitBody: ({ params }) => Number(params.bytes),
      run: async ({ rawBody }) => ({ status: 200, body: { text: rawBody.toString() } }),
    },
  ])
  expect(await (await call('/raw/5', { body: 'hello' })).json()).toEqual({ text: 'hello' })
  expect((await call('/raw/4', { body: 'hello' })).status).toBe(413)
})
