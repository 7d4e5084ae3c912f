/** Requests to façades in a real process: they have log lines, counts and spans like every other route. */
import { createHmac, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { startCollector, tracesEnv } from '../tools/collector.ts'
import { testDatabase } from '../tools/database.ts'
import { clientOf, noLimits, processEnv } from '../tools/postern.ts'
import { startProcess } from '../tools/processes.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { testRedis } from '../tools/redis.ts'

const va = `VA${'a'.repeat(32)}`
const hookKey = 'a signing key of Zitadel'
const collector = await startCollector()
const redis = await testRedis()
const database = await testDatabase()
const key = `psk_${randomBytes(12).toString('hex')}`
const env = processEnv({
  redis,
  database,
  env: { BOOTSTRAP_SECRET_KEY: key, LOG_LEVEL: 'info', ...tracesEnv(collector, 'postern-api') },
  policyFile: {
    policies: { ...noLimits, captcha: [{ name: 'recipient', key: '{to}', fixed: '1 per 1h' }] },
    compat: {
      camara: {},
      twilioVerify: { services: { [va]: { app: 'default', scene: 'signup' } } },
      hooks: { zitadel: { kind: 'zitadel', secret: hookKey, app: 'default' } },
    },
  },
})
const api = await startProcess('api', { env })
const { post, get } = clientOf(api.url, key)
const basic = (token: string) =>
  `Basic ${Buffer.from(`AC${'0'.repeat(32)}:${token}`).toString('base64')}`

function trace() {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')]
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-01` } }
}

const form = { 'content-type': 'application/x-www-form-urlencoded' }
const verifications = `/v2/Services/${va}/Verifications`
const twilio = (to: string, token: string, headers: Record<string, string>) =>
  post(verifications, String(new URLSearchParams({ To: to, Channel: 'sms' })), {
    key: null,
    headers: { ...form, ...headers, authorization: basic(token) },
  })
const camara = (phoneNumber: string, headers: Record<string, string>) =>
  post('/one-time-password-sms/v1/send-code', { phoneNumber, message: '{{code}}' }, { headers })

const traces = { sent: trace(), refused: trace(), camara: trace(), wrong: trace(), page: trace() }
const requestId = 'client-request-1'
const sent = await twilio('+8613800138001', key, {
  ...traces.sent.headers,
  'x-request-id': requestId,
})
const refused = await twilio('+8613800138001', key, traces.refused.headers)
const other = await camara('+8613800138002', traces.camara.headers)
const wrong = await twilio('+8613800138003', 'psk_wrong', traces.wrong.headers)
const page = await twilio('+8613800138003', await publishableKey(database), traces.page.headers)
const hookBody = JSON.stringify({
  contextInfo: { recipientPhoneNumber: '+8613800138004' },
  args: { code: 'Q7W8E9' },
})
const at = Math.floor(Date.now() / 1_000)
const signature = createHmac('sha256', hookKey).update(`${at}.${hookBody}`).digest('hex')
const hook = await post('/v1/hooks/zitadel', hookBody, {
  key: null,
  headers: { 'zitadel-signature': `t=${at},v1=${signature}` },
})
const unknown = await get('/nothing/here')
await api.terminate()
const lines = api
  .output()
  .split('\n')
  .filter((line) => line.startsWith('{'))
  .map((line) => JSON.parse(line))
const requests = lines.filter(({ msg }) => msg === 'request')
const spansOf = ({ traceId }: { traceId: string }) =>
  collector.spans.filter((span) => span.traceId === traceId)

test('each request has one log line: route, status, app, key, notice, and what refused it', () => {
  const answers = [sent, refused, other, wrong, page, hook, unknown]
  expect(answers.map(({ status }) => status)).toEqual([201, 429, 200, 401, 401, 200, 404])
  expect(requests.map(({ route, status }) => [route, status])).toEqual([
    ['plugin twilioVerify', 201],
    ['plugin twilioVerify', 429],
    ['plugin camara', 200],
    ['plugin twilioVerify', 401],
    ['plugin twilioVerify', 401],
    ['plugin hooks', 200],
    ['unknown', 404],
  ])
  const digits = sent.body.sid.slice(2)
  const noticeId = digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  const caller = { app: 'default', keyId: expect.stringMatching(/./) }
  expect(requests[0]).toMatchObject({ method: 'POST', requestId, noticeId, ...caller })
  expect(requests[0]).not.toHaveProperty('code')
  expect(requests[1]).toMatchObject({
    code: 'limited',
    policy: 'captcha',
    rule: 'recipient',
    ...caller,
  })
  expect(requests[2]).toMatchObject({ noticeId: other.body.authenticationId, ...caller })
  for (const line of [requests[3], requests[4]]) expect(line).not.toHaveProperty('app')
  expect(requests[5]).toMatchObject({ app: 'default', noticeId: expect.stringMatching(/-/) })
  expect(requests[5]).not.toHaveProperty('keyId')
})

test('the answer names its request, with the id of the caller or a new one', () => {
  expect(sent.headers.get('x-request-id')).toBe(requestId)
  const ids = [refused, other, wrong, hook, unknown].map((one) => one.headers.get('x-request-id'))
  expect(ids).toEqual([1, 2, 3, 5, 6].map((index) => requests[index].requestId))
})

test('a request with a secret key is a SERVER span of its caller’s trace, above the limits and the notice', () => {
  const server = spansOf(traces.sent).find(({ kind }) => kind === 2)
  expect(server).toMatchObject({
    name: 'POST plugin twilioVerify',
    parentSpanId: traces.sent.spanId,
    attributes: { 'http.route': 'plugin twilioVerify', 'http.response.status_code': 201 },
  })
  const below = spansOf(traces.sent).filter(({ parentSpanId }) => parentSpanId === server?.spanId)
  expect(below.map(({ name }) => name).toSorted()).toEqual(['limits', 'send send-sms'])
  expect(
    spansOf(traces.refused)
      .map(({ name }) => name)
      .toSorted(),
  ).toEqual(['POST plugin twilioVerify', 'limits'])
  expect(spansOf(traces.camara).map(({ name }) => name)).toContain('POST plugin camara')
  expect(requests.slice(0, 3).map((line) => line.trace_id)).toEqual(
    [traces.sent, traces.refused, traces.camara].map(({ traceId }) => traceId),
  )
})

test('strangers and keys of pages choose no trace; a hook begins one', () => {
  expect(collector.text()).not.toContain(traces.wrong.traceId)
  expect(collector.text()).not.toContain(traces.page.traceId)
  const hooks = collector.spans.filter(({ name }) => name === 'POST plugin hooks')
  expect(hooks).toHaveLength(1)
  expect(hooks[0]).not.toHaveProperty('parentSpanId')
})

test('no recipient, code or secret is in a log line or a span (I14)', () => {
  const text = api.output() + collector.text()
  for (const canary of ['1380013800', 'Q7W8E9', key, hookKey, signature]) {
    expect(text).not.toContain(canary)
  }
})
