import { setTimeout as sleep } from 'node:timers/promises'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { type JsonSchema, spoilt, valuesOf } from './schema-values.ts'

const requests = Number(process.env.REQUESTS ?? 20_000)
const seed = Number(process.env.SEED ?? 20_261_122)
const atOnce = 12

interface Operation {
  path: string
  method: string
  body: JsonSchema | undefined
  parameters: { name: string; in: string; schema: JsonSchema }[]
  responses: Record<string, { content?: Record<string, { schema?: JsonSchema }> }>
}

interface Drawn {
  operation: Operation
  url: string
  headers: Record<string, string>
  body: string | undefined
}

test(`${requests} requests drawn from the OpenAPI document: no 5xx, and no answer that it does not promise`, async () => {
  const postern = await startPostern({
    policyFile: {
      // Otherwise each send that is drawn with a code is a 400.
      code: { own: true },
      policies: {
        captcha: [{ name: 'recipient', key: '{app}:{to}', sliding: ['5 per 60s'] }],
        notice: [{ name: 'recipient', key: '{app}:{to}', sliding: ['5 per 60s'] }],
        check: [
          { name: 'guesses', key: '{app}:{to}', lockout: { limit: 9, window: '5s', lock: '1s' } },
        ],
        login: [
          { name: 'tries', key: '{subject}', lockout: { limit: 9, window: '5s', lock: '1s' } },
        ],
      },
    },
  })
  const { body: document } = await postern.get('/openapi.json', { key: null })
  const ajv = new Ajv2020({ strict: false, discriminator: false })
  addFormats.default(ajv)
  ajv.addSchema(document, 'openapi.json')
  const to = [
    '+8613800138000',
    '+4915112345678',
    'ada@example.com',
    '+12025550123',
    'bob@example.org',
  ]
  const sent = await postern.post('/v1/captchas', { channel: 'sms', to: to[0] })
  const known = {
    to,
    template: ['captcha', 'welcome'],
    policy: ['login', 'captcha', 'check'],
    scene: ['default', 'login'],
    code: ['0000', '1234'],
    id: [sent.body.id],
    params: [{}],
    locale: ['en', 'zh'],
    ttl: ['5m'],
    sendAt: [new Date(Date.now() + 60_000).toISOString()],
    ip: ['203.0.113.7', '2001:db8::1'],
    channel: ['sms', 'email'],
    what: [['limits'], ['lock', 'code']],
    reason: ['the person called'],
    fields: [{ to: '+8613800138000', subject: 'ada' }],
    provider: ['sandbox'],
  }
  const resolve = (ref: string) => document.components.schemas[ref.split('/').at(-1) as string]
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    // biome-ignore lint/suspicious/noExplicitAny: the document is what requests are drawn from
    Object.entries(methods as Record<string, any>).map(
      ([method, { requestBody, parameters = [], responses }]): Operation => ({
        path,
        method,
        body: requestBody?.content['application/json'].schema,
        parameters,
        responses,
      }),
    ),
  )
  const page = await publishableKey(postern.database)
  const keys = [postern.key, postern.key, postern.key, page, page, 'psk_wrong', undefined]
  const drawn = fc.oneof(...operations.map((one) => requestOf(one, resolve, known, keys)))

  const statuses = new Set<number>()
  /** What is wrong with the answer to it; undefined for nothing. */
  async function faultOf({ operation, url, headers, body }: Drawn): Promise<string | undefined> {
    const { path, method, responses } = operation
    const reply = await fetch(postern.url + url, {
      method: method.toUpperCase(),
      headers,
      ...(body === undefined ? {} : { body }),
    })
    const text = await reply.text()
    statuses.add(reply.status)
    const promised = responses[reply.status]
    if (reply.status >= 500 || !promised) return `${reply.status} ${text}`
    const type = reply.headers.get('content-type')?.split(';')[0]
    const types = Object.keys(promised.content ?? {})
    if (type ? !types.includes(type) : types.length > 0 || text) return `${reply.status} is ${type}`
    if (!type || path === '/openapi.json') return undefined
    const place = ['paths', path, method, 'responses', reply.status, 'content', type, 'schema']
    const pointer = place
      .map((part) => encodeURIComponent(String(part).replaceAll('~', '~0').replaceAll('/', '~1')))
      .join('/')
    const validate = ajv.getSchema(`openapi.json#/${pointer}`)
    if (!validate) return `${reply.status} has no schema`
    return validate(JSON.parse(text)) ? undefined : `${text} ${JSON.stringify(validate.errors)}`
  }

  const faults: string[] = []
  const sample = fc.sample(drawn, { numRuns: requests, seed })
  await Promise.all(
    Array.from({ length: atOnce }, async (_, lane) => {
      for (let at = lane; at < sample.length; at += atOnce) {
        const request = sample[at] as Drawn
        let fault = await faultOf(request)
        // Other files keep this machine busy: what took nothing because a server was slow is asked again.
        for (let tries = 0; tries < 5 && fault?.startsWith('503'); tries++) {
          await sleep(1_000)
          fault = await faultOf(request)
        }
        if (fault) faults.push(`${wordsOf(request)} → ${fault}`)
      }
    }),
  )
  expect(faults.slice(0, 5)).toEqual([])
  // They got further in than the door.
  expect([...statuses]).toEqual(
    expect.arrayContaining([200, 202, 204, 400, 401, 403, 404, 410, 415, 422]),
  )
}, 600_000)

const wordsOf = ({ operation, ...asked }: Drawn) =>
  `${operation.method} ${JSON.stringify(asked).slice(0, 1_000)}`

function requestOf(
  operation: Operation,
  resolve: (ref: string) => JsonSchema,
  known: Readonly<Record<string, readonly unknown[]>>,
  keys: readonly (string | undefined)[],
): fc.Arbitrary<Drawn> {
  const { path, parameters, body } = operation
  const parameter = ({ name, schema }: Operation['parameters'][number]) =>
    fc
      .oneof(
        fc.constantFrom(...((known[name] ?? ['x']) as string[])),
        valuesOf(schema, resolve, known),
        fc.string({ unit: 'grapheme' }),
      )
      .map((value) => [name, String(value)] as const)
  const of = (place: string) =>
    fc.tuple(...parameters.filter((one) => one.in === place).map(parameter)) as fc.Arbitrary<
      (readonly [string, string])[]
    >
  const text = body
    ? valuesOf(body, resolve, known).chain((value) =>
        fc.oneof(
          { weight: 5, arbitrary: fc.constant(JSON.stringify(value)) },
          { weight: 4, arbitrary: spoilt(value).map((other) => JSON.stringify(other) ?? '') },
          { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
        ),
      )
    : fc.constant(undefined)
  const headers = fc.record(
    {
      'content-type': fc.constantFrom(
        ...Array(8).fill('application/json'),
        'text/plain',
        'application/json; charset=latin1',
      ),
      'idempotency-key': fc.stringMatching(/^[\x21-\x7e]{0,40}$/),
      'accept-language': fc.constantFrom('zh', 'en', 'de;q=1, zh;q=0.5', '*', ';;;'),
      'x-request-id': fc.stringMatching(/^[\x21-\x7e]{1,70}$/),
      origin: fc.constantFrom('https://shop.example', 'null', 'HTTPS://SHOP.EXAMPLE/'),
    },
    { requiredKeys: ['content-type'] },
  )
  return fc
    .tuple(of('path'), of('query'), headers, text, fc.constantFrom(...keys))
    .map(([inPath, inQuery, more, body, key]) => {
      let url = path
      for (const [name, value] of inPath) {
        // A client takes `.` and `..` out of a path, which is another one then.
        const text = /^\.{0,2}$/.test(value) ? 'x' : encodeURIComponent(value.toWellFormed())
        url = url.replace(`{${name}}`, text)
      }
      const query = new URLSearchParams(Object.fromEntries(inQuery))
      return {
        operation,
        url: inQuery.length > 0 ? `${url}?${query}` : url,
        headers: { ...more, ...(key ? { authorization: `Bearer ${key}` } : {}) },
        body,
      }
    })
}
