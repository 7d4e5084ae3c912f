import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { createApiKeys } from '../../src/access/api-keys.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { databaseAt } from '../tools/database.ts'
import { listen } from '../tools/listen.ts'
import { noLimits, type Postern, type RequestOptions, startPostern } from '../tools/postern.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'
import { expectRefused } from './ledger.ts'
import { rawHttp } from './raw-http.ts'

const postern = await startPostern({ policyFile: { policies: noLimits } })
const send = { channel: 'sms', to: '+8613800138000' }
const anyId = '019aa000-0000-7000-8000-000000000000'

const keys = createApiKeys(databaseAt(postern.database.url, 1))
const refused = (status: number, code: string, path: string, options?: RequestOptions) =>
  expectRefused(postern, { status, code }, () => postern.get(path, options))

describe('method and path', () => {
  test.each([
    ['GET', '/v1/captchas', 'POST'],
    ['PUT', '/v1/captchas', 'POST'],
    ['DELETE', '/v1/captchas/check', 'POST'],
    ['OPTIONS', '/v1/notices', 'POST'],
    ['GET', '/v1/notices/search', 'POST'],
    ['POST', `/v1/notices/${anyId}`, 'GET, HEAD'],
    ['POST', '/sandbox/messages', 'GET, HEAD, DELETE'],
    ['POST', '/openapi.json', 'GET, HEAD'],
    ['POST', '/docs', 'GET, HEAD'],
    ['DELETE', '/docs/start.js', 'GET, HEAD'],
  ])('%s %s: 405 that names what is allowed', async (method, path, allow) => {
    const reply = await refused(405, 'method_not_allowed', path, { method })
    expect(reply.headers.get('allow')).toBe(allow)
  })

  test.each([
    '/',
    '/v1',
    '/v1/captcha',
    '/v2/captchas',
    '/metrics',
    '/readyz',
    '/v1/notices/a/b',
    '/%2e%2e/etc/passwd',
    '/openapi.json/',
    '/.well-known/jwks.json/',
  ])('%s: 404 without the path in it', async (path) => {
    const reply = await refused(404, 'not_found', path)
    expect(JSON.stringify(reply.body)).not.toContain(path.slice(1) || 'html')
  })

  test.each(['/v1/notices/%E0%A4%A', '/v1/notices/%', '/v1/notices/%ff'])(
    '%s: a bad percent escape is 400',
    async (path) => void (await refused(400, 'invalid_request', path)),
  )

  test.each(['%00', 'search%0a', "'%20OR%201=1", anyId.toUpperCase(), 'x'.repeat(5_000), anyId])(
    'an id that is no notice (%#): 404',
    async (id) => void (await refused(404, 'not_found', `/v1/notices/${id}`)),
  )

  test('HEAD answers as GET does, without a body', async () => {
    const response = await fetch(`${postern.url}/openapi.json`, { method: 'HEAD' })
    expect(response.status).toBe(200)
    expect(await response.text()).toBe('')
  })
})

describe('API key', () => {
  const unauthorized = { status: 401, code: 'unauthorized' }
  const authorizations: [string, string | undefined][] = [
    ['missing', undefined],
    ['wrong', 'Bearer psk_wrong'],
    ['empty', 'Bearer '],
    ['with a space behind', `Bearer ${postern.key} x`],
    ['cut', `Bearer ${postern.key.slice(0, -1)}`],
    ['twice', `Bearer ${postern.key}, Bearer ${postern.key}`],
    ['over-long', `Bearer ${'x'.repeat(5_000)}`],
  ]
  test.each(authorizations)('%s: 401, nothing used', async (_, authorization) => {
    const headers = authorization === undefined ? {} : { authorization }
    const reply = await expectRefused(postern, unauthorized, () =>
      postern.post('/v1/captchas', send, { key: null, headers: headers as Record<string, string> }),
    )
    expect(reply.headers.get('www-authenticate')).toBe('Bearer')
  })

  test.each(['key', 'token', 'access_token', 'authorization'])(
    'in the URL as %s: 401',
    async (name) => {
      const path = `/v1/captchas?${name}=${postern.key}`
      await expectRefused(postern, unauthorized, () => postern.post(path, send, { key: null }))
    },
  )

  test('revoked: 401', async () => {
    const { id, token } = await keys.create({ name: 'old', app: 'default' })
    await keys.revoke(id)
    await expectRefused(postern, unauthorized, () =>
      postern.post('/v1/captchas', send, { key: token }),
    )
  })

  test('no route under /v1 answers without a key, or reads the body before it', async () => {
    const { body } = await postern.get('/openapi.json')
    const guarded = Object.entries(body.paths).flatMap(([path, operations]) =>
      Object.keys(operations as object).map(
        (method) => [method, path.replace('{id}', anyId)] as const,
      ),
    )
    // Providers send their own signature to /v1/receipts.
    const isGuarded = (path: string) => path.startsWith('/v1') && !path.includes('/receipts/')
    for (const [method, path] of guarded.filter(([, path]) => isGuarded(path))) {
      const options = { key: null, method: method.toUpperCase() }
      const reply =
        method === 'get'
          ? await postern.get(path, options)
          : await postern.post(path, 'no JSON', options)
      expect({ path, status: reply.status }).toEqual({ path, status: 401 })
    }
  })

  test('of another app: sees no notice, no code, no cursor, no idempotent answer of this one', async () => {
    const { token: foreign } = await keys.create({ name: 'rival', app: 'rival' })
    const headers = { 'idempotency-key': 'shared' }
    const ours = await postern.post('/v1/captchas', send, { headers })
    const code = await postern.codeFor(ours.body.id)
    const [asRival, asUs] = [{ key: foreign }, {}]

    expect((await postern.get(`/v1/notices/${ours.body.id}`, asRival)).status).toBe(404)
    expect((await postern.post('/v1/notices/search', {}, asRival)).body).toEqual({ items: [] })
    const check = { ...send, code }
    expect((await postern.post('/v1/captchas/check', check, asRival)).body.code).toBe('code_gone')
    const theirs = await postern.post('/v1/captchas', send, { ...asRival, headers })
    expect(theirs.status).toBe(202)
    expect(theirs.body.id).not.toBe(ours.body.id)
    expect((await postern.post('/v1/captchas/check', check, asUs)).status).toBe(200)

    await postern.post('/v1/captchas', send)
    const page = await postern.post('/v1/notices/search', { limit: 1 })
    const cursor = page.body.nextCursor
    expect(cursor).toEqual(expect.any(String))
    await expectRefused(postern, { status: 400, code: 'invalid_request' }, () =>
      postern.post('/v1/notices/search', { cursor }, asRival),
    )
    const ends = [cursor.slice(0, -1), `${cursor}x`, `${cursor}.x`, cursor.replace(/.$/, '_')]
    for (const altered of ends.filter((each) => each !== cursor)) {
      expect((await postern.post('/v1/notices/search', { cursor: altered })).status).toBe(400)
    }
  })
})

describe('caller address', () => {
  const policies = { ...noLimits, captcha: [{ name: 'ip', key: '{ip}', sliding: '1 per 60s' }] }
  let recipientCount = 0
  async function sendFrom(target: Postern, forwardedFor: string): Promise<number> {
    recipientCount += 1
    const to = `+86138001${String(recipientCount).padStart(5, '0')}`
    const headers = {
      'x-forwarded-for': forwardedFor,
      forwarded: `for=${forwardedFor}`,
      'x-real-ip': forwardedFor,
    }
    return (await target.post('/v1/captchas', { channel: 'sms', to }, { headers })).status
  }

  test('TRUST_PROXY_HOPS 0: a forged X-Forwarded-For changes nothing', async () => {
    const open = await startPostern({ policyFile: { policies } })
    expect(await sendFrom(open, '203.0.113.1')).toBe(202)
    expect(await sendFrom(open, '203.0.113.2')).toBe(429)
    expect(await sendFrom(open, '127.0.0.1')).toBe(429)
  })

  test('TRUST_PROXY_HOPS 1: the address from the proxy counts, addresses from the caller do not', async () => {
    const proxied = await startPostern({ policyFile: { policies }, env: { TRUST_PROXY_HOPS: '1' } })
    expect(await sendFrom(proxied, '198.51.100.1, 203.0.113.1')).toBe(202)
    expect(await sendFrom(proxied, '198.51.100.2, 203.0.113.1')).toBe(429)
    expect(await sendFrom(proxied, '198.51.100.3, ::ffff:203.0.113.1')).toBe(429)
    expect(await sendFrom(proxied, '203.0.113.1:5000')).toBe(429)
    expect(await sendFrom(proxied, '203.0.113.2')).toBe(202)
    expect(await sendFrom(proxied, '2001:db8::1')).toBe(202)
    expect(await sendFrom(proxied, '2001:db8:0:0:ffff::9')).toBe(429)
    expect(await sendFrom(proxied, '2001:db8:0:1::1')).toBe(202)
    // If the proxy names words and no address, the caller is the connected address.
    expect(await sendFrom(proxied, 'unknown')).toBe(202)
    expect(await sendFrom(proxied, '_hidden7')).toBe(429)
  })
})

describe('the sandbox', () => {
  const ask = (headers: string, method = 'GET', version = '1.1') =>
    rawHttp(
      postern.url,
      `${method} /sandbox/messages HTTP/${version}\r\nConnection: close\r\n${headers}\r\n`,
    )

  test.each(['localhost', 'LOCALHOST:3000', '127.0.0.1', '127.1.2.3:80', '[::1]', '[::1]:3000'])(
    'answers Host %s',
    async (host) => {
      expect((await ask(`Host: ${host}\r\n`)).status).toBe(200)
    },
  )

  // A name that resolves to 127.0.0.1 in the operator's browser (DNS rebinding).
  test.each([
    'evil.example',
    'evil.example:3000',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'evil.example@localhost',
    '[::1].evil.example',
    '[::2]',
    '192.168.0.1',
    '0.0.0.0',
    '2130706433',
    '',
    `localhost${' '.repeat(10_000)}x`,
    `127${'.1'.repeat(5_000)}`,
  ])('does not answer Host %j, nor is emptied by it', async (host) => {
    for (const method of ['GET', 'DELETE']) {
      const { status, body } = await ask(`Host: ${host}\r\n`, method)
      expect(status).toBe(403)
      expect(JSON.parse(body).code).toBe('forbidden')
    }
  })

  test('does not answer a request without Host', async () => {
    expect((await ask('', 'GET', '1.0')).status).toBe(403)
  })

  test.each([
    'Forwarded: for=127.0.0.1',
    'Via: 1.1 proxy',
    'X-Real-IP: 127.0.0.1',
    'X-Forwarded-For: 127.0.0.1',
    'X-Forwarded-For:',
    'X-Forwarded-Host: x',
    'CF-Connecting-IP: x',
    'X-Client-IP: x',
    'X-Envoy-External-Address: x',
  ])('answers no caller that came through a proxy (%s)', async (header) => {
    expect((await ask(`Host: localhost\r\n${header}\r\n`)).status).toBe(403)
  })

  test.each([
    ['en', 'The sandbox answers only callers on this machine, and only as localhost.'],
    ['zh', '沙箱只回应本机以 localhost 访问的调用方。'],
  ])('its refusal has the reason, in %s, and names no key', async (language, detail) => {
    const { body } = await ask(`Host: evil.example\r\nAccept-Language: ${language}\r\n`)
    expect(JSON.parse(body).detail).toBe(detail)
    expect(body).not.toMatch(/key|密钥/i)
  })

  test('a + that was not escaped, a space when it arrives, finds the messages', async () => {
    const to = '+8613800138111'
    const { body } = await postern.post('/v1/captchas', { channel: 'sms', to })
    await postern.messageFor(body.id)
    for (const spelled of [to, ' 8613800138111', '%208613800138111', '%2B8613800138111']) {
      const found = await postern.get(`/sandbox/messages?to=${spelled}`)
      expect({ spelled, count: found.body.length }).toEqual({ spelled, count: 1 })
    }
  })
})

describe('on the wire', () => {
  const request = (headers: string, body = '') =>
    `POST /v1/captchas HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${postern.key}\r\n${headers}\r\n${body}`
  const json = 'Content-Type: application/json\r\n'

  test('headers of 20 kB: 431 with a problem document', async () => {
    const { status, head, body } = await rawHttp(
      postern.url,
      request(`X-Long: ${'x'.repeat(20_000)}\r\n`),
    )
    expect(status).toBe(431)
    expect(head).toContain('application/problem+json')
    expect(head).toMatch(/^x-request-id: [\w-]{36}\r$/m)
    expect(head).toMatch(/^cache-control: no-store\r$/m)
    expect(JSON.parse(body)).toMatchObject({ code: 'invalid_request', status: 431 })
  })

  test.each([
    ['no HTTP', 'hello\r\n\r\n'],
    ['a line break inside a header', request('X-A: a\rb\r\n')],
    ['two different lengths', request(`${json}Content-Length: 2\r\nContent-Length: 3\r\n`, '{}')],
    [
      'length and chunks',
      request(`${json}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n`, '0\r\n\r\n'),
    ],
    ['an unknown transfer encoding', request(`${json}Transfer-Encoding: gzip\r\n`, '{}')],
    ['no host', `GET /openapi.json HTTP/1.1\r\n\r\n`],
  ])('%s: 400 with a request id, for no cache, and the connection is closed', async (_, bytes) => {
    const { status, head } = await rawHttp(postern.url, bytes)
    expect(status).toBe(400)
    expect(head).toMatch(/^x-request-id: [\w-]{36}\r$/im)
    expect(head).toMatch(/^cache-control: no-store\r$/im)
  })

  test.each([
    ['no Host', '', '1.1', 400],
    ['two Hosts', 'Host: x\r\nHost: y\r\n', '1.1', 400],
    ['the same Host twice', 'Host: x\r\nhOST: x\r\n', '1.1', 400],
    ['two Hosts in HTTP/1.0', 'Host: x\r\nHost: y\r\n', '1.0', 400],
    ['no Host in HTTP/1.0', '', '1.0', 200],
    ['one Host', 'Host: x\r\nFrom: y\r\nX-Host: y\r\nConnection: close\r\n', '1.1', 200],
  ])('%s: %j in HTTP/%s is %i, as a problem document', async (_, hosts, version, status) => {
    const bytes = `GET /openapi.json HTTP/${version}\r\n${hosts}\r\n`
    const reply = await rawHttp(postern.url, bytes)
    expect(reply.status).toBe(status)
    if (status === 200) return
    expect(reply.head).toContain('application/problem+json')
    expect(reply.head.toLowerCase()).toContain('connection: close')
    expect(JSON.parse(reply.body)).toMatchObject({
      code: 'invalid_request',
      errors: [{ path: '', message: 'needs one Host header' }],
    })
  })

  test('a body that is cut on the wire: 400 or nothing, and no message', async () => {
    const bytes = request(
      `${json}Content-Length: 500\r\n`,
      '{"channel":"sms","to":"+8613800138000"}',
    )
    const { rows: before } = await postern.database.pool.query('SELECT count(*) FROM notice')
    const { status } = await rawHttp(postern.url, bytes, { thenEnd: true })
    expect(status).toBe(400)
    const { rows: after } = await postern.database.pool.query('SELECT count(*) FROM notice')
    expect(after).toEqual(before)
  })

  test('a body announced as 1 GB: 413 before it is read, and the connection is closed', async () => {
    const bytes = request(`${json}Content-Length: 1000000000\r\n`, '{"channel":')
    const { status, head, body } = await rawHttp(postern.url, bytes)
    expect(status).toBe(413)
    expect(head.toLowerCase()).toContain('connection: close')
    expect(JSON.parse(body).code).toBe('payload_too_large')
  })

  test('a body that grows past 16 kB in chunks: 413', async () => {
    const chunk = `2000\r\n${'x'.repeat(0x2000)}\r\n`
    const bytes = request(`${json}Transfer-Encoding: chunked\r\n`, `${chunk.repeat(4)}0\r\n\r\n`)
    const { status, body } = await rawHttp(postern.url, bytes)
    expect(status).toBe(413)
    expect(JSON.parse(body).code).toBe('payload_too_large')
  })

  test.each([
    ['of another type', 'Content-Type: text/plain\r\n', 415],
    ['too long', json, 413],
  ])('what follows a refused body (%s) is not taken for a request', async (_, type, status) => {
    // Served if it counts as a receipt, because receipts need no key.
    const inner = `GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n`
    const length = status === 413 ? 1_000_000 : inner.length
    const outer = request(`${type}Content-Length: ${length}\r\n`, inner)
    const reply = await rawHttp(postern.url, `${outer}${inner}`)
    expect(reply.status).toBe(status)
    expect(reply.head.toLowerCase()).toContain('connection: close')
    expect(reply.body).not.toContain('HTTP/1.1')
  })

  const listening = async (
    answer: RequestListener,
    patience: Parameters<typeof createHttpServer>[1] = undefined,
  ) => {
    const server = createHttpServer(answer, patience)
    return Number(new URL(await listen(server)).port)
  }

  test('requests behind each other in one packet: eight are served, at the ninth unanswered one the connection ends', async () => {
    let served = 0
    const port = await listening((_request, response) => {
      served += 1
      setImmediate(() => response.end('served'))
    })
    const pipelined = (count: number) =>
      rawHttp(`http://127.0.0.1:${port}`, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(count))
    const eight = rawHttp(
      `http://127.0.0.1:${port}`,
      `${'GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(7)}GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    )
    expect((await eight).body.match(/served/g)).toHaveLength(8)
    served = 0
    await pipelined(500)
    expect(served).toBe(8)
  })

  test('requests one after the other: any number is served on one connection', async () => {
    const port = await listening((_request, response) => void response.end('served'))
    const socket = closeLater(connect(port, '127.0.0.1'), 'destroy')
    for (let count = 0; count < 100; count++) {
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      const [answer] = await once(socket, 'data')
      expect(String(answer)).toContain('served')
    }
  })

  test('an answer that is not fetched: the connection ends once nothing has moved for a while', async () => {
    const { resolve: cut, promise: isCut } = Promise.withResolvers<void>()
    const port = await listening(
      (request, response) => {
        request.socket.on('close', () => cut())
        response.end(Buffer.alloc(50_000_000))
      },
      { headersMs: 300, requestMs: 300, checkEveryMs: 50, stillMs: 300 },
    )
    const socket = closeLater(connect(port, '127.0.0.1').pause(), 'destroy')
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await isCut
  })

  test.each([
    ['an answer before the body has come', 'Content-Length: 100000\r\n', 'served'],
    ['headers that are too long', `X-Long: ${'x'.repeat(20_000)}\r\n`, 'larger than 16 kB'],
  ])(
    '%s, to a client that still sends: it can read the answer, and then the connection ends',
    async (_, headers, text) => {
      const { resolve: close, promise: isClosed } = Promise.withResolvers<void>()
      const port = await listening((request, response) => {
        request.socket.once('close', () => close())
        response.setHeader('connection', 'close').end('served')
      })
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
      releaseLater(() => socket.destroy())
      const errors: Error[] = []
      socket.on('error', (error) => errors.push(error))
      let answer = ''
      socket.on('data', (bytes) => {
        answer += bytes
      })
      const ended = once(socket, 'end')
      socket.write(`POST / HTTP/1.1\r\nHost: x\r\n${headers}\r\n{`)
      // Bytes behind the answer would meet a closed connection.
      for (let behind = 0; behind < 5 && errors.length === 0; ) {
        if (answer !== '') behind++
        await new Promise((resolve) => socket.write('x'.repeat(100), resolve))
        await sleep(1)
      }
      expect(errors).toEqual([])
      await ended
      expect(answer).toMatch(text)
      // A client that does not end its side is not waited for either.
      if (text === 'served') await isClosed
    },
  )

  test('slow headers and a slow body: 408 once the time is up, and others are served meanwhile', async () => {
    const answer = (_request: unknown, response: { end(text: string): void }) =>
      response.end('served')
    const server = createHttpServer(answer, {
      headersMs: 300,
      requestMs: 300,
      checkEveryMs: 50,
      stillMs: 20_000,
    })
    const url = await listen(server)
    const slow = rawHttp(url, 'POST /v1/captchas HTTP/1.1\r\nHost: x\r\nX-Slow: ')
    expect(await (await fetch(url)).text()).toBe('served')
    const { status, body } = await slow
    expect(status).toBe(408)
    expect(JSON.parse(body)).toMatchObject({ code: 'invalid_request', status: 408 })
    server.closeAllConnections()
  })

  test('the product’s own server waits 10 s for headers and looks for late ones every second', async () => {
    const server = createHttpServer(() => {})
    expect(server.headersTimeout).toBe(10_000)
    expect(server.requestTimeout).toBe(15_000)
    // Node has this value here, but its types do not.
    expect(server).toHaveProperty('connectionsCheckingInterval', 1_000)
    server.close()
  })
})

describe('every answer', () => {
  test('is never cached or sniffed, and does not name its server', async () => {
    for (const path of ['/openapi.json', '/nothing', '/v1/notices/x']) {
      const { headers } = await postern.get(path)
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('x-powered-by')).toBe(null)
      expect(headers.get('etag')).toBe(null)
    }
  })

  test.each([
    [undefined, 'There is nothing here.'],
    ['de', 'Hier gibt es nichts.'],
    ['fr', 'There is nothing here.'],
    ['en-GB', 'There is nothing here.'],
    ['zh', '资源不存在。'],
    ['zh-CN,zh;q=0.9,en;q=0.8', '资源不存在。'],
    ['ZH-Hant-TW', '资源不存在。'],
    ['en;q=0.8, zh;q=0.9', '资源不存在。'],
    ['zh;q=0.1, en', 'There is nothing here.'],
    ['zh;q=0', 'There is nothing here.'],
    ['zh;q=nonsense', 'There is nothing here.'],
    ['zh ; q=0.9 , en ; q=0.8', '资源不存在。'],
    ['zh;q=1e9', 'There is nothing here.'],
    [`${'a,'.repeat(200)}zh`, 'There is nothing here.'],
    [`${'a,'.repeat(2_000)}zh`, 'There is nothing here.'],
  ])('Accept-Language %j: its detail is in that language', async (language, detail) => {
    const headers: Record<string, string> =
      language === undefined ? {} : { 'accept-language': language }
    expect((await postern.get('/nothing', { headers })).body.detail).toBe(detail)
  })
})

describe('bytes after a request on its connection', () => {
  /** A busy server may answer 503, which changes nothing. */
  const answerTo = (bytes: string) =>
    eventually(async () => {
      const reply = await rawHttp(postern.url, bytes)
      return reply.status !== 503 && reply
    })
  const head = (path: string, body: string) =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${postern.key}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`

  test('a byte too many: the answer to what was carried out, then 400', async () => {
    const body = JSON.stringify({ channel: 'sms', to: '+8613800138777' })
    const reply = await answerTo(`${head('/v1/captchas', body)}${body}}`)
    expect(reply.status).toBe(202)
    expect(reply.body).toContain('HTTP/1.1 400 Bad Request')
    expect(reply.body).toContain('this is not HTTP')
  })

  test('an unknown expectation is no reason to refuse', async () => {
    const body = JSON.stringify({ channel: 'sms', to: '+8613800138778', code: '0000' })
    const bytes = head('/v1/captchas/check', body).replace(
      '\r\n',
      '\r\nExpect: foo\r\nConnection: close\r\n',
    )
    expect((await answerTo(bytes + body)).status).toBe(410)
  })

  test('a transfer coding besides chunked: 415', async () => {
    const bytes =
      `POST /v1/captchas HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${postern.key}\r\n` +
      'Content-Type: application/json\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n'
    expect((await rawHttp(postern.url, bytes)).status).toBe(415)
  })
})

test('the sandbox where a proxy is trusted: 403, because every caller has its address', async () => {
  const proxied = await startPostern({
    roles: { api: true, worker: false },
    env: { TRUST_PROXY_HOPS: '1' },
  })
  expect((await proxied.get('/sandbox/messages', { key: null })).status).toBe(403)
})
