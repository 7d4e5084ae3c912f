/**
 * Requests of strangers: each kind of request without a valid key, and a load of them at a steady rate. The bench and
 * the tests of I21 use the same kinds.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createKeyToken } from '../src/access/key-token.ts'

export interface FloodResult {
  sent: number
  sentBytes: number
  /** Milliseconds from the due time of a request to the end of its answer, in ascending order. */
  latenciesMs: number[]
  statuses: Map<number, number>
  /** Without an answer. */
  failed: number
}

/**
 * Sends `next()` at a steady rate, each request as soon as it is due and a connection is free. `endsInTime`: requests
 * that could not be sent in these seconds are left out. Otherwise a server that falls behind makes the flood longer.
 */
export async function flood(
  url: string,
  options: {
    perSecond: number
    seconds: number
    connections: number
    next: () => string
    endsInTime?: boolean
  },
): Promise<FloodResult> {
  const { perSecond, seconds, connections, next, endsInTime = false } = options
  const result: FloodResult = {
    sent: 0,
    sentBytes: 0,
    latenciesMs: [],
    statuses: new Map(),
    failed: 0,
  }
  const startMs = performance.now()
  const endMs = startMs + seconds * 1_000
  let count = 0

  async function drive(): Promise<void> {
    let connection: Connection | undefined
    for (;;) {
      const dueMs = startMs + (count++ * 1_000) / perSecond
      if (dueMs >= endMs || (endsInTime && performance.now() >= endMs)) break
      const earlyMs = dueMs - performance.now()
      if (earlyMs > 0) await sleep(earlyMs)
      if (!connection?.isOpen()) connection = await openConnection(url)
      const request = next()
      result.sent += 1
      result.sentBytes += Buffer.byteLength(request)
      const status = await connection.ask(request)
      if (status === undefined) result.failed += 1
      else {
        result.latenciesMs.push(performance.now() - dueMs)
        result.statuses.set(status, (result.statuses.get(status) ?? 0) + 1)
      }
    }
    connection?.close()
  }

  await Promise.all(Array.from({ length: connections }, () => drive()))
  result.latenciesMs.sort((a, b) => a - b)
  return result
}

interface Connection {
  isOpen(): boolean
  /** The status of the answer; undefined without an answer. */
  ask(request: string): Promise<number | undefined>
  close(): void
}

async function openConnection(url: string): Promise<Connection> {
  const { hostname, port } = new URL(url)
  const socket: Socket = connect(Number(port), hostname)
  socket.setNoDelay(true)
  let received = ''
  /** Known from the head. So a large answer is not read again with each of its parts. */
  let answerLength = 0
  let isLast = false
  let answer: ((status: number | undefined) => void) | undefined
  const finish = (status: number | undefined) => {
    answer?.(status)
    answer = undefined
  }
  socket.setEncoding('latin1')
  socket.on('error', () => {})
  socket.on('data', (text: string) => {
    received += text
    if (received.length < answerLength) return
    const headEnd = received.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    const head = received.slice(0, headEnd).toLowerCase()
    const length = Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0)
    answerLength = headEnd + 4 + length
    if (received.length < answerLength) return
    received = received.slice(answerLength)
    answerLength = 0
    isLast ||= head.includes('connection: close')
    finish(Number(head.slice(9, 12)))
    if (isLast) socket.destroy()
  })
  socket.on('close', () => finish(undefined))
  await once(socket, 'connect').catch(() => {})
  return {
    isOpen: () => !isLast && !socket.destroyed,
    ask: (request) =>
      new Promise((resolve) => {
        answer = resolve
        if (socket.destroyed) finish(undefined)
        else socket.write(request, 'latin1')
      }),
    close: () => socket.destroy(),
  }
}

/** The bytes of one request. */
export function wire(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body = '',
): string {
  const lines = Object.entries({
    host: 'localhost',
    ...headers,
    ...(body === '' ? {} : { 'content-length': String(body.length) }),
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}

const json = { 'content-type': 'application/json' }
let sendCount = 0
const body = () =>
  JSON.stringify({
    channel: 'sms',
    to: `+8613${String(800_000_000 + sendCount++)}`,
    scene: 'flood',
  })

/** A valid send, each to a new number. */
export const validSend = (key: string) =>
  wire('POST', '/v1/captchas', { ...json, authorization: `Bearer ${key}` }, body())

const long = 12_000
const padded = (start: string, unit: string, end = '') =>
  start + unit.repeat(Math.floor((long - start.length - end.length) / unit.length)) + end
const fields = (count: number) =>
  Array.from({ length: count }, (_, index) => `f${index}=${index}`).join('&')
const hostile = (name: string, value: string) => () => wire('GET', '/nothing', { [name]: value })
const withKey = (key: () => string) => () =>
  wire('POST', '/v1/captchas', { ...json, authorization: `Bearer ${key()}` }, body())
const webhookHead = () => ({
  'webhook-id': 'msg_1',
  'webhook-timestamp': String(Math.floor(Date.now() / 1_000)),
  'webhook-signature': `v1,${'A'.repeat(43)}=`,
})
const form = { 'content-type': 'application/x-www-form-urlencoded' }
const twilioHead = { ...form, 'x-twilio-signature': 'AAAAAAAAAAAAAAAAAAAAAAAAAAA=' }

/** Providers of the policy file that get the receipts below. */
export const receiptProviders = {
  hook: { kind: 'webhook', url: 'http://127.0.0.1:9', secret: 'a secret of some length' },
  aliyun: {
    kind: 'aliyun',
    accessKeyId: 'id',
    accessKeySecret: 'secret',
    signName: 'Acme',
    templates: {},
    receiptToken: 'a token in the address',
  },
  twilio: {
    kind: 'twilio',
    accountSid: `AC${'0'.repeat(32)}`,
    authToken: 'token',
    from: '+15005550006',
    statusCallback: 'https://postern.example/v1/receipts/twilio',
  },
} as const

/** Façades of the policy file that get the requests below. */
export const floodedFacades = {
  camara: {},
  hooks: {
    supabase: { kind: 'supabase', secret: 'a secret of some length', app: 'web' },
    zitadel: { kind: 'zitadel', secret: 'a secret of zitadel', app: 'web' },
    logto: { kind: 'logto', secret: 'a secret of logto', app: 'web' },
  },
} as const

const zitadelHead = () => ({
  'zitadel-signature': `t=${Math.floor(Date.now() / 1_000)},v1=${'a'.repeat(64)}`,
})
const manySignatures = () => ({
  ...webhookHead(),
  'webhook-signature': padded('', `v1,${'A'.repeat(43)}= `),
})

/** Every kind of request without a valid key. */
export const keylessKinds: Readonly<Record<string, () => string>> = {
  'no key': () => wire('POST', '/v1/captchas', json, body()),
  'a made-up key': withKey(() => `psk_${Math.random()}`),
  'a made-up key of the right shape': withKey(() => `${createKeyToken('secret').slice(0, -1)}_`),
  'a wrong key with its checksum': withKey(() => createKeyToken('secret')),
  'unknown paths': () => wire('GET', `/v1/${Math.random()}`),
  'a path of 12 kB': () => wire('GET', padded('/v1/notices/', 'a')),
  'a path of 12 kB of escapes': () => wire('GET', padded('/v1/notices/', '%41')),
  'a bad escape behind 12 kB': () => wire('GET', padded('/v1/notices/', 'a', '%')),
  'a path of 12 kB of slashes': () => wire('GET', padded('/', '/')),
  'a query of 12 kB': () => wire('GET', padded('/nothing?', 'a=%41&')),
  'preflights of ever new origins': () =>
    wire('OPTIONS', '/v1/captchas', {
      origin: `https://${Math.random()}.example`,
      'access-control-request-method': 'POST',
    }),
  'a code field of another version': () => wire('GET', `/browser/postern-code.${Math.random()}.js`),
  'a wrong method': () => wire('PUT', '/v1/captchas', json, body()),
  'a body of 1 MB to an unknown receipt path': () =>
    wire('POST', '/v1/receipts/nobody', json, 'x'.repeat(1_000_000)),
  'receipts without a signature': () => wire('POST', '/v1/receipts/hook', json, 'x'.repeat(16_000)),
  'forged receipts of 48 kB': () =>
    wire('POST', '/v1/receipts/hook', { ...json, ...webhookHead() }, 'x'.repeat(49_000)),
  'forged receipts of a list': () =>
    wire('POST', '/v1/receipts/hook', { ...json, ...webhookHead() }, `[${'{},'.repeat(5_000)}{}]`),
  'receipts with a wrong token': () =>
    wire('POST', '/v1/receipts/aliyun?token=wrong', json, `[${'{},'.repeat(5_000)}{}]`),
  'forged hooks of 48 kB': () =>
    wire('POST', '/v1/hooks/supabase', { ...json, ...webhookHead() }, '['.repeat(49_000)),
  'forged hooks with 250 signatures': () =>
    wire('POST', '/v1/hooks/supabase', { ...json, ...manySignatures() }, 'x'.repeat(1_000)),
  'forged hooks of 48 kB by another signature': () =>
    wire('POST', '/v1/hooks/zitadel', { ...json, ...zitadelHead() }, '['.repeat(49_000)),
  'hooks with a wrong secret': () =>
    wire('POST', '/v1/hooks/logto', { ...json, authorization: padded('Bearer ', 'a') }, 'x'),
  'hooks without a signature': () => wire('POST', '/v1/hooks/supabase', json, 'x'.repeat(48_000)),
  'a façade without a key': () =>
    wire('POST', '/one-time-password-sms/v1/send-code', json, 'x'.repeat(16_000)),
  'a form of 200 fields': () => wire('POST', '/v1/receipts/twilio', twilioHead, fields(200)),
  'a form of 16 kB': () => wire('POST', '/v1/receipts/twilio', twilioHead, fields(1_550)),
  'a form of 40,000 fields': () => wire('POST', '/v1/receipts/twilio', twilioHead, fields(40_000)),
  'Accept-Language of spaces': hostile('accept-language', padded('zh', ' ', 'x')),
  'Accept-Language of commas': hostile('accept-language', padded('zh', ',', 'x')),
  'Accept-Language of semicolons': hostile('accept-language', padded('zh', ';', 'x')),
  'X-Forwarded-For of commas': hostile('x-forwarded-for', padded('1', ',')),
  'X-Forwarded-For of addresses': hostile('x-forwarded-for', padded('', '1.1.1.1, ')),
  'Authorization of spaces': hostile('authorization', padded('Bearer', ' ', 'x')),
  'Content-Type of spaces': hostile('content-type', padded('application/json', ' ', ';')),
  'Idempotency-Key of spaces': hostile('idempotency-key', padded('x', ' ', 'x')),
  'X-Request-Id of letters': hostile('x-request-id', padded('x', 'x', '!')),
  'Host of dots': () => wire('GET', '/sandbox/messages', { host: padded('127', '.1') }),
  'a thousand headers': () =>
    wire(
      'GET',
      '/nothing',
      Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`a${n}`, 'b'])),
    ),
  'the OpenAPI document': () => wire('GET', '/openapi.json'),
  'the style of the API page': () => wire('GET', '/docs/swagger-ui.css'),
  'the script of the API page': () => wire('GET', '/docs/swagger-ui-bundle.js'),
  'the compressed script of the API page': () =>
    wire('GET', '/docs/swagger-ui-bundle.js', { 'accept-encoding': 'gzip' }),
}
