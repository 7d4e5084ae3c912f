/**
 * The façade of Twilio Verify, for a program that sends forms. test/examples/servers.slow.test.ts tests the client
 * itself.
 */
import { randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { rawHttp } from '../http/raw-http.ts'
import { apiKey } from '../tools/api-key.ts'
import { testDatabase } from '../tools/database.ts'
import { findForeign } from '../tools/foreign.ts'
import { noLimits, type PosternOptions, startPostern } from '../tools/postern.ts'
import { testRedis } from '../tools/redis.ts'
import { eventually } from '../tools/wait.ts'
import { openForeignDocument } from './foreign-document.ts'

const [va, vaOfOther, vaLogin] = ['a', 'b', 'c'].map((digit) => `VA${digit.repeat(32)}`) as [
  string,
  string,
  string,
]
const account = `AC${'0'.repeat(32)}`
const services = {
  [va]: { app: 'default', scene: 'signup' },
  [vaLogin]: { app: 'default', scene: 'login' },
  [vaOfOther]: { app: 'other' },
}
const settings = { compat: { twilioVerify: { services } }, code: { length: 6 } }
const on = { redis: await testRedis(), database: await testDatabase() }

/** A SID has the digits of the notice id. */
const noticeIdOf = (sid: string) =>
  sid.slice(2).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')

let people = 0
const newPhone = () => `+86138003${String(++people).padStart(5, '0')}`

async function open(policyFile: Record<string, unknown> = {}, options: PosternOptions = {}) {
  const all = { policies: noLimits, ...settings, ...policyFile }
  const postern = await startPostern({ on, policyFile: all, ...options })
  const basic = (key = postern.key, user = account) =>
    `Basic ${Buffer.from(`${user}:${key}`).toString('base64')}`
  async function call(
    path: string,
    form?: Record<string, string> | string,
    init: RequestInit = {},
  ) {
    const body = form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }
    const headers = { authorization: basic(), ...(init.headers as object) }
    const answer = await fetch(`${postern.url}${path}`, { ...body, ...init, headers })
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, body: text && JSON.parse(text) }
  }
  const of = (service: string) => ({
    send: (form: Record<string, string>) => call(`/v2/Services/${service}/Verifications`, form),
    check: (form: Record<string, string>) =>
      call(`/v2/Services/${service}/VerificationCheck`, form),
    fetch: (sid: string) =>
      call(`/v2/Services/${service}/Verifications/${encodeURIComponent(sid)}`),
    update: (sid: string, Status: string) =>
      call(`/v2/Services/${service}/Verifications/${encodeURIComponent(sid)}`, { Status }),
  })
  return { ...postern, basic, call, of, ...of(va) }
}

const shared = await open()

/** Fewer recipients get messages. */
const narrow = await open({
  recipients: {
    countries: ['CN', 'GB'],
    refuse: ['+8613800399999'],
    mail: { refuse: ['tempmail.test'] },
  },
  routes: { sms: [{ use: ['sandbox'] }], email: [] },
})
const { send, check, fetch: read, update, call, basic } = shared

/** The end of a code is written in the background. A slow machine may need a moment. */
const untilStatus = (name: string, status: string) =>
  eventually(async () => expect((await read(name)).body.status).toBe(status))

/** Returns the fault of an answer. It must have exactly Twilio's members. */
function faultIn({ status, body }: Awaited<ReturnType<typeof call>>) {
  expect(Object.keys(body).sort()).toEqual(['code', 'message', 'more_info', 'status'])
  expect(URL.canParse(body.more_info)).toBe(true)
  expect(body.status).toBe(status)
  return [status, body.code]
}

describe('a verification', () => {
  test('a + that was not escaped, a space when it arrives → sent and checked', async () => {
    const To = newPhone()
    const post = (path: string, form: string) =>
      call(`/v2/Services/${va}/${path}`, undefined, {
        method: 'POST',
        body: form,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      })
    expect(await post('Verifications', `To=${To}&Channel=sms`)).toMatchObject({
      status: 201,
      body: { to: To },
    })
    const code = await shared.codeFor(To)
    const checked = await post('VerificationCheck', `To=${To}&Code=${code}`)
    expect(checked.body).toMatchObject({ status: 'approved', to: To })
  })

  test('sent, checked wrong and right; then there is none, and its status is approved', async () => {
    const To = newPhone()
    const sent = await send({ To, Channel: 'sms', Locale: 'zh' })
    expect(sent).toMatchObject({
      status: 201,
      body: {
        status: 'pending',
        valid: false,
        to: To,
        channel: 'sms',
        service_sid: va,
        account_sid: account,
      },
    })
    const { sid } = sent.body
    const { text, noticeId } = await shared.messageFor(To)
    expect(text).toContain('验证码')
    const id = noticeId.replaceAll('-', '')
    expect(sid).toBe(`VE${id}`)
    const time = sent.body.date_created
    expect(new Date(time).toISOString()).toBe(time)
    const attempt = { attempt_sid: `VL${id}`, channel: 'sms', time }
    expect(sent.body.send_code_attempts).toEqual([attempt])
    const Code = await shared.codeFor(To)
    const wrong = Code === '000000' ? '111111' : '000000'
    const mistyped = await check({ To, Code: wrong })
    expect(mistyped).toMatchObject({ status: 200, body: { status: 'pending', valid: false, sid } })
    expect((await read(sid)).body).toMatchObject({ status: 'pending', sid })
    const right = await check({ VerificationSid: sid, Code })
    expect(right).toMatchObject({ status: 200, body: { status: 'approved', valid: true, sid } })
    expect(faultIn(await check({ To, Code }))).toEqual([404, 20404])
    for (const name of [sid, To]) await untilStatus(name, 'approved')
  })

  test('by mail; the address is masked where the client did not send it', async () => {
    const To = `ada${++people}@example.com`
    const { body } = await send({ To, Channel: 'email' })
    expect(body).toMatchObject({ to: To, channel: 'email' })
    expect((await read(body.sid)).body.to).toBe('a***@example.com')
    const Code = await shared.codeFor(To)
    expect((await check({ To, Code })).body).toMatchObject({ valid: true, channel: 'email' })
  })

  test('a code of the client, with letters; another case is another code', async () => {
    const To = newPhone()
    expect((await send({ To, Channel: 'sms', CustomCode: 'aB3dE' })).status).toBe(201)
    expect((await check({ To, Code: 'AB3DE' })).body.valid).toBe(false)
    expect((await check({ To, Code: 'aB3dE' })).body.valid).toBe(true)
  })

  test('codes of a wrong form are wrong codes: after three of them the next check is 60202', async () => {
    const To = newPhone()
    const { body } = await send({ To, Channel: 'sms', CustomCode: '123456' })
    for (const Code of ['\u0000\n', 'x'.repeat(5_000), '１２３４５６']) {
      expect(await check({ To, Code })).toMatchObject({ status: 200, body: { valid: false } })
    }
    for (const form of [{ To }, { VerificationSid: body.sid }] as Record<string, string>[]) {
      expect(faultIn(await check({ ...form, Code: '123456' }))).toEqual([429, 60202])
    }
    await untilStatus(body.sid, 'max_attempts_reached')
  })

  test.each(['canceled', 'approved'])(
    '%s: no code passes, and the status stays',
    async (Status) => {
      const To = newPhone()
      const { body } = await send({ To, Channel: 'sms', CustomCode: '246810' })
      expect((await update(body.sid, Status)).body).toMatchObject({
        status: Status,
        valid: Status === 'approved',
      })
      expect(faultIn(await check({ To, Code: '246810' }))).toEqual([404, 20404])
      expect((await read(To)).body.status).toBe(Status)
      expect((await update(To, Status)).status).toBe(200)
    },
  )

  test('a code is expired by the time of PostgreSQL, and not by a clock that is a day ahead', async () => {
    const To = newPhone()
    const { body } = await send({ To, Channel: 'sms' })
    const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 90_000_000)
    try {
      expect((await read(body.sid)).body.status).toBe('pending')
      const counted = await call(`/v2/Attempts/Summary?VerifyServiceSid=${va}`)
      expect(counted.body.total_attempts).toBeGreaterThan(0)
    } finally {
      clock.mockRestore()
    }
    await shared.database.pool.query(
      `UPDATE notice SET expires_at = now() - interval '1 s' WHERE recipient = $1`,
      [To],
    )
    expect((await read(body.sid)).body.status).toBe('expired')
  })

  test('fifty at once: one right check is approved, and three wrong ones are compared', async () => {
    const statusesOf = async (Code: string) => {
      const To = newPhone()
      await send({ To, Channel: 'sms', CustomCode: '1234' })
      const answers = await Promise.all(Array.from({ length: 50 }, () => check({ To, Code })))
      return answers.map(({ body }) => body.code ?? body.status)
    }
    const count = (all: unknown[], wanted: unknown) => all.filter((one) => one === wanted).length
    const right = await statusesOf('1234')
    expect([count(right, 'approved'), count(right, 20404)]).toEqual([1, 49])
    const wrong = await statusesOf('4321')
    expect([count(wrong, 'pending'), count(wrong, 60202)]).toEqual([3, 47])
  })

  test('a service is its scene: a code, a SID and a number of one are unknown to another', async () => {
    const To = newPhone()
    const { body } = await send({ To, Channel: 'sms', CustomCode: '1357' })
    const login = shared.of(vaLogin)
    const { sid: VerificationSid } = body
    for (const answer of [
      await login.check({ To, Code: '1357' }),
      await login.check({ VerificationSid, Code: '1357' }),
      await login.check({ VerificationSid, To, Code: '1357' }),
      await login.fetch(VerificationSid),
      await login.fetch(To),
      await login.update(VerificationSid, 'canceled'),
    ]) {
      expect(faultIn(answer)).toEqual([404, 20404])
    }
    expect((await check({ To, Code: '1357' })).body.valid).toBe(true)
  })
})

describe('keys', () => {
  test('no key, garbage, a wrong user, a page’s and an operator’s key → 20003', async () => {
    const newKey = (facts: Parameters<typeof apiKey>[1]) => apiKey(on.database, facts)
    const page = await newKey({ kind: 'publishable', origins: ['https://shop.example'] })
    const operator = await newKey({ app: '*', kind: 'operator' })
    const ended = await newKey({ expiresAt: new Date(Date.now() - 60_000) })
    const headers = [
      undefined,
      'Basic',
      'Basic !!!!',
      'Basic ====',
      `Basic ${'A'.repeat(5_000)}`,
      `Basic ${Buffer.from(account).toString('base64')}`,
      `Basic ${Buffer.from([65, 67, 58, 0, 255, 254]).toString('base64')}`,
      `Bearer ${shared.key}`,
      basic(shared.key, 'XX1'),
      basic(''),
      basic('psk_wrong'),
      ...[page, operator, ended].map((key) => basic(key)),
    ]
    for (const authorization of headers) {
      const answer = await fetch(`${shared.url}/v2/Attempts`, {
        headers: authorization === undefined ? {} : { authorization },
      })
      const body = (await answer.json()) as { code: number }
      expect([answer.status, body.code], authorization).toEqual([401, 20003])
      expect(answer.headers.get('www-authenticate')).toContain('Basic')
    }
  })

  test('any AC user and a secret key of the app; one of another app sees neither service nor attempts', async () => {
    const other = { headers: { authorization: basic(await apiKey(on.database, { app: 'other' })) } }
    const form = { To: newPhone(), Channel: 'sms' }
    const post = (service: string) => call(`/v2/Services/${service}/Verifications`, form, other)
    expect(faultIn(await post(va))).toEqual([404, 20404])
    expect((await post(vaOfOther)).status).toBe(201)
    const { body } = await call('/v2/Attempts', undefined, other)
    expect(body.attempts.map((one: { service_sid: string }) => one.service_sid)).toEqual([
      vaOfOther,
    ])
    const short = { headers: { authorization: basic(shared.key, 'ACtest') } }
    const sent = await call(`/v2/Services/${va}/Verifications`, { ...form, To: newPhone() }, short)
    expect(sent).toMatchObject({ status: 201, body: { account_sid: null } })
    expect(faultIn(await call(`/v2/Services/${vaOfOther}/Verifications`, form))).toEqual([
      404, 20404,
    ])
  })
})

describe('calls and WhatsApp, where routes exist', async () => {
  const ways = await open({
    routes: {
      sms: [{ use: ['sandbox'] }],
      voice: [{ use: ['sandbox'] }],
      whatsapp: [{ use: ['sandbox'] }],
    },
  })

  test.each([
    ['call', 'voice'],
    ['whatsapp', 'whatsapp'],
  ])(
    '%s → sent by the channel %s, and a check by number alone is about the latest code',
    async (Channel, channel) => {
      const To = newPhone()
      expect((await ways.send({ To, Channel: 'sms' })).status).toBe(201)
      const sent = await ways.send({ To, Channel })
      expect(sent).toMatchObject({
        status: 201,
        body: { channel: Channel, send_code_attempts: [{ channel: Channel }] },
      })
      expect((await ways.fetch(To)).body).toMatchObject({ sid: sent.body.sid, channel: Channel })
      const { channel: by, text } = await ways.messageFor(noticeIdOf(sent.body.sid))
      expect(by).toBe(channel)
      const Code = (text ?? '').replace(/, /g, '').match(/\d{6}/)?.[0] ?? ''
      const wrong = await ways.check({ To, Code: '000000' })
      expect(wrong.body).toMatchObject({ sid: sent.body.sid, status: 'pending', channel: Channel })
      const { body } = await ways.check({ To, Code })
      expect(body).toMatchObject({ sid: sent.body.sid, status: 'approved', channel: Channel })
      const attempts = await ways.call(
        `/v2/Attempts?Channel=${Channel}&ChannelData.To=${encodeURIComponent(To)}`,
      )
      expect(attempts.body.attempts).toMatchObject([{ channel: Channel }])
    },
  )

  test('attempts to a number → attempts by all its channels', async () => {
    const To = newPhone()
    for (const Channel of ['sms', 'call', 'whatsapp']) await ways.send({ To, Channel })
    const { body } = await ways.call(`/v2/Attempts?ChannelData.To=${encodeURIComponent(To)}`)
    expect(body.attempts.map(({ channel }: { channel: string }) => channel)).toEqual([
      'whatsapp',
      'call',
      'sms',
    ])
    const none = await ways.call('/v2/Attempts?Channel=pigeon')
    expect(none.body.attempts).toEqual([])
  })
})

describe('refusals', () => {
  const To = '+8613800390000'
  test.each<[string, Record<string, string>, [number, number]]>([
    ['no To', { Channel: 'sms' }, [400, 60200]],
    ['no Channel', { To }, [400, 60200]],
    ['a channel of nothing', { To, Channel: 'pigeon' }, [400, 60200]],
    ['a channel in capitals', { To, Channel: 'SMS' }, [400, 60200]],
    ['a call', { To, Channel: 'call' }, [403, 60223]],
    ['WhatsApp', { To, Channel: 'whatsapp' }, [403, 60223]],
    ['no number', { To: 'ada', Channel: 'sms' }, [400, 60200]],
    ['a number without a country', { To: '13800138000', Channel: 'sms' }, [400, 60200]],
    ['a number by mail', { To, Channel: 'email' }, [400, 60200]],
    ['a landline', { To: '+442071234567', Channel: 'sms' }, [403, 60205]],
    ['a country', { To: '+85291234567', Channel: 'sms' }, [403, 60410]],
    ['a refused number', { To: '+86 138 0039 9999', Channel: 'sms' }, [403, 60410]],
    ['a refused domain', { To: 'a@tempmail.test', Channel: 'email' }, [403, 60410]],
    ['a channel without a route', { To: 'a@example.com', Channel: 'email' }, [403, 60223]],
    ['an empty code', { To, Channel: 'sms', CustomCode: '' }, [400, 60200]],
    ['a short code', { To, Channel: 'sms', CustomCode: '123' }, [400, 60200]],
    ['a code with a space', { To, Channel: 'sms', CustomCode: '12 34' }, [400, 60200]],
    ['no address', { To, Channel: 'sms', DeviceIp: 'nowhere' }, [400, 60200]],
    ['a text of the client', { To, Channel: 'sms', CustomMessage: 'Hi' }, [400, 60200]],
    ['a payment', { To, Channel: 'sms', Amount: '5', Payee: 'Acme' }, [400, 60200]],
  ])('%s', async (_, form, expected) => {
    expect(faultIn(await narrow.send(form))).toEqual(expected)
  })

  test('a check without Code, or without To and SID; a status of nothing', async () => {
    for (const form of [{ To }, { Code: '1234' }, {}]) {
      expect(faultIn(await check(form as Record<string, string>))).toEqual([400, 60200])
    }
    expect(faultIn(await update(`VE${'0'.repeat(32)}`, 'pending'))).toEqual([400, 60200])
  })

  test.each([
    `VE${'0'.repeat(32)}`,
    'VE',
    `VE${'g'.repeat(32)}`,
    `VL${'0'.repeat(32)}`,
    '+8613800397777',
    "'; --",
    'a@b@c',
  ])('a verification %j that is not there → 20404 for read, end and check', async (name) => {
    expect(faultIn(await read(name))).toEqual([404, 20404])
    expect(faultIn(await update(name, 'canceled'))).toEqual([404, 20404])
    expect(faultIn(await check({ VerificationSid: name, Code: '1234' }))).toEqual([404, 20404])
  })

  test('limits: one budget with /v1; the send is 60203 and the check 60202, each with Retry-After', async () => {
    const policies = {
      ...noLimits,
      captcha: [{ name: 'recipient', key: '{app}:{to}:{keyId}:{ip}', sliding: '1 per 1h' }],
      check: [{ name: 'guesses', key: '{app}:{to}', sliding: '1 per 1h' }],
    }
    const limited = await open({ policies })
    const to = newPhone()
    const byHttp = { channel: 'sms', to, scene: 'signup', ip: '192.0.2.7' }
    expect((await limited.post('/v1/captchas', byHttp)).status).toBe(202)
    const sent = await limited.send({ To: to, Channel: 'sms', DeviceIp: '192.0.2.7' })
    expect(faultIn(sent)).toEqual([429, 60203])
    expect(Number(sent.headers.get('retry-after'))).toBeGreaterThan(3_500)
    const elsewhere = { To: to, Channel: 'sms', DeviceIp: '192.0.2.8' }
    expect((await limited.send(elsewhere)).status).toBe(201)
    expect((await limited.check({ To: to, Code: '000000' })).status).toBe(200)
    const checked = await limited.check({ To: to, Code: '000000' })
    expect(faultIn(checked)).toEqual([429, 60202])
    expect(Number(checked.headers.get('retry-after'))).toBeGreaterThan(3_500)
  })
})

describe('paths, methods and bodies', () => {
  const verifications = `/v2/Services/${va}/Verifications`

  test('unknown paths are 20404, other methods 20004 with Allow; paths beside it are not its own', async () => {
    for (const path of [
      '/v2/Services',
      `/v2/Services/${va}`,
      `${verifications}/a/b`,
      '/v2/Attempts/VL1',
    ]) {
      expect(faultIn(await call(path))).toEqual([404, 20404])
    }
    const unknown = await call(`/v2/Services/VA${'d'.repeat(32)}/Verifications`, { To: 'x' })
    expect(faultIn(unknown)).toEqual([404, 20404])
    for (const name of ['__proto__', 'constructor']) {
      const answer = await call(`/v2/Services/${name}/Verifications`, { To: 'x' })
      expect(faultIn(answer)).toEqual([404, 20404])
    }
    for (const [method, path, allow] of [
      ['GET', verifications, 'POST'],
      ['DELETE', `${verifications}/VE1`, 'GET, HEAD, POST'],
      ['OPTIONS', verifications, 'POST'],
      ['PUT', '/v2/Attempts', 'GET, HEAD'],
    ] as const) {
      const answer = await call(path, undefined, { method })
      expect(faultIn(answer)).toEqual([405, 20004])
      expect(answer.headers.get('allow')).toBe(allow)
    }
    expect((await call('/v2/Attempts', undefined, { method: 'HEAD' })).status).toBe(200)
    expect(faultIn(await call('/v2/Services/%zz/Verifications', {}))).toEqual([400, 60200])
    expect((await shared.get('/v2/Elsewhere')).body.code).toBe('not_found')
    expect((await shared.get('/v3/Services')).body.code).toBe('not_found')
  })

  test.each<[string, string, string]>([
    ['40,000 fields', 'application/x-www-form-urlencoded', 'a=1&'.repeat(40_000)],
    ['2,000 short fields', 'application/x-www-form-urlencoded', 'a&'.repeat(2_000)],
    ['To twice', 'application/x-www-form-urlencoded', 'To=%2B8613800138000&To=x&Channel=sms'],
    ['__proto__', 'application/x-www-form-urlencoded', '__proto__=x&constructor=y'],
    ['a broken escape', 'application/x-www-form-urlencoded', 'To=%zz&Channel=sms'],
    ['JSON', 'application/json', '{"To":"+8613800138000","Channel":"sms"}'],
    ['no type', '', 'To=%2B8613800138000&Channel=sms'],
    ['another charset', 'application/x-www-form-urlencoded; charset=utf-16', 'To=1&Channel=sms'],
    ['nothing', 'application/x-www-form-urlencoded', ''],
  ])('a body of %s → 60200, and the next request is answered', async (_, type, body) => {
    const headers = { authorization: basic(), 'content-type': type }
    const answer = await fetch(shared.url + verifications, { method: 'POST', headers, body })
    const { code } = (await answer.json()) as { code: number }
    expect([answer.status, code]).toEqual([400, 60200])
    expect((await call('/v2/Attempts/Summary')).status).toBe(200)
  })

  test('a compressed body is refused; a body is not read before its key is known', async () => {
    const headers = { authorization: basic(), 'content-encoding': 'gzip' }
    const zipped = await call(verifications, { To: 'x' }, { headers })
    expect(faultIn(zipped)).toEqual([400, 60200])
    const head = `POST ${verifications} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 100\r\n\r\n`
    expect(await rawHttp(shared.url, head)).toMatchObject({ status: 401 })
  })
})

test('behind a proxy: the caller that it names, and its scheme in the addresses', async () => {
  const captcha = [{ name: 'ip', key: '{app}:{ip}', sliding: '1 per 1h' }]
  const env = { TRUST_PROXY_HOPS: '1' }
  const behind = await open({ policies: { ...noLimits, captcha } }, { env })
  const send = (headers: Record<string, string>) =>
    behind.call(`/v2/Services/${va}/Verifications`, { To: newPhone(), Channel: 'sms' }, { headers })
  const of = (address: string) => ({ 'x-forwarded-for': address, 'x-forwarded-proto': 'https' })
  const { status, body } = await send(of('192.0.2.1'))
  expect([status, body.url.startsWith('https://')]).toEqual([201, true])
  expect((await send(of('192.0.2.1'))).body.code).toBe(60203)
  expect((await send(of('192.0.2.2'))).status).toBe(201)
  // Not an address, so the address of the connection counts.
  expect((await send(of('unknown'))).status).toBe(201)
  expect((await send(of('unknown'))).body.code).toBe(60203)
})

describe('attempts', () => {
  test('pages by meta.next_page_url, newest first; filters; and the sums', async () => {
    const database = await testDatabase()
    const postern = await open({}, { on: { redis: await testRedis(), database } })
    const sids: string[] = []
    for (let n = 0; n < 5; n++) {
      const To = newPhone()
      const service = postern.of(n === 4 ? vaLogin : va)
      sids.unshift((await service.send({ To, Channel: 'sms', CustomCode: '1234' })).body.sid)
      if (n < 2) await service.check({ To, Code: '1234' })
    }
    const To = `bob${++people}@example.com`
    sids.unshift((await postern.send({ To, Channel: 'email' })).body.sid)
    await postern.post('/v1/captchas', { channel: 'sms', to: newPhone(), scene: 'elsewhere' })
    await postern.post('/v1/notices', {
      channel: 'sms',
      to: newPhone(),
      template: 'notice',
      params: { text: 'x' },
    })

    await eventually(async () => {
      const { body } = await postern.call('/v2/Attempts/Summary')
      expect(body.total_converted).toBe(2)
    })
    interface Attempt {
      verification_sid: string
      conversion_status: string
    }
    const listed: Attempt[] = []
    let next: string | null = `${postern.url}/v2/Attempts?PageSize=2`
    let pages = 0
    while (next) {
      const { body } = await postern.call(next.slice(postern.url.length))
      listed.push(...body.attempts)
      next = body.meta.next_page_url
      expect(body.meta).toMatchObject({ key: 'attempts', page: pages++, page_size: 2 })
    }
    expect(pages).toBe(3)
    // A client that counts pages itself must come to an end.
    const { attempts, meta } = (await postern.call('/v2/Attempts?PageSize=2&Page=1')).body
    expect([attempts, meta.next_page_url]).toEqual([[], null])
    expect(listed.map((one) => one.verification_sid)).toEqual(sids)
    expect(listed.filter((one) => one.conversion_status === 'converted')).toHaveLength(2)

    const count = async (query: string) => {
      const { body } = await postern.call(`/v2/Attempts?${query}`)
      const sums = (await postern.call(`/v2/Attempts/Summary?${query}`)).body
      return [body.attempts.length, sums.total_attempts]
    }
    const now = new Date().toISOString().replace(/\.\d+/, '')
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString()
    expect(await count('Channel=sms')).toEqual([5, 5])
    expect(await count('Channel=call')).toEqual([0, 0])
    expect(await count(`VerifyServiceSid=${vaLogin}`)).toEqual([1, 1])
    expect(await count(`VerifyServiceSid=${vaOfOther}`)).toEqual([0, 0])
    expect(await count('Status=CONVERTED')).toEqual([2, 2])
    expect(await count('Status=unconverted')).toEqual([4, 4])
    expect(await count(`ChannelData.To=${encodeURIComponent(To)}`)).toEqual([1, 1])
    expect(
      await count(`DateCreatedBefore=${tomorrow}&DateCreatedAfter=2020-01-01T00:00:00Z`),
    ).toEqual([6, 6])
    expect(await count(`DateCreatedAfter=${tomorrow}`)).toEqual([0, 0])
    // Without an earlier begin, the sums are of one day.
    const in25Hours = new Date(Date.now() + 90_000_000).toISOString()
    expect(await count(`DateCreatedBefore=${in25Hours}`)).toEqual([6, 0])
    const ofOne = `ChannelData.To=${encodeURIComponent(To)}&DateCreatedBefore=${in25Hours}`
    expect(await count(ofOne)).toEqual([1, 1])
    expect((await count(`DateCreatedBefore=${now}`))[0]).toBeLessThanOrEqual(6)
    // A time without a zone is UTC, wherever this process runs.
    const inMs = (ms: number) => new Date(Date.now() + ms).toISOString().slice(0, 19)
    const { TZ } = process.env
    for (const zone of ['Asia/Shanghai', 'America/New_York']) {
      process.env.TZ = zone
      expect(new Date().getTimezoneOffset(), zone).not.toBe(0)
      expect(await count(`DateCreatedAfter=${inMs(3_600_000)}`)).toEqual([0, 0])
      expect(await count(`DateCreatedAfter=${inMs(-3_600_000)}`)).toEqual([6, 6])
    }
    if (TZ === undefined) delete process.env.TZ
    else process.env.TZ = TZ
    expect(
      (await postern.call(`/v2/Attempts?VerificationSid=${sids[0]}`)).body.attempts,
    ).toHaveLength(1)
    expect((await postern.call('/v2/Attempts/Summary')).body).toMatchObject({
      total_attempts: 6,
      total_converted: 2,
      total_unconverted: 4,
      conversion_rate_percentage: '33.33',
    })
    for (const query of [
      ...[
        'PageSize=0',
        'PageSize=x',
        'Page=1x',
        'PageToken=x',
        'Status=maybe',
        'DateCreatedAfter=soon',
        'DateCreatedAfter=1',
        'Country=CN',
      ],
      ...[
        'Channel=sms&Channel=email',
        'ChannelData.To=nobody',
        `PageToken=${randomBytes(5_000).toString('hex')}`,
      ],
    ]) {
      expect(faultIn(await postern.call(`/v2/Attempts?${query}`)), query).toEqual([400, 60200])
    }
  })
})

test('without a server: 20503 with Retry-After', async () => {
  const env = { DATABASE_URL: 'postgresql://127.0.0.1:1/x' }
  const postern = await open({}, { env, roles: { api: true, worker: false } })
  const answer = await postern.call('/v2/Attempts')
  expect(faultIn(answer)).toEqual([503, 20503])
  expect(answer.headers.get('retry-after')).toBe('2')
})

describe('answers are valid by the document of Twilio', () => {
  const { path, isMissing, note } = findForeign('twilio/twilio_verify_v2.part.json')

  test.skipIf(isMissing)(`every kind of answer, with every member${note}`, async () => {
    const { document, resolve, mistakesOf } = openForeignDocument(path)
    const expectValid = (name: string, body: unknown) => {
      const schema = document.components.schemas[name]
      expect(mistakesOf(schema, body), name).toBe(undefined)
      expect(Object.keys(body as object)).toEqual(
        expect.arrayContaining(Object.keys(schema.properties)),
      )
    }
    const To = newPhone()
    const verification = 'verify.v2.service.verification'
    const checkOf = 'verify.v2.service.verification_check'
    const { body } = await send({ To, Channel: 'sms', CustomCode: '97531' })
    expectValid(verification, body)
    expectValid(checkOf, (await check({ To, Code: '1' })).body)
    expectValid(verification, (await read(body.sid)).body)
    expectValid(checkOf, (await check({ VerificationSid: body.sid, Code: '97531' })).body)
    expectValid(verification, (await read(To)).body)
    const second = (await send({ To: newPhone(), Channel: 'sms' })).body
    expectValid(verification, (await update(second.sid, 'canceled')).body)
    const page = (await call('/v2/Attempts?PageSize=1')).body
    expectValid('verify.v2.verification_attempt', page.attempts[0])
    const listSchema = resolve(
      '#/paths/~1v2~1Attempts/get/responses/200/content/application~1json/schema',
    )
    expect(mistakesOf(listSchema, page)).toBe(undefined)
    expectValid(
      'verify.v2.verification_attempts_summary',
      (await call('/v2/Attempts/Summary')).body,
    )
    expect(() => expectValid(verification, { ...body, sid: 'VE1' })).toThrow()
    expect(() => expectValid(verification, { ...body, date_created: 'now' })).toThrow()
  })
})
