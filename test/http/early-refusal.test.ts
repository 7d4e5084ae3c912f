/** Requests that are refused by load before their body is read, and those that the router answers instead. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Log } from '../../src/base/log.ts'
import { createApp } from '../../src/http/app.ts'
import { createEarlyRefusal } from '../../src/http/early-refusal.ts'
import { defineRoute, type Key, type Route } from '../../src/http/route.ts'
import { answerUnknownPath, createRouter } from '../../src/http/router.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { createUnderWay } from '../../src/http/under-way.ts'
import { listen } from '../tools/listen.ts'
import { testMetrics } from '../tools/metrics.ts'
import { closeLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const keys: Record<string, Key> = {
  shop: { id: 'k1', app: 'shop', kind: 'secret', origins: [] },
  bank: { id: 'k2', app: 'bank', kind: 'secret', origins: [] },
  page: { id: 'k3', app: 'shop', kind: 'publishable', origins: ['https://shop.example'] },
  operator: { id: 'k4', app: 'shop', kind: 'operator', origins: [] },
}

interface Request {
  path?: string
  body?: string
  length?: number
  head?: string
}

/** The API. One request works at a time, and two of each app wait. */
async function open() {
  const records: Record<string, unknown>[] = []
  const log = { requestFinished: (facts: never) => records.push(facts) } as unknown as Log
  const metrics = testMetrics()
  const waits = { maxWaiting: 2, maxWaitMs: 60_000, maxExpectedMs: 60_000 }
  const underWay = createUnderWay({ work: { ...waits, maxUnderWay: 1 } })
  const works: (() => void)[] = []
  const route = (path: string, more: Partial<Route> = {}) =>
    defineRoute({
      ...{ path, name: path, method: 'post', summary: '', access: 'page', answers: {} },
      ...{ body: z.object({ to: z.string() }), problems: [] },
      ...more,
      async run() {
        await new Promise<void>((resolve) => works.push(resolve))
        return { status: 204 }
      },
    } as Route)
  const routes = [
    route('/work'),
    route('/servers', { access: 'secret' }),
    route('/of/:id'),
    route('/read', { isRead: true }),
  ]
  const deps = { routes, metrics, log, underWay, isListedOrigin: async () => false }
  const router = createRouter({ ...deps, authenticate: async (token) => keys[token] ?? null })
  const app = createApp({ router, unknownPath: answerUnknownPath(deps), trustProxyHops: 1 })
  const refuse = createEarlyRefusal({ ...deps, lastKnown: (token) => keys[token] })
  const url = await listen(createHttpServer(app, undefined, refuse))

  /** Sends a head, and the body if there is one. An announced body can be missing. */
  async function send(key: string, request: Request) {
    const { path = '/work', body = '', length = body.length, head = '' } = request
    const socket = closeLater(connect(Number(new URL(url).port), '127.0.0.1'), 'destroy')
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    await once(socket, 'connect')
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${length}\r\n${head}\r\n${body}`,
    )
    const answered = () => eventually(() => answer || false)
    return { socket, answered, answer: () => answer }
  }
  /** One request works and two wait, so the next one of the app is refused. */
  async function crowd() {
    const crowding = [await send('shop', { body: '{"to":"a"}' })]
    await eventually(() => works.length === 1)
    for (const body of ['{"to":"b"}', '{"to":"c"}']) crowding.push(await send('shop', { body }))
    const next = { app: 'shop', caller: '127.0.0.1' }
    await eventually(() => underWay.wouldRefuse(next))
    return crowding
  }
  /** Ends the work of all. */
  const finish = () =>
    eventually(() => {
      const all = works.splice(0)
      for (const done of all) done()
      return all.length === 0 && !underWay.isCrowded()
    })
  return { send, crowd, finish, works, records, metrics, underWay }
}

let api: Awaited<ReturnType<typeof open>>
beforeEach(async () => {
  api = await open()
})
afterEach(() => api.finish())

test('the turns are taken: a request is refused although its body has not arrived, and counted as shed', async () => {
  await api.crowd()
  const refused = await api.send('shop', { length: 50, head: 'X-Request-Id: of-a-caller\r\n' })
  const answer = await refused.answered()
  expect(answer).toMatch(/^HTTP\/1\.1 503 [\s\S]*"code":"unavailable"/)
  expect(answer.toLowerCase()).toContain('\r\nretry-after: 2\r\n')
  expect(answer).toContain('\r\nx-request-id: of-a-caller\r\n')
  expect(api.records).toMatchObject([
    { status: 503, route: '/work', app: 'shop', keyId: 'k1', code: 'unavailable', reason: 'load' },
  ])
  const { values } = await api.metrics.shed.get()
  expect(values.filter(({ value }) => value > 0)).toMatchObject([
    { value: 1, labels: { route: '/work' } },
  ])
})

test('the body of a refused request arrives later: the connection answers the next request', async () => {
  await api.crowd()
  const refused = await api.send('shop', { length: 10 })
  const { length } = await refused.answered()
  refused.socket.write(
    '0123456789POST /work HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer bank\r\n' +
      'Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{"to":"c"}',
  )
  await eventually(async () => {
    await api.finish()
    return refused.answer().length > length
  })
  expect(refused.answer().slice(length)).toMatch(/^HTTP\/1\.1 204 /)
})

test('a refusal is in the language of the caller, and a page that the key lists can read it', async () => {
  await api.crowd()
  const refused = await api.send('page', {
    length: 50,
    head: 'Accept-Language: zh\r\nOrigin: https://shop.example\r\n',
  })
  const answer = await refused.answered()
  expect(answer).toMatch(/^HTTP\/1\.1 503 [\s\S]*"title":"[^"]*\p{Script=Han}/u)
  expect(answer).toContain('\r\naccess-control-allow-origin: https://shop.example\r\n')
})

test('another app, and an address with fewer waiting requests of the app, are not refused', async () => {
  const crowding = await api.crowd()
  const body = '{"to":"d"}'
  const others = [
    await api.send('bank', { body }),
    await api.send('shop', { body, head: 'X-Forwarded-For: 10.0.0.7\r\n' }),
  ]
  // The second one takes the place of a request that waits.
  await eventually(() => crowding.some((one) => one.answer() !== ''))
  await eventually(async () => {
    await api.finish()
    return [...others, ...crowding].every((one) => one.answer() !== '')
  })
  const statusOf = (one: { answer(): string }) => one.answer().slice(9, 12)
  expect(others.map(statusOf)).toEqual(['204', '204'])
  expect(crowding.map(statusOf).toSorted()).toEqual(['204', '204', '503'])
})

describe('the turns are taken, and the router answers', () => {
  beforeEach(async () => void (await api.crowd()))

  test.each([
    ['an unknown key', 'none', {}, 401],
    ['a key of operators', 'operator', {}, 403],
    ['a key of pages at a route for servers', 'page', { path: '/servers' }, 403],
    ['a page that the key does not list', 'page', { head: 'Origin: https://x.example\r\n' }, 403],
    ['a body that is too long', 'shop', { length: 17_000 }, 413],
    ['an unknown path', 'shop', { path: '/nowhere', body: '{}' }, 404],
    ['a path with a parameter', 'shop', { path: '/of/1', body: '{"to":"a"}' }, 503],
    ['a body that is wrong at such a path', 'shop', { path: '/of/1', body: '{}' }, 400],
  ])('%s → as ever', async (_, key, request, status) => {
    const body = '{"to":"c"}'
    const { answered } = await api.send(key, { body, ...request })
    expect(await answered()).toContain(`HTTP/1.1 ${status} `)
  })

  test('reads have separate turns', async () => {
    const { answered } = await api.send('shop', { path: '/read', body: '{"to":"c"}' })
    await eventually(() => api.works.length === 2)
    api.works[1]?.()
    expect(await answered()).toContain('HTTP/1.1 204 ')
  })

  test('a stopping process refuses each request as it always does, and the connection ends', async () => {
    void api.underWay.close()
    const { answered } = await api.send('shop', { body: '{"to":"c"}' })
    expect((await answered()).toLowerCase()).toContain('\r\nconnection: close\r\n')
  })
})
