/** Hooks of identity products: the requests of each product, and the answers for it and for strangers. */
import { createHmac, randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { signWebhook } from '../../src/crypto/standard-webhooks.ts'
import { clientOf, noLimits, startPostern } from '../tools/postern.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const secretOf = (seed: string) => `whsec_${Buffer.from(seed.padEnd(32, '.')).toString('base64')}`
const [first, second, third, fourth] = ['first', 'second', 'third', 'fourth'].map(secretOf) as [
  string,
  string,
  string,
  string,
]
const zitadelKey = 'a signing key of Zitadel'
const bearer = 'a token that Logto sends'
const onePerHour = [{ name: 'recipient', key: '{channel}:{to}', sliding: '3 per 1h' }]

const hooks = {
  supabase: { kind: 'supabase', secret: `v1,${first}|v1,${second}`, app: 'web', scene: 'signup' },
  commas: { kind: 'supabase', secret: `v1,${third}, v1,${fourth}`, app: 'web' },
  zitadel: { kind: 'zitadel', secret: zitadelKey, app: 'web', scene: 'login' },
  logto: { kind: 'logto', secret: bearer, app: 'shop', scene: 'login' },
}
const postern = await startPostern({
  policyFile: {
    compat: { hooks },
    policies: { ...noLimits, captcha: onePerHour },
    recipients: { countries: ['CN', 'US'], refuse: ['+8613900139000'] },
  },
})

let people = 0
const newPhone = () => `86138002${String(++people).padStart(5, '0')}`
const newMail = () => `person${++people}@example.com`
const seconds = (agoMs = 0) => Math.floor((Date.now() - agoMs) / 1_000)

type Headers = Record<string, string>
const call = (name: string, body: unknown, headers: Headers, post = postern.post) =>
  post(`/v1/hooks/${name}`, JSON.stringify(body), { key: null, headers })

function supabaseHeaders(
  body: unknown,
  options: { id?: string; secret?: string; agoMs?: number } = {},
) {
  const { id = randomUUID(), secret = first, agoMs = 0 } = options
  return { ...signWebhook(secret, id, Date.now() - agoMs, JSON.stringify(body)) }
}

function zitadelHeaders(body: unknown, { key = zitadelKey, agoMs = 0 } = {}): Headers {
  const at = seconds(agoMs)
  return { 'zitadel-signature': `t=${at},v1=${zitadelSignature(at, JSON.stringify(body), key)}` }
}

const zitadelSignature = (at: number, text: string, key = zitadelKey) =>
  createHmac('sha256', key).update(`${at}.${text}`).digest('hex')

const supabase = (body: unknown, options?: Parameters<typeof supabaseHeaders>[1]) =>
  call('supabase', body, supabaseHeaders(body, options))
const zitadel = (body: unknown, options?: Parameters<typeof zitadelHeaders>[1]) =>
  call('zitadel', body, zitadelHeaders(body, options))
const logto = (body: unknown, authorization = `Bearer ${bearer}`) =>
  call('logto', body, { authorization })

/** Requests of hooks that were refused by load. */
async function shedOf({ adminUrl }: { adminUrl: string }): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  return Number(/^postern_shed_total\{[^}]*route="plugin hooks"[^}]*\} (\S+)/m.exec(text)?.[1])
}

async function textsTo(to: string, count = 1): Promise<string[]> {
  await eventually(async () => expect(await postern.messages(to)).toHaveLength(count))
  return (await postern.messages(to)).map(({ text }) => text)
}

describe('Supabase', () => {
  test('send SMS: its code goes to the number without +, in the app and scene of the hook; the answer is {}', async () => {
    const phone = newPhone()
    const sent = await supabase({ user: { phone, email: '' }, sms: { otp: '561166' } })
    expect(sent).toMatchObject({ status: 200, body: {} })
    expect(sent.headers.get('content-type')).toMatch(/^application\/json\b/)
    expect(await textsTo(`+${phone}`)).toEqual([expect.stringContaining('561166')])
    const { rows } = await postern.database.pool.query(
      'SELECT app, scene, kind FROM notice WHERE recipient = $1',
      [`+${phone}`],
    )
    expect(rows).toEqual([{ app: 'web', scene: 'signup', kind: 'captcha' }])
  })

  test('a number that is changed: the code goes to the new number; the address of the person counts', async () => {
    const [old, now] = [newPhone(), newPhone()]
    const metadata = { uuid: randomUUID(), ip_address: '192.0.2.7' }
    const body = {
      metadata,
      user: { phone: old, new_phone: now },
      sms: { otp: '111222', phone: now },
    }
    expect((await supabase(body)).body).toEqual({})
    await textsTo(`+${now}`)
    expect(await postern.messages(`+${old}`)).toEqual([])
    for (const ip_address of ['unknown', 'fe80::1%eth0'.padEnd(50, '0')]) {
      expect((await supabase({ ...body, metadata: { ip_address } })).body).toEqual({})
    }
  })

  test.each([
    ['a code by SMS', { phone: '' }, { sms: { otp: '561166', phone: '' } }],
    ['a code by mail', { email: null }, { email_data: { token: '561166' } }],
  ])('%s without a recipient → refused with the reason', async (_, user, message) => {
    const { body } = await supabase({ user, ...message })
    expect(body).toMatchObject({
      error: { http_code: 400, message: expect.stringMatching(/ names no recipient\.$/) },
    })
  })

  test('a number that is changed, from a Supabase that does not name it → refused with the reason, and no number gets the code', async () => {
    const [old, now] = [newPhone(), newPhone()]
    const { status, body } = await supabase({
      user: { phone: old, new_phone: now },
      sms: { otp: '111222' },
    })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      error: { http_code: 400, message: expect.stringContaining('does not name the number') },
    })
    // No change, or one to the same number. A code that is replaced before its turn is not sent.
    for (const [index, new_phone] of ['', old, undefined].entries()) {
      const user = { phone: old, new_phone }
      expect((await supabase({ user, sms: { otp: '333444' } })).body).toEqual({})
      expect((await textsTo(`+${old}`, index + 1)).join()).not.toContain('111222')
    }
    expect(await postern.messages(`+${now}`)).toEqual([])
  })

  test.each([
    ['no code', { token: '', token_new: '' }, { new_email: 'new@example.com' }, 'contains no code'],
    ['no new address', { token: '111111' }, {}, 'does not name the new address'],
    ['no new address and two codes', { token: '1111', token_new: '2222' }, {}, 'does not name'],
  ])(
    'a change of the address with %s → refused, and the old address gets nothing',
    async (_, codes, user, reason) => {
      const email = newMail()
      const email_data = { email_action_type: 'email_change', ...codes }
      const { body } = await supabase({ user: { email, ...user }, email_data })
      expect(body).toMatchObject({ error: { message: expect.stringContaining(reason) } })
      expect(await postern.messages(email)).toEqual([])
    },
  )

  test('send email: the token; a changed address gets token_new, or the only token', async () => {
    const [email, now] = [newMail(), newMail()]
    const mail = (email_data: object, user: object = { email }) => supabase({ user, email_data })
    expect((await mail({ token: '305805', email_action_type: 'signup' })).body).toEqual({})
    expect((await textsTo(email))[0]).toContain('305805')
    const change = { email_action_type: 'email_change' }
    const user = { email, new_email: now }
    expect((await mail({ ...change, token: '111111', token_new: '222222' }, user)).body).toEqual({})
    expect((await textsTo(email, 2))[0]).toContain('111111')
    expect((await textsTo(now))[0]).toContain('222222')
    expect((await mail({ ...change, token: '333333', token_new: '' }, user)).body).toEqual({})
    expect((await textsTo(now, 2))[0]).toContain('333333')
  })

  test.each([
    ['the other secret of two', (body: unknown) => supabaseHeaders(body, { secret: second })],
    [
      'two signatures, in the form that Supabase writes',
      (body: unknown) => {
        const headers = supabaseHeaders(body)
        const signature = `v1,d3Jvbmc=, ${headers['webhook-signature']}, v1,d3Jvbmc=`
        return { ...headers, 'webhook-signature': signature }
      },
    ],
    [
      'two signatures, in the form of Standard Webhooks',
      (body: unknown) => {
        const headers = supabaseHeaders(body)
        return { ...headers, 'webhook-signature': `v1,d3Jvbmc= ${headers['webhook-signature']}` }
      },
    ],
    ['a time 240 s ago', (body: unknown) => supabaseHeaders(body, { agoMs: 240_000 })],
  ])('%s → sent', async (_, headersOf) => {
    const body = { user: { phone: newPhone() }, sms: { otp: '561166' } }
    expect(await call('supabase', body, headersOf(body))).toMatchObject({ status: 200, body: {} })
  })

  test('secrets joined by commas: each of them → sent; a call of another hook → 401', async () => {
    for (const [secret, status] of [
      [third, 200],
      [fourth, 200],
      [first, 401],
    ] as const) {
      const body = { user: { phone: newPhone() }, sms: { otp: '561166' } }
      expect((await call('commas', body, supabaseHeaders(body, { secret }))).status).toBe(status)
    }
  })

  test.each([
    ['the number is invalid', { phone: '123' }, 422, 'not a mobile number'],
    ['there is no number', { phone: '' }, 400, 'names no recipient'],
    ['the country gets no messages', { phone: '447400123456' }, 403, 'destination'],
    ['the number is refused', { phone: '8613900139000' }, 403, 'destination'],
  ])('%s → 200 with the error, nothing sent', async (_, user, http_code, words) => {
    const { status, body } = await supabase({ user, sms: { otp: '561166' } })
    expect(status).toBe(200)
    expect(body).toEqual({ error: { http_code, message: expect.stringContaining(words) } })
  })

  test.each(['12', '12345678901', '12 34', '<b>12', '', '{{code}}'])(
    'the code %j → 200 with the error, nothing sent',
    async (otp) => {
      const phone = newPhone()
      const { status, body } = await supabase({ user: { phone }, sms: { otp } })
      expect([status, body.error.http_code]).toEqual([200, 400])
      expect(await postern.messages(`+${phone}`)).toEqual([])
    },
  )

  test('limits: the refusal has the time to wait', async () => {
    const phone = newPhone()
    const send = () => supabase({ user: { phone }, sms: { otp: '561166' } })
    for (let sent = 0; sent < 3; sent++) expect((await send()).body).toEqual({})
    const { status, body } = await send()
    expect(status).toBe(200)
    expect(body.error).toEqual({
      http_code: 429,
      message: expect.stringMatching(/\d+ (seconds|minutes)\.$/),
    })
  })

  test('a message without a code, and one that is not of Supabase → the error, nothing sent', async () => {
    const user = { email: newMail() }
    const warning = {
      user,
      email_data: { token: '', email_action_type: 'password_changed_notification' },
    }
    for (const body of [warning, {}, [], null, 1, { user }, { user, sms: { otp: 1234 } }]) {
      const reply = await supabase(body)
      expect([reply.status, reply.body.error.http_code]).toEqual([200, 400])
      expect(reply.body.error.message).toMatch(
        /^The request is not valid\. This message (contains no code|is not a message of supabase)\.$/,
      )
    }
    expect(await postern.messages(user.email)).toEqual([])
  })

  test('20 concurrent deliveries of one call: one message, and each answer is a success or asks to repeat, which is no error', async () => {
    const phone = newPhone()
    const body = { metadata: { uuid: randomUUID() }, user: { phone }, sms: { otp: '561166' } }
    const shedBefore = await shedOf(postern)
    // A client that repeats nothing.
    const { post } = clientOf(postern.url, postern.key)
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => call('supabase', body, supabaseHeaders(body), post)),
    )
    const toRepeat = replies.filter(({ status }) => status === 503).length
    const shed = (await shedOf(postern)) - shedBefore
    expect(shed).toBeGreaterThan(0)
    // On a busy machine, a server may answer some of them too late.
    expect(shed).toBeLessThanOrEqual(toRepeat)
    for (const { status, body: told, headers } of replies) {
      if (status === 503) expect(headers.get('retry-after')).toBe('2')
      else expect([status, told]).toEqual([200, {}])
    }
    expect((await supabase(body)).body).toEqual({})
    await textsTo(`+${phone}`)
  })

  test('a repeat with the same webhook-id sends once; another code under that id is refused', async () => {
    const phone = newPhone()
    const id = randomUUID()
    const body = { user: { phone }, sms: { otp: '561166' } }
    for (const _ of [1, 2, 3]) expect((await supabase(body, { id })).body).toEqual({})
    await textsTo(`+${phone}`)
    const other = await supabase({ user: { phone }, sms: { otp: '999999' } }, { id })
    expect(other.body.error.http_code).toBe(422)
    await textsTo(`+${phone}`)
  })
})

describe('Zitadel', () => {
  const sms = (phone: string, args: object) => ({
    contextInfo: { eventType: 'user.human.phone.code.added', recipientPhoneNumber: phone },
    templateData: { text: 'Your code is 0M53RF' },
    args,
  })

  test.each([
    ['code', { code: '0M53RF' }],
    ['oTP', { oTP: '12345678' }],
  ])('SMS: args.%s', async (_, args) => {
    const phone = `+${newPhone()}`
    expect(await zitadel(sms(phone, args))).toMatchObject({ status: 200 })
    expect((await textsTo(phone))[0]).toContain(Object.values(args)[0])
  })

  test('mail', async () => {
    const email = newMail()
    const body = { contextInfo: { recipientEmailAddress: email }, args: { code: 'A1B2C3' } }
    expect((await zitadel(body)).status).toBe(200)
    expect((await textsTo(email))[0]).toContain('A1B2C3')
  })

  test('several signatures: one is enough; a repeat of the same call sends once, also with others added', async () => {
    const phone = `+${newPhone()}`
    const body = sms(phone, { code: '0M53RF' })
    const at = seconds()
    const right = zitadelSignature(at, JSON.stringify(body))
    const wrong = zitadelSignature(at, JSON.stringify(body), 'another key')
    for (const signature of [
      `t=${at},v1=${wrong},v1=${right}`,
      `t=${at},v1=${right}`,
      `v1=${right},t=${at}`,
    ]) {
      expect((await call('zitadel', body, { 'zitadel-signature': signature })).status).toBe(200)
    }
    await textsTo(phone)
  })

  test('a repeat that is signed anew sends once; the next code is another message', async () => {
    const phone = `+${newPhone()}`
    for (const agoMs of [9_000, 5_000, 0]) {
      expect((await zitadel(sms(phone, { code: '0M53RF' }), { agoMs })).status).toBe(200)
    }
    await textsTo(phone)
    expect((await zitadel(sms(phone, { code: 'X1Y2Z3' }))).status).toBe(200)
    await textsTo(phone, 2)
  })

  test('a refusal is a problem with its status', async () => {
    const refused = await zitadel(sms('+447400123456', { code: '0M53RF' }))
    expect(refused).toMatchObject({ status: 403, body: { code: 'destination_not_allowed' } })
    const phone = `+${newPhone()}`
    const send = (code: string) => zitadel(sms(phone, { code }))
    for (const code of ['AAAA11', 'AAAA12', 'AAAA13']) expect((await send(code)).status).toBe(200)
    const limited = await send('AAAA14')
    expect(limited).toMatchObject({ status: 429, body: { code: 'limited', rule: 'recipient' } })
    expect(limited.body.type).toMatch(/#quota-exceeded$/)
    expect(limited.headers.get('retry-after')).toMatch(/^\d+$/)
    for (const body of [sms(phone, {}), { contextInfo: {} }, {}, null]) {
      expect(await zitadel(body)).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
    }
  })
})

describe('Logto', () => {
  test('SMS and mail: by the address in `to`; the language of the payload', async () => {
    const [phone, email] = [newPhone(), newMail()]
    const payload = { code: '123456', locale: 'zh-CN' }
    expect((await logto({ to: phone, type: 'SignIn', payload })).status).toBe(200)
    expect((await textsTo(`+${phone}`))[0]).toMatch(
      /\p{Script=Han}.*123456|123456.*\p{Script=Han}/u,
    )
    const mail = { to: email, type: 'Register', payload: { code: '654321' }, ip: '192.0.2.9' }
    expect((await logto(mail)).status).toBe(200)
    expect((await textsTo(email))[0]).toContain('654321')
    const { rows } = await postern.database.pool.query(
      'SELECT DISTINCT app FROM notice WHERE recipient = $1',
      [email],
    )
    expect(rows).toEqual([{ app: 'shop' }])
  })

  test('a message without a code (an invitation) → 400', async () => {
    const body = {
      to: newMail(),
      type: 'OrganizationInvitation',
      payload: { link: 'https://x.test' },
    }
    expect(await logto(body)).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  })
})

describe('strangers', () => {
  const phone = newPhone()
  const ofSupabase = { user: { phone }, sms: { otp: '561166' } }
  const ofZitadel = { contextInfo: { recipientPhoneNumber: `+${phone}` }, args: { code: '561166' } }
  const ofLogto = { to: phone, type: 'SignIn', payload: { code: '561166' } }
  const signed = (more: Headers = {}) => ({ ...supabaseHeaders(ofSupabase), ...more })
  const bySupabase = (options: Parameters<typeof supabaseHeaders>[1]) => () =>
    supabaseHeaders(ofSupabase, options)
  /** `write`: makes the header from the current time and its right signature. */
  const zitadelHead = (write: (at: number, right: string) => string) => () => {
    const at = seconds()
    return { 'zitadel-signature': write(at, zitadelSignature(at, JSON.stringify(ofZitadel))) }
  }
  const right = zitadelHead((at, right) => `t=${at},v1=${right}`)
  const withBearer = (token: string) => () => ({ authorization: `Bearer ${token}` })
  const later = () => signed({ 'webhook-timestamp': String(seconds() + 1) })

  // Headers are made when they are sent, because a busy machine may need longer than a time is valid.
  test.each<[string, string, unknown, () => Headers]>([
    ['no headers', 'supabase', ofSupabase, () => ({})],
    ['another body', 'supabase', { ...ofSupabase, more: 1 }, signed],
    ['another id', 'supabase', ofSupabase, () => signed({ 'webhook-id': 'forged' })],
    ['another time', 'supabase', ofSupabase, later],
    ['another secret', 'supabase', ofSupabase, bySupabase({ secret: secretOf('other') })],
    ['an empty signature', 'supabase', ofSupabase, () => signed({ 'webhook-signature': 'v1,' })],
    [
      'a thousand signatures',
      'supabase',
      ofSupabase,
      () => signed({ 'webhook-signature': 'v1,eA== '.repeat(1_000) }),
    ],
    ['no headers', 'zitadel', ofZitadel, () => ({})],
    ['another body', 'zitadel', { ...ofZitadel, more: 1 }, right],
    ['another time', 'zitadel', ofZitadel, zitadelHead((at, v1) => `t=${at - 1},v1=${v1}`)],
    ['two times', 'zitadel', ofZitadel, zitadelHead((at, v1) => `t=${at},t=${at - 1},v1=${v1}`)],
    ['another key', 'zitadel', ofZitadel, () => zitadelHeaders(ofZitadel, { key: 'another' })],
    ['no time', 'zitadel', ofZitadel, zitadelHead((_, v1) => `v1=${v1}`)],
    ['the version v0', 'zitadel', ofZitadel, zitadelHead((at, v1) => `t=${at},v0=${v1}`)],
    ['no headers', 'logto', ofLogto, () => ({})],
    ['a part of the token', 'logto', ofLogto, withBearer(bearer.slice(0, -1))],
    ['more than the token', 'logto', ofLogto, withBearer(`${bearer}x`)],
    ['a secret key', 'logto', ofLogto, withBearer(postern.key)],
    ['the signature of Supabase', 'zitadel', ofSupabase, signed],
  ])('%s at %s → 401, nothing sent', async (_, name, body, headersOf) => {
    expect(await call(name, body, headersOf())).toMatchObject({
      status: 401,
      body: { code: 'unauthorized' },
    })
    expect(await postern.messages(`+${phone}`)).toEqual([])
  })

  test('a body of 10 MB → 413 before it is parsed, with or without a length', async () => {
    const text = JSON.stringify({ ...ofSupabase, more: 'x'.repeat(10_000_000) })
    const headers = {
      ...signWebhook(first, 'big', Date.now(), text),
      'content-type': 'application/json',
    }
    const url = `${postern.url}/v1/hooks/supabase`
    const stream = () => new Blob([text]).stream()
    for (const body of [text, stream()]) {
      const reply = await fetch(url, {
        method: 'POST',
        headers,
        body,
        duplex: 'half',
      } as RequestInit)
        .then(({ status }) => status)
        // The server closes the connection while bytes still arrive.
        .catch(() => 413)
      expect(reply).toBe(413)
    }
    expect(await postern.messages(`+${phone}`)).toEqual([])
  })

  test('I21: a call without a signature is refused before a byte of its body', async () => {
    const { hostname, port } = new URL(postern.url)
    const socket = closeLater(connect(Number(port), hostname), 'destroy')
    let received = ''
    socket.on('data', (bytes) => {
      received += bytes.toString()
    })
    socket.write('POST /v1/hooks/supabase HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n')
    await eventually(() => expect(received).toMatch(/^HTTP\/1\.1 401 /))
  })

  test('I21: bodies that never end share 16 MB: the oldest get 503, while calls and sends go on', async () => {
    const [length, count] = [49_000, 380]
    const { hostname, port } = new URL(postern.url)
    const head = Object.entries({ host: 'x', ...signed(), 'content-length': length })
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')
    let refused = 0
    const sockets = Array.from({ length: count }, () => {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      socket.on('data', (bytes) => {
        if (bytes.toString().startsWith('HTTP/1.1 503 ')) refused += 1
      })
      socket.write(`POST /v1/hooks/supabase HTTP/1.1\r\n${head}\r\n${'x'.repeat(length - 1)}`)
      return socket
    })
    releaseLater(() => {
      for (const socket of sockets) socket.destroy()
    })
    await eventually(() => expect(refused).toBeGreaterThan(20))
    expect(refused).toBeLessThan(count - 300)
    expect(await shedOf(postern)).toBeGreaterThan(20)
    const sent = await postern.post('/v1/captchas', { channel: 'sms', to: `+${newPhone()}` })
    expect(sent.status).toBe(202)
    const { status } = await supabase({ user: { phone: newPhone() }, sms: { otp: '561166' } })
    expect(status).toBe(200)
  })

  test('without a server: 503, counted as an error and not as load', async () => {
    const away = await startPostern({
      // A key is there already. The start waits for one, and this process cannot make it.
      on: postern,
      policyFile: { compat: { hooks }, policies: noLimits },
      env: { DATABASE_URL: 'postgresql://127.0.0.1:1/x' },
      roles: { api: true, worker: false },
    })
    const reply = await away.post('/v1/hooks/logto', JSON.stringify(ofLogto), {
      key: null,
      headers: { authorization: `Bearer ${bearer}` },
    })
    expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '2'])
    expect(await shedOf(away)).toBe(0)
  })

  test('a hook needs no code.own, and gives keys no right to send codes that callers made', async () => {
    const asked = { channel: 'sms', to: `+${newPhone()}`, code: '561166' }
    expect(await postern.post('/v1/captchas', asked)).toMatchObject({
      status: 400,
      body: { errors: [{ path: 'code' }] },
    })
  })

  test('an unknown name → 404; another method → 405', async () => {
    expect((await call('nobody', ofSupabase, signed())).status).toBe(404)
    const reply = await postern.get('/v1/hooks/supabase', { key: null })
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'POST'])
  })
})
