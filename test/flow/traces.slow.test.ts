/** One trace from a caller to the provider and the event, with the SDK loaded as in docs/guides/traces.md. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type CollectedSpan, startCollector, tracesEnv } from '../tools/collector.ts'
import { testDatabase } from '../tools/database.ts'
import { clientOf, noLimits, processEnv, type RequestOptions } from '../tools/postern.ts'
import { startProcess } from '../tools/processes.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { testRedis } from '../tools/redis.ts'
import { eventually } from '../tools/wait.ts'
import { startReceiver } from '../upkeep/receiver.ts'

const secret = 'a secret both sides know'
const collector = await startCollector()
/** Answers calls of the provider and accepts events: both arrive as signed JSON. */
const [carrier, receiver] = [await startReceiver(() => 200), await startReceiver()]
const redis = await testRedis()
const database = await testDatabase()
const policyFile = {
  policies: { ...noLimits, captcha: [{ name: 'recipient', key: '{to}', fixed: '1 per 1h' }] },
  providers: { carrier: { kind: 'webhook', url: carrier.url, secret } },
  routes: { sms: [{ use: ['carrier'] }] },
  events: { url: receiver.url, secret },
}
const key = `psk_${randomBytes(12).toString('hex')}`

function start(role: 'api' | 'worker', browser = {}) {
  const env = processEnv({
    redis,
    database,
    env: {
      BOOTSTRAP_SECRET_KEY: key,
      LOG_LEVEL: 'info',
      ...tracesEnv(collector, `postern-${role}`),
    },
    policyFile: { ...policyFile, browser },
  })
  return startProcess(role, { env })
}

const [api, trusting] = await Promise.all([start('api'), start('api', { traces: true })])

/** The trace of a caller that made one span. */
function callerTrace(flags = '01') {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')]
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-${flags}` } }
}

const number = (index: number) => `+861380013800${index}`
const { post } = clientOf(api.url, key)
const send = (to: string, options: RequestOptions, { post } = clientOf(api.url, key)) =>
  post('/v1/captchas', { channel: 'sms', to }, options)

/** An accepted send and its caller's trace. On a busy machine, servers may answer late: then it is another send. */
async function accepted(
  to: string,
  options: RequestOptions & { flags?: string } = {},
  url = api.url,
) {
  return eventually(async () => {
    const caller = callerTrace(options.flags)
    const { status, body } = await send(to, { ...options, ...caller }, clientOf(url, key))
    return status === 202 && { ...caller, id: body.id as string }
  })
}

// Its job is lost with Redis, so the reconciler queues it again.
const lost = await accepted(number(2))
const queueKeys = () => redis.client.keys('*send-sms*')
await eventually(async () => (await queueKeys()).some((key) => key.endsWith(lost.id)))
await redis.client.del(await queueKeys())
await database.pool.query(`UPDATE notice SET due_at = now() - interval '1 minute'`)

const sent = await accepted(number(1))
const unsampled = await accepted(number(3), { flags: '00' })
const pageKey = await publishableKey(database)
const page = await accepted(number(4), { key: pageKey })
const trusted = await accepted(number(6), { key: pageKey }, trusting.url)
const preflight = await clientOf(trusting.url, key).get('/v1/captchas', {
  method: 'OPTIONS',
  headers: { origin: 'https://shop.example', 'access-control-request-method': 'POST' },
})
const allowed = preflight.headers.get('access-control-allow-headers')
const stranger = callerTrace()
await send(number(5), { ...stranger, key: 'psk_wrong' })
const refused = callerTrace()
await send(number(1), refused)

const worker = await start('worker')
const calls = () => carrier.told.map(({ event, headers }) => ({ ...(event as object), headers }))
// biome-ignore lint/suspicious/noExplicitAny: what the webhook provider sends
const callOf = (id: string): any => calls().find((call: any) => call.noticeId === id)
const wanted = [sent, lost, unsampled, page, trusted].map(({ id }) => id)
await eventually(() => wanted.every((id) => callOf(id)))
const check = callerTrace()
const code = /(?<!\d)\d{4}(?!\d)/.exec(callOf(sent.id).text)?.[0]
await post('/v1/captchas/check', { channel: 'sms', to: number(1), code }, check)
await eventually(() => receiver.told.length === wanted.length + 1)
// Both processes write their last spans before they end.
expect(await Promise.all([api, trusting, worker].map((process) => process.terminate()))).toEqual([
  0, 0, 0,
])

const spansOf = ({ traceId }: { traceId: string }) =>
  collector.spans.filter((span) => span.traceId === traceId)
const eventOf = (id: string, type: string) =>
  receiver.told.find(({ event }) => event.type === type && event.data.id === id)

/** The tree as lines: kind, service, name. */
function treeOf(spans: readonly CollectedSpan[], parent: string | undefined, depth = 0): string[] {
  const kinds = ['', 'internal', 'server', 'client', 'producer', 'consumer']
  return spans
    .filter(({ parentSpanId }) => parentSpanId === parent)
    .toSorted((a, b) => a.name.localeCompare(b.name))
    .flatMap((span) => [
      `${'  '.repeat(depth)}${kinds[span.kind]} ${span.service} ${span.name}`,
      ...treeOf(spans, span.spanId, depth + 1),
    ])
}

const whole = [
  'server postern-api POST /v1/captchas',
  '  internal postern-api limits',
  '  producer postern-api send send-sms',
  '    client postern-worker event notice.sent',
  '    consumer postern-worker process send-sms',
  '      client postern-worker call carrier',
]

test('a send with a secret key: one trace from its caller to the provider and the event', () => {
  expect(treeOf(spansOf(sent), sent.spanId)).toEqual(whole)
  const [call] = spansOf(sent).filter(({ name }) => name === 'call carrier')
  expect(callOf(sent.id).headers.traceparent).toBe(`00-${sent.traceId}-${call?.spanId}-01`)
  const [event] = spansOf(sent).filter(({ name }) => name === 'event notice.sent')
  const told = eventOf(sent.id, 'notice.sent')?.headers.traceparent
  expect(told).toBe(`00-${sent.traceId}-${event?.spanId}-01`)
})

test('the guide shows this tree', () => {
  const guide = readFileSync(new URL('../../docs/guides/traces.md', import.meta.url), 'utf8')
  const lines = guide.split('```\n')[3]?.trimEnd().split('\n') ?? []
  const shown = lines.map((line) => line.replace(/^( *)(.*?) {2,}(\S+) +(\S+)$/, '$1$4 $3 $2'))
  expect(shown.toSorted()).toEqual(whole.toSorted())
})

test('a notice that lost its job: the reconciler puts it back into the same trace', () => {
  expect(worker.output()).toContain('notices put back on the queue')
  expect(treeOf(spansOf(lost), lost.spanId)).toEqual(whole)
})

test('attributes have the names of OpenTelemetry', () => {
  const attributes = (name: string) => spansOf(sent).find((span) => span.name === name)?.attributes
  expect(attributes('POST /v1/captchas')).toMatchObject({
    'http.request.method': 'POST',
    'http.route': '/v1/captchas',
    'http.response.status_code': 202,
    'url.scheme': 'http',
    'postern.notice_id': sent.id,
  })
  expect(attributes('process send-sms')).toEqual({
    'messaging.system.name': 'bullmq',
    'messaging.destination.name': 'send-sms',
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.message.id': sent.id,
    'postern.app': 'default',
    'postern.kind': 'captcha',
    'postern.template': 'captcha',
    'postern.state': 'sent',
  })
  expect(attributes('call carrier')).toEqual({
    'server.service.name': 'carrier',
    'postern.outcome': 'accepted',
  })
})

test('a refusal: its rule is in the span of the limits, and it is no error', () => {
  expect(treeOf(spansOf(refused), refused.spanId)).toEqual(whole.slice(0, 2))
  for (const { status } of spansOf(refused)) expect(status ?? 0).toBe(0)
  const limits = spansOf(refused).find(({ name }) => name === 'limits')
  expect(limits?.attributes).toMatchObject({
    'postern.policy': 'captcha',
    'postern.rule': 'recipient',
  })
})

test('a right code: its event belongs to the trace of the check', () => {
  const lines = treeOf(spansOf(check), check.spanId)
  expect(lines[0]).toBe('server postern-api POST /v1/captchas/check')
  expect(lines).toContain('  client postern-worker event captcha.passed')
})

test('a caller that does not sample: no spans, nothing in the row, no header', async () => {
  expect(spansOf(unsampled)).toEqual([])
  const { rows } = await database.pool.query(
    'SELECT id, trace_parent AS "traceParent" FROM notice WHERE id = ANY($1)',
    [[unsampled.id, sent.id]],
  )
  const parentOf = (id: string) => rows.find((row) => row.id === id).traceParent
  expect(parentOf(unsampled.id)).toBeNull()
  expect(parentOf(sent.id)).toContain(sent.traceId)
  expect(callOf(unsampled.id).headers).not.toHaveProperty('traceparent')
})

test("a page's key: its caller may be anyone, so it begins a trace", () => {
  const [{ traceId } = callerTrace()] = collector.spans.filter(
    ({ attributes }) => attributes['messaging.message.id'] === page.id,
  )
  expect(treeOf(spansOf({ traceId }), undefined)).toEqual(whole)
  expect(collector.text()).not.toContain(page.traceId)
})

test("a page's key, and browser.traces: one trace from the page to the provider", () => {
  expect(treeOf(spansOf(trusted), trusted.spanId)).toEqual(whole)
  expect(allowed).toBe(
    'Authorization, Content-Type, Idempotency-Key, Traceparent, Tracestate, Baggage',
  )
})

test('a wrong key makes no span, with any request', () => {
  expect(collector.text()).not.toContain(stranger.traceId)
})

test('log lines of a trace have its id', () => {
  const lines = [api, worker]
    .flatMap((process) => process.output().split('\n'))
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
  const messages = (traceId: string) =>
    lines.filter(({ trace_id }) => trace_id === traceId).map(({ msg }) => msg)
  // A busy machine's PostgreSQL may take the outcome at a later try, which is a line between these.
  expect(messages(sent.traceId).at(0)).toBe('request')
  expect(messages(sent.traceId).at(-1)).toBe('finished')
  expect(messages(refused.traceId)).toEqual(['request'])
})

test('no recipient, code, key or address is in a span (I14)', () => {
  const secrets = [number(1).slice(1), '1380013800', code as string, '127.0.0.1', pageKey]
  const values = JSON.stringify(collector.spans.map(({ name, attributes }) => [name, attributes]))
  for (const secret of secrets) expect(values).not.toContain(secret)
})
