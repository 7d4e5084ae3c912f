/**
 * Requests drawn from descriptions: of Postern's calls from its own document, and of the façades from the vendors'
 * documents. `npm run judges` draws 100,000.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compat, facadeCalls } from '../compat/random-facade-calls.ts'
import { startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import {
  type Answer,
  ask,
  type Call,
  type Drawn,
  type Headers,
  requestOf,
  wordsOf,
} from './random-calls.ts'

const requests = Number(process.env.REQUESTS ?? (process.env.JUDGES === 'full' ? 100_000 : 5_000))
const seed = Number(process.env.SEED ?? 20_261_122)
const atOnce = 12
/** Drawn at a time. */
const portion = 5_000

test(`${requests} requests drawn from the OpenAPI documents, of the façades too: no 5xx, and no answer that they do not promise`, async () => {
  const postern = await startPostern({
    policyFile: {
      // Otherwise each drawn send with a code would be a 400.
      code: { own: true },
      compat,
      workflows: { default: ['sms', 'email'] },
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
    workflow: ['default'],
    email: ['ada@example.com'],
    known: ['no.token.here'],
    what: [['limits'], ['lock', 'code']],
    reason: ['the person called'],
    fields: [{ to: '+8613800138000', subject: 'ada' }],
    provider: ['sandbox'],
  }
  const page = await publishableKey(postern.database)
  const keys = [postern.key, postern.key, postern.key, page, page, 'psk_wrong', undefined]
  const proofs = keys.map((key) => (): Headers => (key ? { authorization: `Bearer ${key}` } : {}))
  const resolve = (ref: string) => document.components.schemas[ref.split('/').at(-1) as string]
  const ours = Object.entries(document.paths).flatMap(([path, methods]) =>
    // biome-ignore lint/suspicious/noExplicitAny: the document is what requests are drawn from
    Object.entries(methods as Record<string, any>).map(
      ([method, { requestBody, parameters = [], responses }]): Call => ({
        ...{ path, method, parameters, known, proofs, resolve },
        body: requestBody?.content['application/json'].schema,
        faultIn: ({ status, type, text }) => {
          const promised = responses[status]
          if (!promised) return 'is not in the document'
          const types = Object.keys(promised.content ?? {})
          if (type ? !types.includes(type) : types.length > 0 || text) return `is ${type}`
          if (!type || path === '/openapi.json') return undefined
          return mistakeIn(
            ['paths', path, method, 'responses', status, 'content', type, 'schema'],
            text,
          )
        },
      }),
    ),
  )
  function mistakeIn(place: readonly unknown[], text: string): string | undefined {
    const pointer = place
      .map((part) => encodeURIComponent(String(part).replaceAll('~', '~0').replaceAll('/', '~1')))
      .join('/')
    const validate = ajv.getSchema(`openapi.json#/${pointer}`)
    if (!validate) return 'has no schema'
    return validate(JSON.parse(text)) ? undefined : JSON.stringify(validate.errors)
  }
  const facades = await facadeCalls(postern, (text) =>
    mistakeIn(['components', 'schemas', 'Problem'], text),
  )
  const calls = [...ours, ...facades]
  /** A façade is recognised by the first part of its paths. */
  const doorOf = (call: Call) => (ours.includes(call) ? 'ours' : (call.path.split('/')[1] ?? ''))
  /** Few of these get through, because many fields must fit each other. */
  const isSend = ({ path }: Call) => /(captchas|notices|Verifications)$/.test(path)
  const drawn = fc.oneof(
    ...calls.map((call) => ({ arbitrary: requestOf(call), weight: isSend(call) ? 5 : 1 })),
  )

  const statuses = new Set<string>()
  const faults: string[] = []
  const faultOf = (request: Drawn, answer: Answer) =>
    answer.status >= 500 ? 'is a fault of ours' : request.call.faultIn(answer)
  async function examine(request: Drawn): Promise<void> {
    let answer = await ask(postern.url, request)
    // Other files keep this machine busy. A request that failed because a server was slow is repeated.
    for (let tries = 0; tries < 5 && answer.status === 503; tries++) {
      await sleep(1_000)
      answer = await ask(postern.url, request)
    }
    const { status, text } = answer
    statuses.add(`${doorOf(request.call)} ${status}`)
    const fault = faultOf(request, answer)
    if (fault) faults.push(`${wordsOf(request)} → ${status} ${fault} ${text}`)
  }
  for (let from = 0; from < requests; from += portion) {
    const numRuns = Math.min(portion, requests - from)
    const sample = fc.sample(drawn, { numRuns, seed: seed + from })
    const lanes = Array.from({ length: atOnce }, async (_, lane) => {
      for (let at = lane; at < sample.length; at += atOnce) await examine(sample[at] as Drawn)
    })
    await Promise.all(lanes)
  }
  expect(faults.slice(0, 5)).toEqual([])
  // They were not refused at the first checks.
  const reached: Record<string, number[]> = {
    ours: [200, 202, 204, 400, 401, 403, 404, 410, 415, 422],
    v1: [200, 400, 401, 422, 429],
    v2: [200, 201, 400, 401, 404, 429],
    'one-time-password-sms': [200, 400, 401, 403, 404],
  }
  for (const door of new Set(calls.map(doorOf))) {
    const expected = reached[door]?.map((status) => `${door} ${status}`)
    expect([...statuses], door).toEqual(expect.arrayContaining(expected ?? ['no such door']))
  }
  if (requests > 20_000) console.log(`${requests} requests: ${[...statuses].sort().join(', ')}`)
}, 3_600_000)
