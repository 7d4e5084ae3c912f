import { describe, expect, it } from 'vitest'
import type { Message, SendResult } from '../../src/providers/provider.ts'
import http, * as given from './cases/http.ts'
import { withProvider } from './conformance.ts'
import { type HttpFarEnd, startHttpFarEnd } from './far-ends/http.ts'
import { testConformance } from './test-conformance.ts'
import { forged, malformed, never } from './vendor.ts'

testConformance(given)

const message: Message = {
  ...given.conformance.message,
  noticeId: 'n-1',
  country: 'GB',
  nationalNumber: '7700900123',
}

type Answer = { status: number; headers?: Record<string, string>; body: string }

/** Sends to a vendor that answers so, and returns the result and the request. */
async function sendBy(
  settings: (address: string) => Record<string, unknown>,
  changes: Partial<Message> = {},
  answer: Answer = { status: 200, body: '{}' },
): Promise<{ result: SendResult; request: HttpFarEnd['requests'][number] | undefined }> {
  const conformance = {
    settings: (port: number) => settings(`http://127.0.0.1:${port}`),
    startFarEnd: () => startHttpFarEnd(() => answer),
  }
  return withProvider({ default: http, conformance }, async (provider, farEnd) => {
    const result = await provider.send({ ...message, ...changes }, never)
    return { result, request: farEnd.requests[0] }
  })
}

describe('http, request', () => {
  it('texts anywhere in JSON are filled, and other values stay as they are', async () => {
    const json = {
      to: ['{{to}}'],
      deep: [{ text: 'Hi, {{ text }}', n: 1, on: true, none: null }],
      all: '{{toDigits}} {{toNational}} {{country}} {{locale}} {{noticeId}} {{code}} {{template}}',
      param: '{{params.minutes}}',
      constructor: '{{params.constructor}}',
    }
    const changes = { text: 'a "quoted"\nline \\ 好', variables: { code: '0420', minutes: '5' } }
    const { request } = await sendBy((url) => ({ url, json }), changes)
    expect(request?.headers['content-type']).toBe('application/json')
    expect(JSON.parse(request?.body ?? '')).toEqual({
      to: ['+447700900123'],
      deep: [{ text: `Hi, ${changes.text}`, n: 1, on: true, none: null }],
      all: '447700900123 7700900123 GB en n-1 0420 captcha',
      param: '5',
    })
  })

  it('a variable without a value → its member, item, field or header is left out; inside a text it is empty', async () => {
    const json = { subject: '{{subject}}', list: ['{{subject}}', 'x'], text: 'S:{{subject}}.' }
    const headers = { 'X-Subject': '{{subject}}', 'X-Text': 'S:{{subject}}.' }
    const inJson = await sendBy((url) => ({ url: `${url}/?s={{subject}}`, json, headers }))
    expect(JSON.parse(inJson.request?.body ?? '')).toEqual({ list: ['x'], text: 'S:.' })
    expect(inJson.request?.query.get('s')).toBe('')
    expect(inJson.request?.headers).not.toHaveProperty('x-subject')
    expect(inJson.request?.headers['x-text']).toBe('S:.')
    const form = { a: '{{subject}}', b: 'S:{{subject}}.', c: ['{{subject}}', '{{code}}', 7] }
    const { request } = await sendBy((url) => ({ url, form }))
    expect(request?.body).toBe('b=S%3A.&c=738291&c=7')
  })

  it('values are escaped in a form, a query and an address', async () => {
    const text = 'a&b=c d+e%20 好/?#\ud800'
    const kept = 'a&b=c d+e%20 好/?#\ufffd'
    const form = await sendBy((url) => ({ url, form: { text: '{{text}}' } }), { text })
    expect([...new URLSearchParams(form.request?.body)]).toEqual([['text', kept]])
    expect(form.request?.headers['content-type']).toBe('application/x-www-form-urlencoded')
    const query = { text: '{{text}}', n: 1 }
    const asked = await sendBy((url) => ({ url: `${url}/s?a=1`, method: 'GET', query }), { text })
    expect(asked.request).toMatchObject({ method: 'GET', path: '/s', body: '' })
    const own = Object.fromEntries(asked.request?.query ?? [])
    expect(own).toEqual({ a: '1', text: kept, n: '1' })
    const address = await sendBy((url) => ({ url: `${url}/{{text}}/x?t={{text}}` }), { text })
    expect(address.request?.path).toBe(`/${encodeURIComponent(kept)}/x`)
    expect([...(address.request?.query ?? [])]).toEqual([['t', kept]])
  })

  it('a value of dots → the message is rejected, because the path would be another one', async () => {
    const { result, request } = await sendBy((url) => ({ url: `${url}/v1/{{params.name}}/send` }), {
      variables: { name: '..' },
    })
    expect([result.kind, request]).toEqual(['rejected', undefined])
  })

  it('no line break reaches a header; other letters travel as UTF-8', async () => {
    const headers = { 'X-Text': '{{text}}', 'Content-Type': 'application/vnd.acme+json' }
    const text = '好\r\nX-Evil: 1\n\0end'
    const { request } = await sendBy((url) => ({ url, headers, json: {} }), { text })
    const line = Buffer.from(String(request?.headers['x-text']), 'latin1').toString()
    expect(line).toBe('好 X-Evil: 1 end')
    expect(request?.headers).not.toHaveProperty('x-evil')
    expect(request?.headers['content-type']).toBe('application/vnd.acme+json')
  })

  it('basic is sent as Authorization, and PUT and a text without a body as they stand', async () => {
    const basic = { user: 'ada', password: 'pässword' }
    const { request } = await sendBy((url) => ({ url, method: 'PUT', basic }))
    expect(request).toMatchObject({ method: 'PUT', body: '' })
    const login = Buffer.from('ada:pässword').toString('base64')
    expect(request?.headers.authorization).toBe(`Basic ${login}`)
  })

  it('a mail has no digits and no national number', async () => {
    const json = { d: '{{toDigits}}', n: '{{toNational}}', c: '{{country}}', h: '{{html}}' }
    const mail = { channel: 'email', to: 'ada@example.test', country: '', html: '<b>' } as const
    const { nationalNumber: _, ...rest } = message
    const { request } = await sendBy((url) => ({ url, channels: ['email'], json }), {
      ...rest,
      ...mail,
      nationalNumber: undefined as never,
    })
    expect(JSON.parse(request?.body ?? '')).toEqual({ h: '<b>' })
  })
})

describe('http, answers', () => {
  const answered = async (
    settings: Record<string, unknown>,
    status: number,
    body: unknown = '',
    headers: Record<string, string> = {},
  ) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const of = (url: string) => ({ url, json: {}, ...settings })
    return (await sendBy(of, {}, { status, headers, body: text })).result
  }

  it.each([
    [200, 'accepted'],
    [202, 'accepted'],
    [300, 'unavailable'],
    [302, 'unavailable'],
    [400, 'rejected'],
    [401, 'rejected'],
    [404, 'rejected'],
    [429, 'throttled'],
    [500, 'unavailable'],
    [503, 'unavailable'],
    [504, 'unknown'],
  ])('without settings for answers, %i → %s', async (status, kind) => {
    expect(await answered({}, status)).toMatchObject({ kind })
  })

  it('accepted needs all that it names: a status, a value as text, and no id', async () => {
    const accepted = { status: [200, 409], where: { '/code': 0, '/ok': true }, id: '/data/0/id' }
    const good = { code: '0', ok: 'true', data: [{ id: 7 }] }
    expect(await answered({ accepted }, 200, good)).toEqual({ kind: 'accepted', messageId: '7' })
    expect(await answered({ accepted }, 409, good)).toMatchObject({ kind: 'accepted' })
    expect(await answered({ accepted }, 200, { ...good, data: [] })).toEqual({ kind: 'accepted' })
    expect(await answered({ accepted }, 202, good)).toMatchObject({ kind: 'rejected' })
    for (const body of [{ ...good, code: 1 }, { code: 0 }, '<html>', '', 'null', '[]']) {
      expect(await answered({ accepted }, 200, body)).toMatchObject({ kind: 'rejected' })
    }
  })

  it('places: of lists, of escaped names, of own members only, of a form', async () => {
    const of = (id: string) => ({ accepted: { id } })
    const body = { 'a/b': { 'c~d': [1, { '': 'deep' }] }, id: '12' }
    expect(await answered(of('/a~1b/c~0d/1/'), 200, body)).toMatchObject({ messageId: 'deep' })
    expect(await answered(of('/a~1b/c~0d/0'), 200, body)).toMatchObject({ messageId: '1' })
    for (const id of [
      '/id/length',
      '/a~1b/c~0d/01',
      '/a~1b/c~0d/length',
      '/constructor',
      '/a~1b',
    ]) {
      expect(await answered(of(id), 200, body)).toEqual({ kind: 'accepted' })
    }
    expect(await answered(of('/id'), 200, 'status=0&id=a%20b')).toMatchObject({ messageId: 'a b' })
    expect(await answered(of(''), 200, '"whole"')).toMatchObject({ messageId: 'whole' })
  })

  it('a number too long for JavaScript keeps its digits', async () => {
    const body = '{"id":12345678901234567890}'
    const result = await answered({ accepted: { id: '/id' } }, 200, body)
    expect(result).toEqual({ kind: 'accepted', messageId: '12345678901234567890' })
  })

  it('errors come first, in their order, also after a 2xx and a 5xx', async () => {
    const errors = [
      { where: { '/code': 1002 }, is: 'invalid_recipient' },
      { status: 500, where: { '/code': [7, 8] }, is: 'rejected' },
      { status: [500, 504], is: 'throttled' },
      { where: { '/code': 9 }, is: 'unknown' },
    ]
    const of = (status: number, code: unknown) => answered({ errors }, status, { code })
    expect(await of(200, '1002')).toEqual({
      kind: 'invalid_recipient',
      detail: 'http HTTP 200 /code=1002',
    })
    expect(await of(500, 8)).toMatchObject({ kind: 'rejected' })
    expect(await of(500, 1)).toMatchObject({ kind: 'throttled', retryAfterMs: 1_000 })
    expect(await of(504, 1)).toMatchObject({ kind: 'throttled' })
    expect(await of(200, 9)).toMatchObject({ kind: 'unknown' })
    expect(await of(200, 1)).toMatchObject({ kind: 'accepted' })
  })

  it.each([
    [{ wait: 7 }, {}, 7_000],
    [{ wait: '2.25' }, {}, 2_250],
    [{ wait: '7 s' }, {}, 1_000],
    [{ wait: 'in 7' }, {}, 1_000],
    [{ wait: 0 }, {}, 1_000],
    [{ wait: 999_999_999 }, {}, 86_400_000],
    [{ wait: 'soon' }, { 'retry-after': '9' }, 9_000],
    [{}, { 'retry-after': '9' }, 9_000],
    [{}, {}, 1_000],
  ])('throttled with %j and %j → %i ms', async (body, headers, retryAfterMs) => {
    const errors = [{ status: 429, is: 'throttled', retryAfter: '/wait' }]
    expect(await answered({ errors }, 429, body, headers)).toMatchObject({ retryAfterMs })
  })
})

describe('http, settings', () => {
  const good = { url: 'https://api.acme.test/messages', json: { to: '{{to}}' } }
  const receipts = given.entry.receipts

  it.each<[string, Record<string, unknown>, string]>([
    ['json.a.0', { json: { a: ['{{too}}'] } }, 'there is no variable {{too}}'],
    ['headers.X', { headers: { X: '{{params.}}' } }, 'there is no variable {{params.}}'],
    ['json.a', { json: { a: '{{to}' } }, 'a {{ has no }}'],
    ['json.a', { json: { a: '{{from}}' } }, 'has {{from}}, but there is no from'],
    ['url', { url: 'ftp://acme.test' }, 'must be an address'],
    ['url', { url: 'https://{{country}}.acme.test/' }, 'has a variable before its path'],
    ['url', { url: 'https://acme.test/a/../b' }, 'has . or ..'],
    ['url', { url: 'https://acme.test/#{{code}}' }, 'has a part behind #'],
    ['form', { form: {} }, 'there is json already'],
    ['json', { method: 'GET' }, 'a GET has no body'],
    ['headers.Content-Length', { headers: { 'Content-Length': '1' } }, 'is a header that Postern'],
    ['headers.a b', { headers: { 'a b': '1' } }, 'is not a name of a header'],
    ['headers.A', { headers: { A: 'x\ny' } }, 'must be one line'],
    ['accepted.id', { accepted: { id: 'code' } }, 'must be a JSON pointer'],
    ['accepted.where./a~2', { accepted: { where: { '/a~2': 1 } } }, 'must be a JSON pointer'],
    ['errors.0', { errors: [{ is: 'rejected' }] }, 'needs status or where'],
    [
      'errors.0.retryAfter',
      { errors: [{ status: 400, is: 'rejected', retryAfter: '/a' }] },
      'is only for throttled',
    ],
    ['receipts.state', { receipts: { ...receipts, state: 'status' } }, 'must be a JSON pointer'],
    [
      'basic',
      { headers: { authorization: 'x' }, basic: { user: 'a', password: 'b' } },
      'there is a header Authorization already',
    ],
  ])('%s of %j → refused', (path, changes, message) => {
    const { error } = http.settings.safeParse({ ...good, ...changes })
    const issues = error?.issues.map((issue) => {
      const [ofName] = issue.code === 'invalid_key' ? issue.issues : []
      return `${issue.path.join('.')}: ${(ofName ?? issue).message}`
    })
    expect(issues).toEqual([expect.stringContaining(`${path}: ${message}`)])
  })

  it.each([
    { errors: [{ status: 400, is: 'postponed' }] },
    { receipts: { ...receipts, token: 'short' } },
    { receipts: { ...receipts, delivered: [], failed: [] } },
    { receipts: { token: receipts.token, id: '/id', state: '/state' } },
    { accepted: { where: {} } },
    { method: 'DELETE' },
    { channels: [] },
  ])('%j → refused', (changes) => {
    expect(http.settings.safeParse({ ...good, ...changes }).success).toBe(false)
  })
})

describe('http, receipts', () => {
  const token = given.receiptToken
  const readerOf = (changes: object = {}) => {
    const receipts = { ...given.entry.receipts, ...changes }
    const settings = http.settings.parse({ url: 'https://acme.test', receipts })
    const reader = http.createReceiptReader?.(settings)
    if (!reader) throw new Error('no reader')
    return reader
  }
  const usual = { headers: {}, query: { token }, receivedAt: 0 }
  const request = (body: string, more = {}) => ({ ...usual, rawBody: Buffer.from(body), ...more })
  const report = { messageId: 12, status: 'DELIVRD' }
  const read = { messageId: '12', outcome: 'delivered', detail: 'http DELIVRD' }

  it('reads JSON, a form and a GET, with the token in the query or as a bearer', () => {
    const reader = readerOf()
    expect(reader.parse(request(JSON.stringify(report)))).toEqual({
      ok: true,
      receipts: [read],
      reply: { status: 200, contentType: 'application/json', body: '{}' },
    })
    const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' }
    const form = request('messageId=12&status=EXPIRED', { headers })
    expect(reader.parse(form)).toMatchObject({ receipts: [{ messageId: '12', outcome: 'failed' }] })
    const byGet = request('', { query: { token, messageId: '12', status: 'DELIVRD' } })
    expect(reader.readsQuery).toBe(true)
    expect(reader.parse(byGet)).toMatchObject({ receipts: [read] })
    const bearer = { query: {}, headers: { authorization: `Bearer ${token}` } }
    expect(reader.mayBeGenuine({ ...bearer, receivedAt: 0 })).toBe(true)
    expect(reader.parse(request(JSON.stringify(report), bearer))).toMatchObject({
      receipts: [read],
    })
  })

  it('another token, no token, or no settings for receipts → forged', () => {
    const bare = http.createReceiptReader?.(http.settings.parse({ url: 'https://acme.test' }))
    for (const query of [{}, { token: 'another-token-here' }, { token: [token] }]) {
      expect(readerOf().mayBeGenuine({ headers: {}, query, receivedAt: 0 })).toBe(false)
      expect(readerOf().parse(request('{}', { query }))).toEqual(forged)
    }
    expect(bare?.parse(request('{}', { query: { token: '' } }))).toEqual(forged)
  })

  it('settings with words for one outcome only → the other states change nothing', () => {
    const { failed: _, ...delivered } = given.entry.receipts
    const receipts = { ...delivered, delivered: 'OK' }
    const settings = http.settings.parse({ url: 'https://acme.test', receipts })
    const parse = (status: string) =>
      http.createReceiptReader?.(settings).parse(request(JSON.stringify({ ...report, status })))
    expect(parse('OK')).toMatchObject({ receipts: [{ outcome: 'delivered' }] })
    expect(parse('UNDELIV')).toMatchObject({ ok: true, receipts: [] })
  })

  it('a state that the settings do not name → no receipt; nothing to read → malformed', () => {
    const parse = (value: unknown) => readerOf().parse(request(JSON.stringify(value)))
    expect(parse({ ...report, status: 'SENT' })).toMatchObject({ ok: true, receipts: [] })
    for (const value of [null, 1, [], {}, { messageId: 1 }, { messageId: 'é', status: 'SENT' }]) {
      expect(parse(value)).toEqual(malformed)
    }
  })

  it('a list, also as text in a form; one that can not be read is counted', () => {
    const reports = [report, {}, { ...report, status: 'SENT' }]
    const expected = { ok: true, receipts: [read, { outcome: 'failed' }] }
    const json = JSON.stringify({ reports })
    expect(readerOf({ list: '/reports' }).parse(request(json))).toEqual({
      ...expected,
      reply: expect.anything(),
    })
    expect(readerOf({ list: '' }).parse(request(JSON.stringify(reports)))).toMatchObject(expected)
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const form = new URLSearchParams({ r: JSON.stringify(reports) }).toString()
    const reader = readerOf({ list: '/r', answer: 'SUCCESS' })
    expect(reader.parse(request(form, { headers }))).toMatchObject({
      ...expected,
      reply: { contentType: 'text/plain; charset=utf-8', body: 'SUCCESS' },
    })
    expect(reader.parse(request('{}'))).toEqual(malformed)
  })

  it('states and ids are compared as text; a long number keeps its digits', () => {
    const reader = readerOf({ delivered: 1, failed: [2, false] })
    const parse = (text: string) => reader.parse(request(text))
    expect(parse('{"messageId":12345678901234567890,"status":"1"}')).toMatchObject({
      receipts: [{ messageId: '12345678901234567890', outcome: 'delivered' }],
    })
    expect(parse('{"messageId":"a","status":false}')).toMatchObject({
      receipts: [{ outcome: 'failed' }],
    })
  })
})
