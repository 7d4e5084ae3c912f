/** Every door that a client outside can call, each with a request that it answers well. A new door is a line here. */
import { createHmac, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { signWebhook } from '../../src/crypto/standard-webhooks.ts'
import type { Asked } from '../tools/misbehaving-client.ts'
import { noLimits } from '../tools/postern.ts'

export interface Door {
  readonly at: 'api' | 'admin'
  ask(): Asked
  /** The status of its good answer. */
  readonly status: number
  /** Each answered request makes one notice. */
  readonly isSend?: true
  /** It can be asked again and again, and changes nothing. */
  readonly reads?: true
}

/** Each hook needs a separate one. */
const secretOf = (caller: string) => `a secret that ${caller} knows too`
const service = `VA${'a'.repeat(32)}`

/** For a process that has all doors. */
export const doorsPolicyFile = {
  policies: noLimits,
  code: { own: true },
  providers: {
    sandbox: { kind: 'sandbox' },
    carrier: { kind: 'webhook', url: 'http://127.0.0.1:9', secret: secretOf('carrier') },
  },
  compat: {
    camara: {},
    twilioVerify: { services: { [service]: { app: 'default', scene: 'twilio' } } },
    hooks: {
      supabase: { kind: 'supabase', secret: secretOf('supabase'), app: 'default' },
      zitadel: { kind: 'zitadel', secret: secretOf('zitadel'), app: 'default' },
      logto: { kind: 'logto', secret: secretOf('logto'), app: 'default' },
    },
  },
}

let people = 0
const newPhone = () => `+86138${String(++people).padStart(8, '0')}`
const { version } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { version: string }

/** `session`: the cookie of an operator. */
export function doorsOf(key: string, session: string): Readonly<Record<string, Door>> {
  const json = { 'content-type': 'application/json' }
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const keyed = { ...json, authorization: `Bearer ${key}` }
  const basic = Buffer.from(`AC${'0'.repeat(32)}:${key}`).toString('base64')

  const get = (
    at: Door['at'],
    path: string,
    status = 200,
    headers: Asked['headers'] = {},
  ): Door => ({ at, status, ask: () => ({ method: 'GET', path, headers, body: '' }) })
  const post = (
    path: string,
    bodyOf: () => unknown,
    status = 200,
    headers: Asked['headers'] = keyed,
  ): Door => ({
    at: 'api',
    status,
    ask: () => ({ method: 'POST', path, headers, body: JSON.stringify(bodyOf()) }),
  })
  const signed = (
    path: string,
    status: number,
    bodyOf: () => unknown,
    sign: (text: string) => Asked['headers'],
  ): Door => ({
    at: 'api',
    status,
    ask() {
      const body = JSON.stringify(bodyOf())
      return { method: 'POST', path, headers: { ...json, ...sign(body) }, body }
    },
  })
  const standard = (caller: string) => (text: string) => ({
    ...signWebhook(secretOf(caller), randomUUID(), Date.now(), text),
  })
  const zitadel = (text: string) => {
    const at = Math.floor(Date.now() / 1_000)
    const mac = createHmac('sha256', secretOf('zitadel')).update(`${at}.${text}`).digest('hex')
    return { 'zitadel-signature': `t=${at},v1=${mac}` }
  }
  const isSend = true
  const reads = true

  return {
    'a code': { ...post('/v1/captchas', () => ({ channel: 'sms', to: newPhone() }), 202), isSend },
    'a code without a key': {
      at: 'api',
      status: 401,
      ask: () => ({
        method: 'POST',
        path: '/v1/captchas',
        headers: json,
        body: '{}',
        isUnread: true,
      }),
    },
    'a check': post(
      '/v1/captchas/check',
      () => ({ channel: 'sms', to: newPhone(), code: '000000' }),
      410,
    ),
    'a notice': {
      ...post(
        '/v1/notices',
        () => ({
          channel: 'sms',
          to: newPhone(),
          template: 'welcome',
          locale: 'en',
          params: { name: 'A' },
        }),
        202,
      ),
      isSend,
    },
    'one notice': get('api', `/v1/notices/${randomUUID()}`, 404, keyed),
    'a search': { ...post('/v1/notices/search', () => ({ limit: 100 })), reads },
    'a pass': post('/v1/passes/verify', () => ({ pass: 'x' }), 400),
    'a receipt': signed(
      '/v1/receipts/carrier',
      204,
      () => [{ id: randomUUID(), outcome: 'delivered' }],
      standard('carrier'),
    ),
    'a hook of Supabase': {
      ...signed(
        '/v1/hooks/supabase',
        200,
        () => ({ user: { phone: newPhone().slice(1) }, sms: { otp: '561166' } }),
        standard('supabase'),
      ),
      isSend,
    },
    'a hook of Zitadel': {
      ...signed(
        '/v1/hooks/zitadel',
        200,
        () => ({ contextInfo: { recipientPhoneNumber: newPhone() }, args: { code: '561166' } }),
        zitadel,
      ),
      isSend,
    },
    'a hook of Logto': {
      ...post(
        '/v1/hooks/logto',
        () => ({ to: newPhone().slice(1), type: 'SignIn', payload: { code: '561166' } }),
        200,
        { ...json, authorization: `Bearer ${secretOf('logto')}` },
      ),
      isSend,
    },
    'Twilio Verify': {
      at: 'api',
      status: 201,
      isSend,
      ask: () => ({
        method: 'POST',
        path: `/v2/Services/${service}/Verifications`,
        headers: { ...form, authorization: `Basic ${basic}` },
        body: String(new URLSearchParams({ To: newPhone(), Channel: 'sms' })),
      }),
    },
    CAMARA: {
      ...post('/one-time-password-sms/v1/send-code', () => ({
        phoneNumber: newPhone(),
        message: '{{code}}',
      })),
      isSend,
    },
    'the OpenAPI document': { ...get('api', '/openapi.json'), reads },
    'the page of the API': get('api', '/docs'),
    'its script': { ...get('api', '/docs/swagger-ui-bundle.js'), reads },
    'the code field': { ...get('api', `/browser/postern-code.${version}.js`), reads },
    'the keys of passes': get('api', '/.well-known/jwks.json'),
    'the sandbox': get('api', '/sandbox/messages'),
    'an unknown path': get('api', '/nothing', 404),
    metrics: { ...get('admin', '/metrics'), reads },
    ready: get('admin', '/readyz'),
    live: get('admin', '/livez'),
    useful: get('admin', '/usefulz'),
    'the console': { ...get('admin', '/', 200, { cookie: session }), reads },
    'the list of the console': { ...get('admin', '/notices', 200, { cookie: session }), reads },
    'the sign-in page': get('admin', '/login'),
    'a sign-in': {
      at: 'admin',
      status: 403,
      ask: () => ({ method: 'POST', path: '/login', headers: form, body: 'key=pok_none' }),
    },
  }
}
