import { once } from 'node:events'
import { type RequestListener, request } from 'node:http'
import { expect, test } from 'vitest'
import { createAdminServer } from '../../src/http/admin.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { listen } from '../tools/listen.ts'
import { testMetrics } from '../tools/metrics.ts'

interface Options {
  reasons?: string[]
  warnings?: string[]
  notLive?: string[]
  isUseful?: boolean
  measure?: () => Promise<void>
  console?: RequestListener
}

function create({ reasons = [], warnings = [], notLive = [], ...over }: Options = {}) {
  return createAdminServer({
    metrics: testMetrics(),
    measure: over.measure ?? (async () => {}),
    readiness: async () => ({ reasons, warnings, isUseful: over.isUseful ?? reasons.length === 0 }),
    reasonsNotLive: () => notLive,
    console: () => over.console,
  })
}

async function open(options?: Options) {
  const server = create(options)
  const url = await listen(server)
  return async (path: string, method = 'GET') => {
    const response = await fetch(url + path, { method })
    const text = await response.text()
    return { status: response.status, text, headers: response.headers }
  }
}

test('ready and live: 200; not ready, or stuck: 503, each with its reasons', async () => {
  const good = await open()
  expect(await good('/readyz')).toMatchObject({ status: 200 })
  expect(await good('/livez?verbose')).toMatchObject({ status: 200 })
  const bad = await open({ reasons: ['redis is away'], notLive: ['sms jobs are waiting'] })
  const [ready, live] = [await bad('/readyz'), await bad('/livez')]
  expect(ready.status).toBe(503)
  expect(ready.text).toContain('redis is away')
  expect(live.status).toBe(503)
  expect(live.text).toContain('sms jobs are waiting')
  expect(live.text).not.toContain('redis is away')
  expect(ready.headers.get('cache-control')).toBe('no-store')
})

test('not ready and still useful: a proxy keeps the process, and the reasons stand beside it', async () => {
  const call = await open({ reasons: ['postgresql is away'], isUseful: true })
  expect((await call('/readyz')).status).toBe(503)
  const useful = await call('/usefulz')
  expect(useful.status).toBe(200)
  expect(useful.text).toContain('postgresql is away')
  const useless = await (await open({ reasons: ['redis is away'] }))('/usefulz')
  expect(useless.status).toBe(503)
  expect(useless.text).toContain('redis is away')
})

test('metrics are measured before they are shown; a measure that fails is 500, not silence', async () => {
  let measured = 0
  const call = await open({
    measure: async () => {
      measured += 1
      if (measured > 1) throw new Error('away')
    },
  })
  const { status, text, headers } = await call('/metrics')
  expect(status).toBe(200)
  expect(text).toContain('postern_ready')
  expect(headers.get('content-type')).toContain('text/plain')
  expect(measured).toBe(1)
  expect((await call('/metrics')).status).toBe(500)
})

test('HEAD has only the status; other methods and paths are refused', async () => {
  const call = await open({ reasons: ['x'] })
  expect(await call('/readyz', 'HEAD')).toMatchObject({ status: 503, text: '' })
  const post = await call('/readyz', 'POST')
  expect(post.status).toBe(405)
  expect(post.headers.get('allow')).toBe('GET, HEAD')
  expect((await call('/v1/notices')).status).toBe(404)
})

test('other paths go to the console, if there is one, with any method', async () => {
  const call = await open({ console: (_, response) => void response.writeHead(418).end('console') })
  for (const [path, method] of [['/'], ['/login', 'POST'], ['/metricsx']] as const) {
    expect(await call(path, method)).toMatchObject({ status: 418, text: 'console' })
  }
  for (const path of ['/metrics', '/livez', '/usefulz', '/readyz?verbose']) {
    expect((await call(path)).status).toBe(200)
  }
  expect((await call('/metrics', 'POST')).status).toBe(405)
  expect((await (await open())('/')).status).toBe(404)
})

/** The raw request of a browser or a scraper. */
async function getAs(headers: Record<string, string>, path = '/metrics'): Promise<number> {
  const server = create()
  const { port } = new URL(await listen(server))
  const asked = request({ port, host: '127.0.0.1', path, headers, agent: false })
  asked.end()
  const [answer] = await once(asked, 'response')
  answer.resume()
  return answer.statusCode
}

const browser = { 'accept-language': 'en-US,en;q=0.9', 'user-agent': 'Mozilla/5.0' }
const prometheus = {
  'user-agent': 'Prometheus/3.5.0',
  accept: 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
  'accept-encoding': 'gzip',
  'x-prometheus-scrape-timeout-seconds': '10',
}

test.each(['/metrics', '/readyz', '/livez'])(
  'DNS rebinding: a page under a separate name reads nothing at %s',
  async (path) => {
    expect(await getAs({ ...browser, host: 'evil.example:9100' }, path)).toBe(403)
    expect(await getAs({ 'accept-language': '', host: 'evil.example:9100' }, path)).toBe(403)
    expect(await getAs({ origin: 'http://evil.example', host: 'evil.example' }, path)).toBe(403)
  },
)

test.each([['localhost:9100'], ['10.0.0.5:9100'], ['[::1]:9100'], ['worker']])(
  'a person may look by %s',
  async (host) => {
    expect(await getAs({ ...browser, host })).toBe(200)
  },
)

test.each([
  ['10.1.2.3:9100'],
  ['postern-api.postern.svc.cluster.local:9100'],
  ['codes-1.dc.example.com'],
])('a scraper may name %s', async (host) => {
  expect(await getAs({ ...prometheus, host })).toBe(200)
})

test('slow headers, slow bodies and unread answers are cut as at the public port', () => {
  const [admin, open] = [create(), createHttpServer(() => {})]
  for (const name of ['headersTimeout', 'requestTimeout', 'timeout'] as const) {
    expect(admin[name]).toBe(open[name])
  }
  expect(admin).toHaveProperty('connectionsCheckingInterval', 1_000)
})
