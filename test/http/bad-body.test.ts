import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import { startPostern } from '../tools/postern.ts'
import { badRequest, expectRefused } from './ledger.ts'

const postern = await startPostern()
const to = '+8613800138000'
const good = JSON.stringify({ channel: 'sms', to })

// A code whose tries would show every counted guess.
await postern.post('/v1/captchas', { channel: 'sms', to: '+8613900139000' })

const unsupported = { status: 415, code: 'unsupported_media_type' }
const tooLarge = { status: 413, code: 'payload_too_large' }
const nested = `${'['.repeat(5_000)}${']'.repeat(5_000)}`

type Row = [string, { status: number; code: string }, BodyInit | undefined, Record<string, string>?]
type BodyInit = string | Uint8Array
const rows: Row[] = [
  ['none', badRequest, undefined],
  ['none, though announced', badRequest, undefined, { 'content-type': 'application/json' }],
  ['empty', badRequest, ''],
  ['blank', badRequest, '  \n'],
  ['truncated', badRequest, good.slice(0, -1)],
  ['followed by more', badRequest, `${good}${good}`],
  ['null', badRequest, 'null'],
  ['a number', badRequest, '1'],
  ['a string', badRequest, '"sms"'],
  ['true', badRequest, 'true'],
  ['a list', badRequest, '[]'],
  ['a list with a good body', badRequest, `[${good}]`],
  ['5,000 deep', badRequest, nested],
  [
    '5,000 deep inside params',
    badRequest,
    `{"channel":"sms","to":"${to}","params":{"a":${nested}}}`,
  ],
  ['20 kB', tooLarge, JSON.stringify({ channel: 'sms', to, params: { a: 'x'.repeat(20_000) } })],
  ['a gzip bomb', unsupported, gzipSync(Buffer.alloc(10_000_000)), { 'content-encoding': 'gzip' }],
  ['compressed', unsupported, gzipSync(good), { 'content-encoding': 'gzip' }],
  ['plain text', unsupported, good, { 'content-type': 'text/plain' }],
  ['a form', unsupported, 'channel=sms', { 'content-type': 'application/x-www-form-urlencoded' }],
  ['another JSON type', unsupported, good, { 'content-type': 'application/json-seq' }],
  ['of no type', unsupported, Buffer.from(good), { 'content-type': '' }],
  ['Latin-1', unsupported, good, { 'content-type': 'application/json; charset=iso-8859-1' }],
  [
    'UTF-16',
    unsupported,
    Buffer.from(good, 'utf16le'),
    { 'content-type': 'application/json; charset=utf-16le' },
  ],
  ['UTF-16 said to be UTF-8', badRequest, Buffer.from(good, 'utf16le')],
  ['invalid UTF-8', badRequest, Buffer.from(good.replace('sms', 'sm\xff'), 'latin1')],
  ['overlong UTF-8', badRequest, Buffer.from(good.replace('sms', 'sm\xc0\xb3'), 'latin1')],
  ['with an unknown field', badRequest, good.replace('}', ',"isAdmin":true}')],
  ['with __proto__', badRequest, good.replace('}', ',"__proto__":{"scene":"x"}}')],
  ['with an escaped __proto__', badRequest, good.replace('}', ',"__\\u0070roto__":{"scene":"x"}}')],
  ['with constructor', badRequest, good.replace('}', ',"constructor":{}}')],
  ['with NUL', badRequest, good.replace('+86', '\\u0000+86')],
  ['with a raw NUL', badRequest, good.replace('+86', '\0+86')],
  ['with a lone surrogate', badRequest, good.replace('+86', '\\ud800+86')],
  ['with an over-long recipient', badRequest, good.replace('+86', '+'.padEnd(400, '8'))],
  ['of numbers that are none', badRequest, good.replace('"sms"', 'NaN')],
]

describe.each(['/v1/captchas', '/v1/captchas/check', '/v1/notices', '/v1/notices/search'])(
  '%s',
  (path) => {
    test.each(rows)(
      'a body that is %s is refused and costs nothing',
      async (_, expected, body, headers = {}) => {
        const reply = await expectRefused(postern, expected, () =>
          postern.post(path, body, {
            headers: headers['content-type'] === '' ? { 'content-type': ' ' } : headers,
          }),
        )
        if (expected === badRequest) {
          expect(reply.body.errors.length).toBeGreaterThan(0)
          for (const error of reply.body.errors) {
            expect(error).toEqual({ path: expect.any(String), message: expect.any(String) })
          }
        }
      },
    )
  },
)

describe('inside a good body', () => {
  const sending = { channel: 'sms', to }
  const rows: [string, Record<string, unknown>, string][] = [
    ['unknown channel', { ...sending, channel: 'fax' }, 'channel'],
    ['channel in capitals', { ...sending, channel: 'SMS' }, 'channel'],
    ['channel missing', { to }, 'channel'],
    ['to missing', { channel: 'sms' }, 'to'],
    ['to a number', { ...sending, to: 8613800138000 }, 'to'],
    ['to a list', { ...sending, to: [to] }, 'to'],
    ['to an object', { ...sending, to: { number: to } }, 'to'],
    ['to null', { ...sending, to: null }, 'to'],
    ['to empty', { ...sending, to: '' }, 'to'],
    ['scene with a line break', { ...sending, scene: 'login\n' }, 'scene'],
    ['template unknown', { ...sending, template: 'nothing' }, 'template'],
    ['template with a path', { ...sending, template: '../../etc/passwd' }, 'template'],
    ['template of a prototype', { ...sending, template: 'constructor' }, 'template'],
    [
      'template without the code',
      { ...sending, template: 'welcome', params: { name: 'x' } },
      'template',
    ],
    ['locale a number', { ...sending, locale: 1 }, 'locale'],
    ['locale a list', { ...sending, locale: ['en'] }, 'locale'],
    ['params the template does not use', { ...sending, params: { salt: 'x' } }, 'params.salt'],
    ['params a list', { ...sending, params: ['x'] }, 'params'],
    ['params null', { ...sending, params: null }, 'params'],
    [
      'params with __proto__',
      { ...sending, params: JSON.parse('{"__proto__":"x"}') },
      'params.__proto__',
    ],
    ['params with an object', { ...sending, params: { a: {} } }, 'params.a'],
    ['params with null', { ...sending, params: { a: null } }, 'params.a'],
    ['params with a space in a name', { ...sending, params: { 'a b': 'x' } }, 'params.a b'],
    ['params over-long', { ...sending, params: { a: 'x'.repeat(10_000) } }, 'params.a'],
    ['params with our own code', { ...sending, params: { code: '0000' } }, 'params.code'],
    ['params with our own minutes', { ...sending, params: { minutes: 9 } }, 'params.minutes'],
    ['params with our own validity', { ...sending, params: { validity: 'x' } }, 'params.validity'],
    [
      'too many params',
      {
        ...sending,
        params: Object.fromEntries(Array.from({ length: 33 }, (_, at) => [`a${at}`, 1])),
      },
      'params',
    ],
  ]
  test.each(rows)('%s: 400 that names the field, nothing used', async (_, body, path) => {
    const reply = await expectRefused(postern, badRequest, () => postern.post('/v1/captchas', body))
    expect(reply.body.errors.map((error: { path: string }) => error.path)).toContain(path)
  })

  test('an absent field is called missing, also one with a list of values', async () => {
    const { body } = await postern.post('/v1/captchas', {})
    expect(body.errors).toEqual([
      { path: 'channel', message: 'is missing' },
      { path: 'to', message: 'is missing' },
    ])
  })

  const notice = { channel: 'sms', to, template: 'welcome', params: { name: 'Ada' } }
  const noticeRows: [string, Record<string, unknown>, string][] = [
    ['template missing', { channel: 'sms', to }, 'template'],
    ['a variable missing', { ...notice, params: {} }, 'params.name'],
    ['ttl a number', { ...notice, ttl: 60 }, 'ttl'],
    ['a scene, which notices have not', { ...notice, scene: 'login' }, 'scene'],
  ]
  test.each(noticeRows)(
    'notice with %s: 400 that names the field, nothing used',
    async (_, body, path) => {
      const reply = await expectRefused(postern, badRequest, () =>
        postern.post('/v1/notices', body),
      )
      expect(reply.body.errors.map((error: { path: string }) => error.path)).toContain(path)
    },
  )

  const searchRows: [string, Record<string, unknown>, string][] = [
    ['state unknown', { state: 'lost' }, 'state'],
    ['cursor malformed', { cursor: 'x' }, 'cursor'],
    ['cursor an id alone', { cursor: '019aa000-0000-7000-8000-000000000000' }, 'cursor'],
    ['cursor with SQL', { cursor: "' OR 1=1 --" }, 'cursor'],
  ]
  test.each(searchRows)('search with %s: 400 that names the field', async (_, body, path) => {
    const reply = await expectRefused(postern, badRequest, () =>
      postern.post('/v1/notices/search', body),
    )
    expect(reply.body.errors.map((error: { path: string }) => error.path)).toContain(path)
  })

  test('a duplicate key: the value that is limited is the value that is used', async () => {
    const [first, last] = ['+8615800158000', '+8615900159000']
    const twice = `{"channel":"sms","to":"${first}","to":"${last}"}`
    const reply = await postern.post('/v1/captchas', twice)
    expect(reply.status).toBe(202)
    const code = await postern.codeFor(reply.body.id)
    expect(await postern.messages(first)).toEqual([])
    expect(await postern.messages(last)).toHaveLength(1)
    expect((await postern.post('/v1/captchas', { channel: 'sms', to: last })).status).toBe(429)
    expect((await postern.post('/v1/captchas', { channel: 'sms', to: first })).status).toBe(202)
    const check = { channel: 'sms', to: last, code }
    expect((await postern.post('/v1/captchas/check', check)).status).toBe(200)
  })
})

afterAll(async () => {
  // Everything that these requests could have used up is unused.
  expect((await postern.post('/v1/captchas', JSON.parse(good))).status).toBe(202)
  const guess = { channel: 'sms', to: '+8613900139000' }
  const code = await postern.codeFor(guess.to)
  const wrong = code === '0000' ? '0001' : '0000'
  const { body } = await postern.post('/v1/captchas/check', { ...guess, code: wrong })
  expect(body.triesLeft).toBe(2)
})
