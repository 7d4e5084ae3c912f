/** The rights of a key in a page, and the headers that a browser needs for it. */
import { describe, expect, test } from 'vitest'
import { createApiKeys } from '../../src/access/api-keys.ts'
import type { NewKey } from '../../src/access/key-store.ts'
import { databaseAt } from '../tools/database.ts'
import { type Reply, startPostern } from '../tools/postern.ts'
import { templatesFolder } from '../tools/templates-folder.ts'
import { eventually } from '../tools/wait.ts'
import { badRequest, expectRefused } from './ledger.ts'

const origin = 'https://shop.example'
const second = 'http://localhost:5173'
const postern = await startPostern({
  policyFile: {
    policies: {
      captcha: [{ name: 'recipient', key: '{app}:{to}', sliding: '3 per 1h' }],
      notice: [],
      check: [],
    },
    templates: templatesFolder({ 'greeting/sms.en.txt': '{{code}}!' }, { withShipped: true }),
    browser: { templates: ['captcha', 'greeting'] },
  },
})

async function makeKey(key: Partial<NewKey> = {}) {
  const database = databaseAt(postern.database.url, 1)
  const keys = createApiKeys(database)
  const kind = key.kind ?? 'publishable'
  const origins = kind === 'publishable' ? [origin, second] : []
  const made = await keys.create({ name: 'web', app: 'default', kind, origins, ...key })
  return { ...made, revoke: () => keys.revoke(made.id), rotate: () => keys.rotate(made.id, 60_000) }
}

const page = await makeKey()
let numbers = 0
function send() {
  numbers += 1
  return { channel: 'sms', to: `+8613800${String(numbers).padStart(6, '0')}` }
}

const from = (from: string, key: string | null = page.token, more = {}) => ({
  key,
  headers: { origin: from, ...more },
})
const preflight = (path: string, headers: Record<string, string>) =>
  postern.get(path, { key: null, method: 'OPTIONS', headers })
const asking = (origin: string, more = {}) => ({
  origin,
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization,content-type',
  ...more,
})

const corsHeaders = (reply: Reply) =>
  Object.fromEntries([...reply.headers].filter(([name]) => name.startsWith('access-control-')))
const exposed = 'Retry-After, RateLimit, RateLimit-Policy, X-Request-Id, Location'

function expectReadable(reply: Reply, from = origin): void {
  expect(corsHeaders(reply)).toEqual({
    'access-control-allow-origin': from,
    'access-control-expose-headers': exposed,
  })
  expect(reply.headers.get('vary')).toBe('Origin')
}

const otherOrigins: [string][] = [
  ['https://evil.example'],
  ['null'],
  [''],
  ['*'],
  ['https://shop.example/'],
  ['HTTPS://SHOP.EXAMPLE'],
  ['https://Shop.example'],
  ['http://shop.example'],
  ['https://shop.example:443'],
  ['https://shop.example:8443'],
  ['https://www.shop.example'],
  ['https://shop.example.evil.example'],
  ['https://shop.example, https://evil.example'],
  ['https://shop.example.'],
  ['shop.example'],
  [`https://${'x'.repeat(5_000)}.example`],
]

describe('the question of a browser', () => {
  test.each(['/v1/captchas', '/v1/captchas/check', '/v1/challenges'])(
    '%s, of a listed origin: 204 with exactly that origin',
    async (path) => {
      for (const listed of [origin, second]) {
        const reply = await preflight(path, asking(listed))
        expect(reply.status).toBe(204)
        expect(reply.body).toBe('')
        expect(corsHeaders(reply)).toEqual({
          'access-control-allow-origin': listed,
          'access-control-allow-methods': 'POST',
          'access-control-allow-headers': 'Authorization, Content-Type, Idempotency-Key',
          'access-control-max-age': '600',
        })
        expect(reply.headers.get('vary')).toBe('Origin')
      }
    },
  )

  test.each(otherOrigins)('of the origin %j: 403, and no word for a browser', async (other) => {
    const refused = { status: 403, code: 'forbidden' }
    const reply = await expectRefused(postern, refused, () =>
      preflight('/v1/captchas', asking(other)),
    )
    expect(corsHeaders(reply)).toEqual({})
  })

  test.each([
    '/v1/notices',
    '/v1/notices/search',
    '/v1/passes/verify',
    '/v1/recipients/lookup',
    '/v1/recipients/reset',
    '/v1/attempts',
    '/v1/limits/captcha/acquire',
    '/v1/receipts/phone',
    '/openapi.json',
    '/sandbox/messages',
  ])('%s is for no page: 405', async (path) => {
    const reply = await preflight(path, asking(origin))
    expect(reply.status).toBe(405)
    expect(corsHeaders(reply)).toEqual({})
  })

  test.each([
    ['without an origin', { 'access-control-request-method': 'POST' }],
    ['without a method', { origin }],
    ['plain', {}],
  ])('an OPTIONS that is none (%s): 405', async (_, headers) => {
    const reply = await preflight('/v1/captchas', headers)
    expect({ status: reply.status, allow: reply.headers.get('allow') }).toEqual({
      status: 405,
      allow: 'POST',
    })
  })

  test('the answer is the same for any requested method and headers', async () => {
    const odd = { 'access-control-request-method': 'DELETE', 'access-control-request-headers': 'x' }
    const [plain, other] = [
      await preflight('/v1/captchas', asking(origin)),
      await preflight('/v1/captchas', asking(origin, odd)),
    ]
    expect(corsHeaders(other)).toEqual(corsHeaders(plain))
  })

  test('an origin is answered soon after its key, and refused soon after its end', async () => {
    const fresh = 'https://fresh.example'
    const { revoke } = await makeKey({ origins: [fresh] })
    const status = async () => (await preflight('/v1/captchas', asking(fresh))).status
    await eventually(async () => (await status()) === 204)
    await revoke()
    await eventually(async () => (await status()) === 403)
  })

  test('a thousand questions are a statement or two', async () => {
    const asked = async () => {
      const { rows } = await postern.database.pool.query(
        `SELECT sum(seq_scan + idx_scan)::int AS scans FROM pg_stat_user_tables WHERE relname = 'api_key'`,
      )
      return rows[0].scans as number
    }
    await preflight('/v1/captchas', asking(origin))
    const before = await asked()
    for (let round = 0; round < 20; round++) {
      await Promise.all(
        Array.from({ length: 50 }, (_, at) =>
          preflight('/v1/captchas', asking(`https://${round}-${at}.example`)),
        ),
      )
    }
    // Statistics are late by a second, so a smaller number proves nothing.
    await eventually(async () => expect((await asked()) - before).toBeLessThan(50))
  })
})

describe('a publishable key from its origin', () => {
  test('sends a code and checks it, and a browser may read both answers', async () => {
    const body = send()
    const sent = await postern.post('/v1/captchas', body, from(origin))
    expect(sent.status).toBe(202)
    expectReadable(sent)
    const code = await postern.codeFor(sent.body.id)
    const checked = await postern.post('/v1/captchas/check', { ...body, code }, from(second))
    expect(checked.status).toBe(200)
    expectReadable(checked, second)
  })

  test('a template of browser.templates', async () => {
    const body = { ...send(), template: 'greeting' }
    expect((await postern.post('/v1/captchas', body, from(origin))).status).toBe(202)
  })

  test('without an Origin, as from a web view: it works, without CORS headers', async () => {
    const sent = await postern.post('/v1/captchas', send(), { key: page.token })
    expect(sent.status).toBe(202)
    expect(corsHeaders(sent)).toEqual({})
    expect(sent.headers.get('vary')).toBe(null)
  })

  test('every refusal can be read: 400, 403, 410, 413, 415, 422, 429 with Retry-After', async () => {
    const answers: [number, string, unknown, Record<string, string>?][] = [
      [400, '/v1/captchas', {}],
      [400, '/v1/captchas', '{'],
      [403, '/v1/notices', {}],
      [410, '/v1/captchas/check', { ...send(), code: '0000' }],
      [413, '/v1/captchas', 'x'.repeat(20_000)],
      [415, '/v1/captchas', '{}', { 'content-type': 'text/plain' }],
      [422, '/v1/captchas', { channel: 'sms', to: '+861' }],
    ]
    for (const [status, path, body, more] of answers) {
      const reply = await postern.post(path, body, from(origin, page.token, more))
      expect({ path, status: reply.status }).toEqual({ path, status })
      expectReadable(reply)
    }
    const body = send()
    for (let count = 0; count < 3; count++) await postern.post('/v1/captchas', body, from(origin))
    const limited = await postern.post('/v1/captchas', body, from(origin))
    expect(limited.status).toBe(429)
    expect(limited.headers.get('retry-after')).toMatch(/^\d+$/)
    expectReadable(limited)
  })

  test.each([
    ['en', /Write it with \+ and the country's code, for example \+86/],
    ['zh', /写成 \+ 加国家\/地区代码的形式，例如 \+86/],
  ])('a number without its country, 422 (%s): what to add', async (language, advice) => {
    const headers = { 'accept-language': language }
    const detailOf = async (to: string, path = '/v1/captchas') => {
      const body = { channel: 'sms', to, ...(path.endsWith('check') ? { code: '0000' } : {}) }
      const reply = await postern.post(path, body, from(origin, page.token, headers))
      expect(reply).toMatchObject({ status: 422, body: { code: 'invalid_recipient' } })
      return reply.body.detail
    }
    expect(await detailOf('13800138000')).toMatch(advice)
    expect(await detailOf('(138) 0013-8000', '/v1/captchas/check')).toMatch(advice)
    for (const to of ['+861380013', '008613800', 'call me']) {
      expect(await detailOf(to)).not.toMatch(advice)
    }
    for (const path of ['/v1/recipients/lookup', '/v1/notices/search']) {
      const { body } = await postern.post(path, { channel: 'sms', to: '13800138000' }, { headers })
      expect(body.detail).toMatch(advice)
    }
  })

  test('a wrong method, 405, can be read', async () => {
    expectReadable(await postern.get('/v1/captchas', { ...from(origin), method: 'PUT' }))
  })
})

describe('a publishable key from elsewhere', () => {
  test.each(otherOrigins)(
    'the origin %j: 403 that its page may read, nothing counted',
    async (other) => {
      const refused = { status: 403, code: 'forbidden' }
      const body = send()
      const reply = await expectRefused(postern, refused, () =>
        postern.post('/v1/captchas', body, from(other)),
      )
      expectReadable(reply, other)
      expect(reply.body).toMatchObject({
        detail: expect.stringMatching(/origin/),
        reason: 'origin',
      })
    },
  )

  test.each(otherOrigins)(
    'the origin %j asks what needs no preflight: the fixed 403 that its page may read, and nothing else',
    async (other) => {
      const found = await postern.get('/v1/captchas', from(other, null))
      const { title, status, detail, code, reason } = found.body
      expect({ title, status, detail, code, reason }).toEqual({
        title: 'Not allowed',
        status: 403,
        detail: 'No key lists this origin.',
        code: 'forbidden',
        reason: 'origin',
      })
      expectReadable(found, other)
      const withSecret = await postern.get('/v1/captchas', from(other, postern.key))
      expect(withSecret.status).toBe(405)
      expect(corsHeaders(withSecret)).toEqual({})
    },
  )

  test('a listed origin, and a caller without one, get 405', async () => {
    const listed = await postern.get('/v1/captchas', from(origin, null))
    expect(listed.status).toBe(405)
    expectReadable(listed)
    const program = await postern.get('/v1/captchas', { key: null })
    expect(program.status).toBe(405)
    expect(corsHeaders(program)).toEqual({})
  })

  test('an origin that only another key lists: 403, also after a preflight that passed', async () => {
    const theirs = 'https://theirs.example'
    await makeKey({ app: 'theirs', origins: [theirs] })
    await eventually(async () => {
      expect((await preflight('/v1/captchas', asking(theirs))).status).toBe(204)
    })
    const reply = await postern.post('/v1/captchas', send(), from(theirs))
    expect(reply.status).toBe(403)
    expectReadable(reply, theirs)
  })
})

describe('keys that are no publishable ones, in a page', () => {
  test('a secret key works, and no answer has CORS headers', async () => {
    const { token } = await makeKey({ kind: 'secret' })
    for (const key of [postern.key, token]) {
      const sent = await postern.post('/v1/captchas', send(), from(origin, key))
      expect(sent.status).toBe(202)
      const bad = await postern.post('/v1/captchas', {}, from(origin, key))
      expect(bad.status).toBe(400)
      for (const reply of [sent, bad]) {
        expect(corsHeaders(reply)).toEqual({})
        expect(reply.headers.get('vary')).toBe(null)
      }
    }
  })

  test('a revoked or mistyped secret key, and an operator’s: 401 or 403, without CORS headers', async () => {
    const secret = await makeKey({ kind: 'secret' })
    await secret.revoke()
    const operator = await makeKey({ kind: 'operator' })
    for (const [key, status] of [
      [secret.token, 401],
      [`${secret.token.slice(0, -1)}.`, 401],
      [operator.token, 403],
    ] as const) {
      const reply = await postern.post('/v1/captchas', send(), from(origin, key))
      expect(reply.status).toBe(status)
      expect(corsHeaders(reply)).toEqual({})
    }
  })

  test.each([
    '/v1/captchas',
    '/v1/captchas/check',
    '/v1/notices',
    '/v1/notices/search',
    '/v1/attempts',
  ])('an operator key at %s: 403', async (path) => {
    const { token } = await makeKey({ kind: 'operator' })
    const refused = { status: 403, code: 'forbidden' }
    await expectRefused(postern, refused, () => postern.post(path, {}, { key: token }))
  })

  test('no key, a made-up or a revoked publishable key from a listed origin: 401 that the page may read', async () => {
    const ended = await makeKey()
    await ended.revoke()
    for (const key of [null, 'wrong', 'ppk_wrong', ended.token]) {
      const reply = await postern.post('/v1/captchas', send(), from(origin, key))
      expect(reply.status).toBe(401)
      expectReadable(reply)
      const elsewhere = await postern.post(
        '/v1/captchas',
        send(),
        from('https://evil.example', key),
      )
      expect(elsewhere.status).toBe(401)
      expect(corsHeaders(elsewhere)).toEqual({})
    }
  })
})

describe('calls that a page may not make', () => {
  test('every keyed call of the document is either for pages or 403', async () => {
    const { body: document } = await postern.get('/openapi.json')
    const open: string[] = []
    for (const [path, operations] of Object.entries(document.paths)) {
      for (const [method, { security }] of Object.entries(
        operations as Record<string, { security: unknown[] }>,
      )) {
        if (security.length === 0) continue
        const reply = await postern.get(path.replace(/\{\w+\}/, 'x'), {
          ...from(origin),
          method: method.toUpperCase(),
        })
        if (reply.status !== 403) open.push(path)
        else expect(reply.body.detail).toBe('A publishable key may only send and check codes.')
      }
    }
    const forPages = ['', '/check', '/{id}/next', '/{id}/way'].map((call) => `/v1/captchas${call}`)
    expect(open.sort()).toEqual([...forPages, '/v1/challenges'])
  })

  test.each([
    ['ip', { ip: '203.0.113.7' }],
    ['ip', { ip: null }],
    ['ip', { ip: '' }],
    ['params', { params: { name: 'Ada' } }],
    ['params', { params: {} }],
    ['params', { params: null }],
    ['template', { template: 'welcome' }],
    ['template', { template: 'nothing' }],
    ['template', { template: 'constructor' }],
    ['template', { template: 7 }],
  ])('a send with %s (%j): 400 that names it', async (path, more) => {
    const reply = await expectRefused(postern, badRequest, () =>
      postern.post('/v1/captchas', { channel: 'sms', to: '+8613800138000', ...more }, from(origin)),
    )
    expect(reply.body.errors).toEqual([{ path, message: expect.any(String) }])
    expectReadable(reply)
  })

  test('several of them are named at once', async () => {
    const body = { ...send(), ip: '203.0.113.7', params: {}, template: 'welcome' }
    const reply = await postern.post('/v1/captchas', body, from(origin))
    const paths = (reply.body.errors as { path: string }[]).map(({ path }) => path)
    expect(paths.sort()).toEqual(['ip', 'params', 'template'])
  })

  test('a check with ip: 400', async () => {
    const body = { ...send(), code: '0000', ip: '203.0.113.7' }
    const reply = await expectRefused(postern, badRequest, () =>
      postern.post('/v1/captchas/check', body, from(origin)),
    )
    expect(reply.body.errors).toMatchObject([{ path: 'ip' }])
  })

  test('a secret key may all of it', async () => {
    const body = { ...send(), ip: '203.0.113.7', params: {}, template: 'greeting' }
    expect((await postern.post('/v1/captchas', body)).status).toBe(202)
  })
})

describe('one app beside another', () => {
  test('their publishable keys share no code, no limit and no Idempotency-Key', async () => {
    const [ours, theirs] = [page.token, (await makeKey({ app: 'rival' })).token]
    const body = send()
    const once = { 'idempotency-key': 'the-same' }
    const first = await postern.post('/v1/captchas', body, from(origin, ours, once))
    const other = await postern.post('/v1/captchas', body, from(origin, theirs, once))
    expect([first.status, other.status]).toEqual([202, 202])
    expect(other.body.id).not.toBe(first.body.id)
    const code = await postern.codeFor(first.body.id)
    const theirCode = await postern.codeFor(other.body.id)
    const check = (token: string, code: string) =>
      postern.post('/v1/captchas/check', { ...body, code }, from(origin, token))
    if (code !== theirCode) expect((await check(theirs, code)).body.code).toBe('code_mismatch')
    expect((await check(ours, code)).status).toBe(200)
    expect((await check(theirs, theirCode)).status).toBe(200)

    for (let count = 0; count < 4; count++)
      await postern.post('/v1/captchas', body, from(origin, theirs))
    expect((await postern.post('/v1/captchas', body, from(origin, theirs))).status).toBe(429)
    expect((await postern.post('/v1/captchas', body, from(origin, ours))).status).toBe(202)
    const read = `/v1/notices/${other.body.id}`
    expect((await postern.get(read)).status).toBe(404)
  })

  test('a page’s Idempotency-Key is not a server’s of the same app, nor another page key’s', async () => {
    const another = await makeKey()
    const body = send()
    const idempotent = { 'idempotency-key': 'of-both' }
    const server = await postern.post('/v1/captchas', body, { headers: idempotent })
    const pages = await postern.post('/v1/captchas', body, from(origin, page.token, idempotent))
    const repeat = await postern.post('/v1/captchas', body, from(origin, page.token, idempotent))
    const others = await postern.post('/v1/captchas', body, from(origin, another.token, idempotent))
    expect([server, pages, repeat, others].map(({ status }) => status)).toEqual(Array(4).fill(202))
    expect(repeat.body).toEqual(pages.body)
    expect(new Set([server, pages, others].map(({ body }) => body.id)).size).toBe(3)
    expectReadable(repeat)
  })
})

describe('the end of a publishable key', () => {
  test('rotated: the old and the new one both work, for the same origins', async () => {
    const { token, rotate } = await makeKey()
    const rotation = await rotate()
    if (rotation.kind !== 'rotated') throw new Error(rotation.kind)
    for (const key of [token, rotation.token]) {
      const sent = await postern.post('/v1/captchas', send(), from(origin, key))
      expect(sent.status).toBe(202)
      expectReadable(sent)
    }
    expect((await postern.post('/v1/notices', {}, { key: rotation.token })).status).toBe(403)
  })
})
