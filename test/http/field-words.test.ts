/** Refusals speak with one voice: every reason of every call, in each language, from one table. */
import { describe, expect, test } from 'vitest'
import { fill, languages, words } from '../../src/base/words.ts'
import { startPostern } from '../tools/postern.ts'

interface FieldError {
  path: string
  message: string
}

const postern = await startPostern({ roles: { api: true, worker: false } })

const refused = async (path: string, body: unknown, language: string) => {
  const headers = { 'accept-language': language }
  const { status, body: problem } = await postern.post(path, body, { headers })
  return { status, ...problem } as {
    status: number
    title: string
    detail: string
    errors: FieldError[]
  }
}

const strange = [null, 1.5, -1, 2 ** 53, '', 'x'.repeat(5_000), '\u0000', '\ud800', '\u202e']
const values: unknown[] = [...strange, [], [null], ['x', 'x'], { '1': 1 }, { a: [] }]
const many = { fields: {}, params: {} } as Record<string, Record<string, number>>
for (const of of Object.values(many)) for (let n = 0; n < 33; n += 1) of[`a${n}`] = n

/** The fields of every call that has a body. */
async function callsWithFields(): Promise<[string, string[]][]> {
  const { body: document } = await postern.get('/openapi.json')
  type Schema = { $ref?: string; properties?: Record<string, unknown> }
  const found = Object.entries(document.paths as Record<string, Record<string, unknown>>)
  return found.flatMap(([path, { post }]) => {
    const { requestBody } = (post ?? {}) as {
      requestBody?: { content: Record<string, { schema: Schema }> }
    }
    const { $ref = '', ...inline } = requestBody?.content['application/json']?.schema ?? {}
    const named = document.components.schemas[$ref.split('/').at(-1) ?? ''] as Schema | undefined
    const { properties } = named ?? inline
    return properties ? [[path.replace(/\{\w+\}/, 'login'), Object.keys(properties)]] : []
  })
}

test('every schema with every wrong value: the reasons are of the table, in the language of the caller', async () => {
  const calls = await callsWithFields()
  expect(calls.length).toBeGreaterThan(8)
  const seen: Record<string, Set<string>> = {}
  for (const language of languages) seen[language] = new Set()
  for (const [path, names] of calls) {
    const bodies = [
      {},
      { isAdmin: 1 },
      ...values.map((value) => names.map((name) => [name, value])),
    ]
    for (const body of [...bodies, many, []]) {
      for (const language of languages) {
        const given = Array.isArray(body) ? Object.fromEntries(body as [string, unknown][]) : body
        const { status, title, errors } = await refused(path, given, language)
        if (status !== 400) continue
        expect(title).toBe(words[language].problems.invalid_request.title)
        for (const { message } of errors) seen[language]?.add(message)
      }
    }
  }
  const spoken = [...(seen.en ?? [])]
  expect(
    spoken.filter((text) => /invalid|expected|too (big|small)|as a string/i.test(text)),
  ).toEqual([])
  expect(spoken.length).toBeGreaterThan(15)
  expect([...(seen.zh ?? [])].filter((text) => !/\p{Script=Han}/u.test(text))).toEqual([])
  for (const { size } of Object.values(seen)) expect(size).toBe(spoken.length)
})

const to = '+8613800138000'

test.each([
  ['', 'must have 4 digits', '应为 4 位数字'],
  ['12345', 'must have 4 digits', '应为 4 位数字'],
  ['12 34', 'must have 4 digits', '应为 4 位数字'],
  ['ab12', 'must have 4 digits', '应为 4 位数字'],
  ['１２３４', 'must have 4 digits', '应为 4 位数字'],
  [1234, 'must be a string', '应为字符串'],
  [undefined, 'is missing', '缺少此字段'],
])('a code %j: one reason for all that is no code of this service', async (code, en, zh) => {
  const check = { channel: 'sms', to, code }
  for (const [language, message] of Object.entries({ en, zh })) {
    const { errors } = await refused('/v1/captchas/check', check, language)
    expect(errors).toEqual([{ path: 'code', message }])
  }
})

test('absent and wrong values of a list: missing, and the values that are right', async () => {
  const absent = await refused('/v1/captchas', {}, 'en')
  expect(absent.errors).toEqual([
    { path: 'channel', message: 'is missing' },
    { path: 'to', message: 'is missing' },
  ])
  const asked = { channel: 'pigeon', to, params: { a: {}, 'a b': 1 }, colour: 'red' }
  const wrong = await refused('/v1/captchas', asked, 'en')
  expect(wrong.errors).toEqual([
    { path: 'channel', message: 'must be "sms", "email", "voice", "whatsapp", or "telegram"' },
    { path: 'params.a', message: 'must be a string, a number, or a boolean' },
    { path: 'params.a b', message: 'must be a name of letters, digits and _' },
    { path: 'colour', message: 'is not a field of this call' },
  ])
  const inGerman = await refused('/v1/captchas', asked, 'de-AT')
  expect(inGerman.title).toBe('Die Anfrage ist nicht gültig')
  expect(inGerman.errors.map(({ message }) => message)).toEqual([
    'muss "sms", "email", "voice", "whatsapp" oder "telegram" sein',
    'muss ein Text, eine Zahl oder ein Wahrheitswert sein',
    'muss ein Name aus Buchstaben, Ziffern und _ sein',
    'ist kein Feld dieses Aufrufs',
  ])
  const inChinese = await refused('/v1/captchas', asked, 'zh')
  expect(inChinese.errors.map(({ message }) => message)).toEqual([
    '应为 "sms"、"email"、"voice"、"whatsapp"或"telegram"',
    '应为字符串、数值或布尔值',
    '名称只能由字母、数字和 _ 组成，且以字母开头',
    '不是此接口的字段',
  ])
})

test.each([
  ['a\nb', 'controlCharacter'],
  ['a\u0000', 'controlCharacter'],
  ['a\ud800', 'loneSurrogate'],
  ['a\u202e', 'textDirection'],
  ['x'.repeat(1_001), 'tooLong'],
] as const)(
  'a text %j among values of several types: what is wrong with the text',
  async (text, word) => {
    const places = [
      [
        '/v1/notices',
        { channel: 'sms', to, template: 'welcome', params: { name: text } },
        'params.name',
      ],
      ['/v1/limits/login/acquire', { fields: { subject: text } }, 'fields.subject'],
    ] as const
    for (const [path, body, at] of places) {
      for (const language of languages) {
        const { errors } = await refused(path, body, language)
        const [error] = errors
        const n = /\d[\d.,]*/.exec(error?.message ?? '')?.[0] ?? ''
        const message = fill(words[language].fields[word], language, { n })
        expect(errors).toEqual([{ path: at, message }])
      }
    }
  },
)

describe('a recipient that gets no message: what it is, in every language', () => {
  test.each([
    ['sms', '+862161234567', 'type'],
    ['sms', '+442079460000', 'type'],
    ['sms', 'ada@example.com', 'is_address'],
    ['sms', '13800138000', 'no_country'],
    ['sms', '+999123', 'no_number'],
    ['sms', 'hello', 'no_number'],
    ['email', '+8613800138000', 'is_number'],
    ['email', '138 0013 8000', 'is_number'],
    ['email', 'ada@', 'no_address'],
  ] as const)('%s to %s: %s', async (channel, to, name) => {
    for (const language of languages) {
      const { status, title, detail } = await refused('/v1/captchas', { channel, to }, language)
      expect({ status, title, detail }).toEqual({
        status: 422,
        title: words[language].problems.invalid_recipient.title,
        detail: words[language].details[name],
      })
    }
  })
})
