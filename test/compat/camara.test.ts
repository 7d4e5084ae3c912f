/** CAMARA's one-time passwords beyond its own scenarios: texts, limits, keys, and ids of other apps. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { apiKey } from '../tools/api-key.ts'
import { newPhone, otherThan } from '../tools/people.ts'
import { noLimits, type Reply, type RequestOptions, startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'

const lockout = { limit: 3, window: '5m', lock: '15m' }
const postern = await startPostern({
  policyFile: {
    compat: { camara: { maxCodes: 3, window: '24h' } },
    policies: { ...noLimits, check: [{ name: 'guesses', key: '{channel}:{to}:{ip}', lockout }] },
  },
})
const base = '/one-time-password-sms/v1'
const ofProduct = (code: string) => `ONE_TIME_PASSWORD_SMS.${code}`

const sendTo = (
  phoneNumber: string,
  message = '{{code}} is your code',
  options?: RequestOptions,
  on = postern,
) => on.post(`${base}/send-code`, { phoneNumber, message }, options)
const validate = (authenticationId: string, code: string, options?: RequestOptions) =>
  postern.post(`${base}/validate-code`, { authenticationId, code }, options)

async function sent(to = newPhone()): Promise<{ to: string; id: string; code: string }> {
  const { authenticationId: id } = (await sendTo(to)).body
  return { to, id, code: await postern.codeFor(id) }
}

const told = ({ status, body }: Reply) => [status, body.code]

async function failed(to?: string) {
  const made = await sent(to)
  for (const _ of [1, 2]) {
    expect((await validate(made.id, otherThan(made.code))).body.code).toBe(ofProduct('INVALID_OTP'))
  }
  expect((await validate(made.id, otherThan(made.code))).body.code).toBe(
    ofProduct('VERIFICATION_FAILED'),
  )
  return made
}

test.each([
  ['/v1/notices', { message: 'Any text', code: '' }],
  ['/v1/captchas', { message: '{{code}}' }],
])('its template is for the façade alone: %s has no such template', async (path, params) => {
  const body = { channel: 'sms', to: newPhone(), template: 'camara', params }
  expect(await postern.post(path, body)).toMatchObject({
    status: 400,
    body: { errors: [{ path: 'template', message: 'there is no such template' }] },
  })
})

describe('the text', () => {
  test.each([
    ['{{code}} is your code', '#### is your code'],
    ['Code {{code}}\n\n@shop.example #{{code}}', 'Code ####\n\n@shop.example #####'],
    ['Code\r\n{{code}}', 'Code\n####'],
    [
      '{{{code}}} {{#if code}}{{code}}{{/if}} {{../code}} {{minutes}}',
      '{####} {{#if code}}####{{/if}} {{../code}} {{minutes}}',
    ],
    ['<b>{{code}}</b> & "quotes" \\n $& $1 %s', '<b>####</b> & "quotes" \\n $& $1 %s'],
    ['验证码 {{code}} 👋', '验证码 #### 👋'],
    ['100% %0A %25 %250A %{{code}}\n"{{code}}"', '100% %0A %25 %250A %####\n"####"'],
  ])('%j → sent as it is, with the code', async (message, shown) => {
    const to = newPhone()
    const { body } = await sendTo(to, message)
    const { text } = await postern.messageFor(body.authenticationId)
    const code = /\d{4}/.exec(text)?.[0] ?? ''
    expect(text.replaceAll(code, '####')).toBe(shown)
    expect((await validate(body.authenticationId, code)).status).toBe(204)
  })

  test.each([
    ['{{ code }} is your code'],
    ['code'],
    [''],
    [`{{code}}${'x'.repeat(153)}`],
    ['{{code}}\u0000'],
    ['{{code}}\u001b[31m'],
    ['{{code}}\u202e'],
    ['{{code}}\ud800'],
    [1],
    [null],
    [['{{code}}']],
  ])('%j → 400, nothing sent', async (message) => {
    const to = newPhone()
    expect(told(await sendTo(to, message as string))).toEqual([400, 'INVALID_ARGUMENT'])
    expect(await postern.messages(to)).toEqual([])
  })

  test('160 characters, each of two units → sent', async () => {
    expect((await sendTo(newPhone(), `{{code}}${'👋'.repeat(152)}`)).status).toBe(200)
  })
})

describe('limits', () => {
  test('20 concurrent sends to one number: as many codes as maxCodes, the others are MAX_OTP_CODES_EXCEEDED', async () => {
    const to = newPhone()
    const replies = await Promise.all(Array.from({ length: 20 }, () => sendTo(to)))
    const answers = replies.map(told)
    expect(answers.filter(([status]) => status === 200)).toHaveLength(3)
    const refused = [403, ofProduct('MAX_OTP_CODES_EXCEEDED')]
    expect(answers.filter(([status]) => status !== 200)).toEqual(Array(17).fill(refused))
    expect((await sendTo(newPhone())).status).toBe(200)
  })

  test('another rule → 429 TOO_MANY_REQUESTS with Retry-After, and what it refuses takes no use', async () => {
    const rule = { name: 'recipient', key: '{channel}:{to}:{scene}', sliding: '1 per 1h' }
    const other = await startPostern({
      policyFile: {
        compat: { camara: { maxCodes: 2, window: '24h' } },
        policies: { ...noLimits, captcha: [rule] },
      },
    })
    const to = newPhone()
    const send = () => sendTo(to, undefined, {}, other)
    expect((await send()).status).toBe(200)
    for (const _ of [1, 2, 3]) {
      const { status, body, headers } = await send()
      expect([status, body.code]).toEqual([429, 'TOO_MANY_REQUESTS'])
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(3_500)
    }
    const { body: found } = await other.post('/v1/recipients/lookup', { channel: 'sms', to })
    const used = found.limits.find(({ rule }: { rule: string }) => rule === 'camara-max-codes')
    expect(used).toMatchObject({ policy: 'camara', used: 1, limit: 2 })
    const reset = { channel: 'sms', to, what: ['limits'], reason: 'asked by phone' }
    expect((await other.post('/v1/recipients/reset', reset)).status).toBe(204)
    expect((await send()).status).toBe(200)
  })
})

describe('ids', () => {
  test('out of tries: the right code and every later call are VERIFICATION_FAILED, through lock, new code and expiry', async () => {
    const { to, id, code } = await failed()
    const expectFailed = async () => {
      for (const typed of [code, otherThan(code), 'ABC123']) {
        expect(told(await validate(id, typed))).toEqual([400, ofProduct('VERIFICATION_FAILED')])
      }
    }
    await expectFailed()
    const { id: newer, code: newCode } = await sent(to)
    await expectFailed()
    expect(told(await validate(newer, newCode))).toEqual([429, 'TOO_MANY_REQUESTS'])
    const { client, prefix } = postern.redis
    for (const key of await client.keys(`${prefix}*`)) await client.del(key)
    await expectFailed()
  })

  test('a lock hides the code until it expires by the time of PostgreSQL, and not by a clock that is an hour ahead', async () => {
    const { to } = await failed()
    const { id, code } = await sent(to)
    const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_600_000)
    const locked = await validate(id, code).finally(() => clock.mockRestore())
    expect(locked.body.code).toBe('TOO_MANY_REQUESTS')
    const sql = `UPDATE notice SET expires_at = now() - interval '1 s' WHERE id = $1`
    await postern.database.pool.query(sql, [id])
    expect((await validate(id, code)).body.code).toBe(ofProduct('VERIFICATION_EXPIRED'))
  })

  test('a wrong code of any form counts as a try', async () => {
    const { id } = await sent()
    for (const [typed, told] of [
      ['ABCDEFGHIJ', 'INVALID_OTP'],
      ['１２３４', 'INVALID_OTP'],
      ["' OR 1=1", 'VERIFICATION_FAILED'],
    ] as const) {
      expect((await validate(id, typed)).body.code).toBe(ofProduct(told))
    }
  })

  test('50 concurrent right codes: one 204, the others refused', async () => {
    const { id, code } = await sent()
    const replies = await Promise.all(Array.from({ length: 50 }, () => validate(id, code)))
    expect(replies.filter(({ status }) => status === 204)).toHaveLength(1)
    const refused = replies.filter(({ status }) => status !== 204 && status !== 503)
    const others = refused.map(({ body }) => body.code)
    // Guesses are counted before they are compared, so the lock can be full while the right one is under way. A busy
    // machine answers some with 503.
    expect([ofProduct('VERIFICATION_EXPIRED'), 'TOO_MANY_REQUESTS']).toEqual(
      expect.arrayContaining([...new Set(others)]),
    )
  })

  test('of another app, of a code sent by /v1, of a notice, made up → 404, and they use up nothing', async () => {
    const { id, code } = await sent()
    const key = await apiKey(postern.database, { app: 'other' })
    const byV1 = await postern.post('/v1/captchas', {
      channel: 'sms',
      to: newPhone(),
      scene: 'login',
    })
    const asked = { channel: 'sms', to: newPhone(), template: 'welcome', params: { name: 'Ada' } }
    const notice = await postern.post('/v1/notices', asked)
    expect(notice.status).toBe(202)
    const refused = [
      ...(await Promise.all(Array.from({ length: 5 }, () => validate(id, code, { key })))),
      await validate(byV1.body.id, await postern.codeFor(byV1.body.id)),
      await validate(notice.body.id, '1234'),
      ...(await Promise.all(
        [randomUUID(), 'x', '../..', "'; --"].map((made) => validate(made, '1234')),
      )),
    ]
    for (const reply of refused) expect(told(reply)).toEqual([404, 'NOT_FOUND'])
    expect((await validate(id, code)).status).toBe(204)
  })

  test('a notice whose recipient is erased is an old id, not an unknown one', async () => {
    const { id, code } = await sent()
    await eventually(async () =>
      expect((await postern.get(`/v1/notices/${id}`)).body.state).toBe('sent'),
    )
    await postern.database.pool.query('UPDATE notice SET recipient = NULL WHERE id = $1', [id])
    expect((await validate(id, code)).body.code).toBe(ofProduct('VERIFICATION_EXPIRED'))
  })
})

describe('callers', () => {
  test.each([
    ['publishable', { origins: ['https://shop.example'] }],
    ['operator', {}],
  ] as const)('a %s key → 403 PERMISSION_DENIED', async (kind, more) => {
    const key = await apiKey(postern.database, { kind, ...more })
    expect(told(await sendTo(newPhone(), undefined, { key }))).toEqual([403, 'PERMISSION_DENIED'])
  })

  test('the key is checked before a byte of the body: 10 MB without a key → 401; with one → 400', async () => {
    const big = JSON.stringify({ phoneNumber: newPhone(), message: 'x'.repeat(10_000_000) })
    const reply = (key: string | null) =>
      postern.post(`${base}/send-code`, big, { key }).catch(() => undefined)
    expect((await reply(null))?.status ?? 401).toBe(401)
    expect((await reply(postern.key))?.body.code ?? 'INVALID_ARGUMENT').toBe('INVALID_ARGUMENT')
  })

  test.each(['{', '[]', 'null', '1', '"x"', '{"phoneNumber":', '\ufeff{}', '[['.repeat(5_000)])(
    'the body %j → 400 INVALID_ARGUMENT',
    async (text) => {
      expect(told(await postern.post(`${base}/send-code`, text))).toEqual([400, 'INVALID_ARGUMENT'])
    },
  )

  test.each([
    ['send-code', { message: '{{code}}' }, 'phoneNumber is missing'],
    ['send-code', { phoneNumber: 49, message: '{{code}}' }, 'phoneNumber must be a string'],
    [
      'send-code',
      { phoneNumber: '49', message: '{{code}}' },
      'phoneNumber must be + and 5 to 15 digits',
    ],
    [
      'send-code',
      { phoneNumber: '+491711234501', message: 'x'.repeat(161) },
      'message must have at most 160 characters',
    ],
    [
      'send-code',
      { phoneNumber: '+491711234501', message: 'x' },
      'message does not contain {{code}}',
    ],
    [
      'send-code',
      { phoneNumber: '+491711234501', message: '{{code}}\u0007' },
      'message contains a control character or line break',
    ],
    [
      'validate-code',
      { authenticationId: 'x'.repeat(37), code: '1234' },
      'authenticationId must have at most 36 characters',
    ],
    [
      'validate-code',
      { authenticationId: 'x', code: '1'.repeat(11) },
      'code must have at most 10 characters',
    ],
    ['validate-code', { authenticationId: 'x', code: '' }, 'code must not be empty'],
    ['validate-code', { authenticationId: 'x', code: 1234 }, 'code must be a string'],
    ['validate-code', [], 'The body must be an object'],
  ])('%s %j → the reason in the words of every other call: %s', async (call, body, reason) => {
    const { status, body: refused } = await postern.post(`${base}/${call}`, body)
    expect({ status, ...refused }).toEqual({
      status: 400,
      code: 'INVALID_ARGUMENT',
      message: `The request is not valid. ${reason}.`,
    })
  })

  test.each([
    ['application/x-www-form-urlencoded', 'identity'],
    ['text/plain', 'identity'],
    ['application/json', 'gzip'],
    ['application/json; charset=utf-7', 'identity'],
  ])('%s, %s → 400 INVALID_ARGUMENT', async (type, encoding) => {
    const headers = { 'content-type': type, 'content-encoding': encoding }
    const sending = { phoneNumber: newPhone(), message: '{{code}}' }
    expect(told(await postern.post(`${base}/send-code`, sending, { headers }))).toEqual([
      400,
      'INVALID_ARGUMENT',
    ])
  })

  test('x-correlator: on 404, 405, 500 and 503 too; a new one if there is none; of another form → 400', async () => {
    const headers = { 'x-correlator': 'a-1' }
    const unknown = await postern.post(`${base}/other`, {}, { headers })
    expect(told(unknown)).toEqual([404, 'NOT_FOUND'])
    const read = await postern.get(`${base}/send-code`, { headers })
    expect([read.status, read.headers.get('allow')]).toEqual([405, 'POST'])
    for (const reply of [unknown, read]) expect(reply.headers.get('x-correlator')).toBe('a-1')
    const { headers: made } = await sendTo(newPhone())
    expect(made.get('x-correlator')).toMatch(/^[0-9a-f-]{36}$/)
    const wrong = { 'x-correlator': 'a b' }
    expect(told(await sendTo(newPhone(), undefined, { headers: wrong }))).toEqual([
      400,
      'INVALID_ARGUMENT',
    ])
  })
})

test('a test recipient: no message, and its id is validated as any other', async () => {
  const [to, other] = ['+8613800139001', '+8613800139002']
  const testing = { recipients: [to, other].map((each) => ({ to: each, code: '2468' })) }
  const on = await startPostern({
    policyFile: { policies: noLimits, compat: { camara: {} }, testing },
  })
  const ask = async (authenticationId: string, code: string, options?: RequestOptions) => {
    const answer = await on.post(`${base}/validate-code`, { authenticationId, code }, options)
    return answer.body?.code ?? answer.status
  }
  const idOf = async (phone: string) =>
    (await sendTo(phone, undefined, undefined, on)).body.authenticationId
  const old = await idOf(to)
  const id = await idOf(to)
  // No row remembers it.
  expect(await ask(old, '2468')).toBe('NOT_FOUND')
  const key = await apiKey(on.database, { app: 'other' })
  expect(await ask(id, '2468', { key })).toBe('NOT_FOUND')
  expect(await ask(randomUUID(), '2468')).toBe('NOT_FOUND')
  const ofLogin = await on.post('/v1/captchas', { channel: 'sms', to: other, scene: 'login' })
  expect(await ask(ofLogin.body.id, '2468')).toBe('NOT_FOUND')
  expect(await ask(id, '1111')).toBe(ofProduct('INVALID_OTP'))
  expect(await ask(id, '2468')).toBe(204)
  expect(await ask(id, '2468')).toBe(ofProduct('VERIFICATION_EXPIRED'))
  expect(await on.messages()).toEqual([])
})

test('a country without a route → 404 NOT_FOUND, nothing sent', async () => {
  const other = await startPostern({
    policyFile: {
      compat: { camara: {} },
      policies: noLimits,
      providers: { only: { kind: 'sandbox' } },
      routes: { sms: [{ match: { country: 'CN' }, use: ['only'] }] },
    },
  })
  expect(told(await sendTo('+33612345678', undefined, {}, other))).toEqual([404, 'NOT_FOUND'])
  expect((await sendTo(newPhone(), undefined, {}, other)).status).toBe(200)
})

test('the settings: a window or a count that is none, and an unknown member, are refused with their line', async () => {
  for (const camara of [{ window: '1 day' }, { maxCodes: 0 }, { max: 1 }]) {
    await expect(startPostern({ policyFile: { compat: { camara } } })).rejects.toThrow(
      /compat\.camara\.(window|maxCodes|max)\b/,
    )
  }
})
