/**
 * Other people's packages, unchanged, as clients and as judges: Logto's connectors, Standard Webhooks, Svix, and a parser of
 * structured fields (RFC 9651). They are installed once for this file.
 */
import { execFile } from 'node:child_process'
import { createHmac, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { signWebhook } from '../../src/crypto/standard-webhooks.ts'
import { rateLimitHeaders } from '../../src/limiter/index.ts'
import { installExamples } from '../examples/run-example.ts'
import { listen } from '../tools/listen.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { repositoryRoot } from '../tools/source-files.ts'

const judges = { svix: '2.5.0', 'structured-headers': '2.1.0' }
const folder = await installExamples(['supabase', 'logto'], judges)
const importPackage = (name: string) =>
  import(pathToFileURL(createRequire(join(folder, 'package.json')).resolve(name)).href)

const run = async (file: string, args: readonly string[], env: Record<string, string>) => {
  const options = { cwd: join(file, '..'), env: { ...process.env, ...env } }
  return (await promisify(execFile)('node', [file, ...args], options)).stdout.trim()
}

const secretOf = (seed: string) =>
  `v1,whsec_${Buffer.from(seed.padEnd(32, '.')).toString('base64')}`
const secrets = `${secretOf('new')}|${secretOf('old')}`
const logtoSecret = 'what Logto sends'
const zitadelKeys = { sms: 'a signing key for sms', email: 'a signing key for email' }
const hookOf = (kind: string, secret: string) => ({ kind, secret, app: 'web', scene: 'login' })
const postern = await startPostern({
  policyFile: {
    policies: {
      ...noLimits,
      captcha: [{ name: 'recipient', key: '{channel}:{to}', sliding: '1 per 1h' }],
    },
    compat: {
      camara: {},
      hooks: {
        supabase: hookOf('supabase', secrets),
        logto: hookOf('logto', logtoSecret),
        'zitadel-sms': hookOf('zitadel', zitadelKeys.sms),
        'zitadel-email': hookOf('zitadel', zitadelKeys.email),
      },
    },
  },
})
const urlOf = (hook: string) => `${postern.url}/v1/hooks/${hook}`
let people = 0
const newPhone = () => `86138004${String(++people).padStart(5, '0')}`

test('examples/supabase: a call signed by standardwebhooks is sent, as SMS and as mail; with another secret it is refused', async () => {
  const program = join(folder, 'supabase/call-hook.mjs')
  const call = (to: string, SUPABASE_HOOK_SECRET = secrets) =>
    run(program, [urlOf('supabase'), to, '135790'], { SUPABASE_HOOK_SECRET })
  const phone = newPhone()
  expect(await call(phone)).toBe('200 {}')
  expect((await postern.messageFor(`+${phone}`)).text).toContain('135790')
  expect(await call(phone, secretOf('old'))).toMatch(/^200 \{"error":\{"http_code":429,/)
  expect(await call('ada@example.com')).toBe('200 {}')
  expect((await postern.messageFor('ada@example.com')).text).toContain('135790')
  expect(await call(newPhone(), secretOf('other'))).toMatch(/^401 /)
  const uris = readFileSync(join(folder, 'supabase/config.toml'), 'utf8').match(/\/v1\/hooks\/\w+/g)
  expect(uris).toEqual(['/v1/hooks/supabase', '/v1/hooks/supabase'])
})

test("examples/logto: Logto's connectors send SMS and mail; a refusal reaches Logto", async () => {
  const program = join(folder, 'logto/try.mjs')
  const send = (to: string, LOGTO_HOOK_SECRET = logtoSecret) =>
    run(program, [urlOf('logto'), to, '246802'], { LOGTO_HOOK_SECRET })
  const phone = newPhone()
  expect(await send(phone)).toBe('sent')
  expect((await postern.messageFor(`+${phone}`)).text).toContain('246802')
  expect(await send(phone)).toMatch(/^refused [\s\S]*"code":"limited"/)
  expect(await send('bob@example.com')).toBe('sent')
  expect((await postern.messageFor('bob@example.com')).text).toContain('246802')
  expect(await send(newPhone(), 'another secret')).toMatch(/^refused [\s\S]*"code":"unauthorized"/)
})

test('examples/zitadel: two providers are made and activated, and a call signed with their keys is sent', async () => {
  const calls: string[] = []
  const endpoints: Record<string, string> = {}
  const zitadel = createServer(async (request, response) => {
    const [, , , channel = '', last] = (request.url ?? '').split('/')
    const { endpoint } = (await json(request)) as { endpoint?: string }
    calls.push(`${request.headers.authorization} ${request.url}`)
    if (last === 'http') endpoints[channel] = endpoint ?? ''
    const signingKey = zitadelKeys[channel as 'sms' | 'email']
    response.end(JSON.stringify({ id: `id-${channel}`, signingKey }))
  })
  const ZITADEL_URL = await listen(zitadel)
  const env = { ZITADEL_URL, ZITADEL_TOKEN: 'token', POSTERN_URL: postern.url }
  const program = join(repositoryRoot, 'examples/zitadel/set-up.mjs')
  const printed = await run(program, [], env)
  expect(printed.split('\n')).toEqual([
    // Nothing behind a key: systemd and Docker would read it as a part of the key.
    `ZITADEL_SMS_KEY=${zitadelKeys.sms}`,
    `ZITADEL_EMAIL_KEY=${zitadelKeys.email}`,
    '',
    'node set-up.mjs activate sms=id-sms email=id-email',
  ])
  await run(program, printed.split('node set-up.mjs ')[1]?.split(' ') ?? [], env)
  expect(calls).toEqual([
    'Bearer token /admin/v1/sms/http',
    'Bearer token /admin/v1/email/http',
    'Bearer token /admin/v1/sms/id-sms/_activate',
    'Bearer token /admin/v1/email/id-email/_activate',
  ])
  const phone = `+${newPhone()}`
  const body = JSON.stringify({
    contextInfo: { recipientPhoneNumber: phone },
    args: { code: 'AB12' },
  })
  const at = Math.floor(Date.now() / 1_000)
  const signature = createHmac('sha256', zitadelKeys.sms).update(`${at}.${body}`).digest('hex')
  const headers = { 'zitadel-signature': `t=${at},v1=${signature}` }
  const answer = await fetch(endpoints.sms ?? '', { method: 'POST', headers, body })
  expect(answer.status).toBe(200)
  expect((await postern.messageFor(phone)).text).toContain('AB12')
})

test('examples/camara: sends, validates wrong and right, and gives the error of the definition', async () => {
  const program = join(repositoryRoot, 'examples/camara/client.mjs')
  const call = (...args: string[]) =>
    run(program, args, { API_ROOT: postern.url, SECRET_KEY: postern.key })
  const phone = `+${newPhone()}`
  const id = await call('send', phone)
  expect(id).toMatch(/^[0-9a-f-]{36}$/)
  const code = await postern.codeFor(id)
  expect((await postern.messageFor(id)).text).toBe(`${code} is your code for the shop.`)
  const wrong = code === '0000' ? '1111' : '0000'
  expect(await call('validate', id, wrong)).toMatch(/^ONE_TIME_PASSWORD_SMS\.INVALID_OTP: /)
  expect(await call('validate', id, code)).toBe('verified')
  expect(await call('send', phone)).toMatch(/^TOO_MANY_REQUESTS: /)
})

describe('judges', () => {
  test.each(['standardwebhooks', 'svix'])(
    '%s verifies signatures of Postern, of any body and secret, and none of another body, id or time',
    async (name) => {
      const { Webhook } = await importPackage(name)
      for (let round = 0; round < 50; round++) {
        const secret = `whsec_${randomBytes(24 + round).toString('base64')}`
        const body = JSON.stringify({ text: `号码 👋 ${randomBytes(round).toString('latin1')}` })
        const headers = { ...signWebhook(secret, `id-${round}`, Date.now(), body) }
        const webhook = new Webhook(secret)
        expect(() => webhook.verify(body, headers)).not.toThrow()
        expect(() => webhook.verify(`${body} `, headers)).toThrow()
        expect(() => webhook.verify(body, { ...headers, 'webhook-id': 'other' })).toThrow()
        const later = { 'webhook-timestamp': String(Number(headers['webhook-timestamp']) + 1) }
        expect(() => webhook.verify(body, { ...headers, ...later })).toThrow()
      }
    },
  )

  test('structured-headers, which is strict, reads RateLimit and RateLimit-Policy of every kind of refusal', async () => {
    const { parseList } = await importPackage('structured-headers')
    /** Every item is a string with integers; those that the draft requires are there. */
    const expectList = (field: string | null, required: string[], others: string[]) => {
      const items: [unknown, Map<string, unknown>][] = parseList(field)
      expect(items.length).toBeGreaterThan(0)
      for (const [name, parameters] of items) {
        expect(typeof name).toBe('string')
        expect([...required, ...others]).toEqual(expect.arrayContaining([...parameters.keys()]))
        for (const one of required) expect(parameters.has(one)).toBe(true)
        for (const value of parameters.values()) {
          expect(Number.isSafeInteger(value) && Number(value) >= 0).toBe(true)
        }
      }
    }
    const expectFields = (headers: { get(name: string): string | null }) => {
      expectList(headers.get('RateLimit-Policy'), ['q'], ['w'])
      expectList(headers.get('RateLimit'), ['r'], ['t'])
    }

    const key = '{to}'
    const rules = [
      { key, sliding: ['1 per 1h', '5 per 24h'] },
      { key, sliding: '0 per 1500ms' },
      { key, fixed: '1 per 90s' },
      { key, bucket: { rate: '1 per 7s', burst: 1 } },
      { key, calendar: { limit: 1, cron: '0 0 * * MON-FRI', timezone: 'Asia/Shanghai' } },
      { key, sliding: '1 per 1h', message: '请稍候 "…"' },
    ]
    const named = rules.map((rule, index) => [`p${index}`, [{ name: `rule-${index}`, ...rule }]])
    const captcha = [{ name: 'recipient', key, sliding: '1 per 1h' }]
    const browser = { rules: [{ name: 'page', key: '{ip}', sliding: '1 per 1h' }] }
    const policies = { ...noLimits, captcha, ...Object.fromEntries(named) }
    const limits = await startPostern({ policyFile: { policies, browser } })
    const ofPage = {
      key: await publishableKey(limits.database),
      headers: { origin: 'https://shop.example' },
    }
    const calls = [
      (to: string) => limits.post('/v1/captchas', { channel: 'sms', to }),
      (to: string) => limits.post('/v1/captchas', { channel: 'sms', to }, ofPage),
      ...named.map(([policy]) => (to: string) => {
        return limits.post(`/v1/limits/${policy}/acquire`, { fields: { to } })
      }),
    ]
    for (const [index, call] of calls.entries()) {
      const to = `+8613800138${index}00`
      await call(to)
      const { status, headers } = await call(to)
      expect(status, `call ${index}`).toBe(429)
      expectFields(headers)
    }

    const refusal = {
      admitted: false,
      rule: 'r',
      limit: 3,
      windowMs: 1_500,
      retryAfterMs: 1,
    } as const
    for (const window of ['60s', '0 0 * * *', 'a "quoted\\" window', '窗口', '\n\r\0']) {
      const headers = new Headers(rateLimitHeaders('p', { ...refusal, kind: 'fixed', window }))
      expectFields(headers)
    }
  })
})
