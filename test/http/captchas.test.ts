import { describe, expect, inject, test } from 'vitest'
import { newPhone, otherThan } from '../tools/people.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'
import { openApiAnswers } from './openapi-answers.ts'

const postern = await startPostern({ policyFile: { policies: noLimits } })
const { expectPromised } = await openApiAnswers(postern)

const send = async (body: Record<string, unknown>) => {
  const reply = await postern.post('/v1/captchas', body)
  expectPromised('post /v1/captchas', reply)
  return reply
}
const check = async (body: Record<string, unknown>) => {
  const reply = await postern.post('/v1/captchas/check', body)
  expectPromised('post /v1/captchas/check', reply)
  return reply
}

describe('POST /v1/captchas', () => {
  test('sms: 202 with what the contract names, the recipient masked, the code nowhere', async () => {
    const startedAt = Date.now()
    const { status, headers, body } = await send({ channel: 'sms', to: '+8613800138000' })
    expect(status).toBe(202)
    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      channel: 'sms',
      to: '+8613****8000',
      scene: 'default',
      state: 'pending',
      expiresAt: expect.any(String),
      resendAt: expect.any(String),
      codeLength: 4,
    })
    const order = 'id channel to scene state expiresAt resendAt codeLength'
    expect(Object.keys(body).join(' '), 'as the documentation shows it').toBe(order)
    expect(headers.get('location')).toBe(`${inject('mountAt')}/v1/notices/${body.id}`)
    expect(Math.abs(Date.parse(body.expiresAt) - startedAt - 300_000)).toBeLessThan(5_000)
    const message = await postern.messageFor(body.id)
    expect(message).toMatchObject({ channel: 'sms', to: '+8613800138000', provider: 'sandbox' })
    expect(message.text).toMatch(/^\d{4} is your verification code\. It is valid for 5 minutes\./)
    expect(message).not.toHaveProperty('html')
  })

  test('email: text and HTML with the same code, in the language asked for', async () => {
    const sent = { channel: 'email', to: 'Ada@Example.com', scene: 'signup', locale: 'zh-CN' }
    const { body } = await send(sent)
    expect(body).toMatchObject({ to: 'a***@example.com', scene: 'signup' })
    const message = await postern.messageFor(body.id)
    const [code] = message.text.match(/\d{4}/) ?? []
    expect(message.to).toBe('ada@example.com')
    expect(message.subject).toBe(`您的验证码：${code}`)
    expect(message.html).toContain(code)
    expect(message.html).toContain('lang="zh"')
  })

  test.each([
    ['fr', 'verification code'],
    ['es-419', 'verification code'],
    ['en-us', 'verification code'],
    ['zh-Hans-CN', '您的验证码'],
    ['zh-TW', '您的验证码'],
    ['zh_CN', '您的验证码'],
    ['english', 'verification code'],
    ['', 'verification code'],
    ['\u0000"; DROP', 'verification code'],
  ])('locale %j refuses no send: the nearest variant, else the default', async (locale, text) => {
    const { status, body } = await send({ channel: 'sms', to: newPhone(), locale })
    expect(status).toBe(202)
    expect((await postern.messageFor(body.id)).text).toContain(text)
  })

  test('Location leads to the notice, which ends in sent', async () => {
    const { headers } = await send({ channel: 'sms', to: newPhone() })
    const notice = await eventually(async () => {
      const reply = await postern.get(
        (headers.get('location') ?? '').replace(inject('mountAt'), ''),
      )
      return reply.body.state === 'sent' && reply
    })
    expectPromised('get /v1/notices/{id}', notice)
    expect(notice.body).toMatchObject({ kind: 'captcha', scene: 'default', provider: 'sandbox' })
  })
})

describe('POST /v1/captchas/check', () => {
  test('right: 200 once, with id and scene; then gone', async () => {
    const to = newPhone()
    const { body: sent } = await send({ channel: 'sms', to, scene: 'login' })
    const asked = { channel: 'sms', to, scene: 'login', code: await postern.codeFor(sent.id) }
    const passed = await check(asked)
    expect(passed.status).toBe(200)
    expect(passed.body).toEqual({
      verified: true,
      id: sent.id,
      scene: 'login',
      verifiedAt: expect.any(String),
      pass: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
    })
    expect(await check(asked)).toMatchObject({ status: 410, body: { code: 'code_gone' } })
  })

  test('wrong: 422 with the tries left, and after the last the right one is gone too', async () => {
    const to = newPhone()
    const { body: sent } = await send({ channel: 'sms', to })
    const code = await postern.codeFor(sent.id)
    for (const triesLeft of [2, 1, 0]) {
      const reply = await check({ channel: 'sms', to, code: otherThan(code, triesLeft + 1) })
      expect(reply).toMatchObject({ status: 422, body: { code: 'code_mismatch', triesLeft } })
    }
    expect((await check({ channel: 'sms', to, code })).status).toBe(410)
  })

  test('never sent: 410, the same answer as for a used or expired one', async () => {
    const asked = { channel: 'sms', to: newPhone(), code: '0000' }
    expect((await check(asked)).body).toMatchObject({ code: 'code_gone', status: 410 })
  })

  test('a code of one scene or channel passes for no other, and costs that one no try', async () => {
    const to = newPhone()
    const { body: sent } = await send({ channel: 'sms', to, scene: 'login' })
    const code = await postern.codeFor(sent.id)
    expect((await check({ channel: 'sms', to, scene: 'payment', code })).status).toBe(410)
    expect((await check({ channel: 'sms', to, code })).status).toBe(410)
    expect((await check({ channel: 'sms', to, scene: 'login', code })).status).toBe(200)
  })

  test('with id: the code of that request alone; another id costs no try', async () => {
    const to = newPhone()
    const first = await send({ channel: 'sms', to })
    const second = await send({ channel: 'sms', to })
    const code = await postern.codeFor(second.body.id)
    expect((await check({ channel: 'sms', to, code, id: first.body.id })).status).toBe(410)
    const wrong = await check({ channel: 'sms', to, code: otherThan(code), id: second.body.id })
    expect(wrong.body.triesLeft).toBe(2)
    expect((await check({ channel: 'sms', to, code, id: second.body.id })).status).toBe(200)
  })

  test('a resend kills the earlier code (I6)', async () => {
    const to = newPhone()
    const first = await send({ channel: 'sms', to })
    const earlier = await postern.codeFor(first.body.id)
    const second = await send({ channel: 'sms', to })
    const later = await postern.codeFor(second.body.id)
    if (earlier !== later)
      expect((await check({ channel: 'sms', to, code: earlier })).status).toBe(422)
    expect((await check({ channel: 'sms', to, code: later })).status).toBe(200)
  })

  test('200 right ones at once: one 200, the rest 410 (I4)', async () => {
    const to = newPhone()
    const { body: sent } = await send({ channel: 'sms', to })
    const asked = { channel: 'sms', to, code: await postern.codeFor(sent.id) }
    // A busy machine answers some of them 503, which changes nothing.
    const check = () =>
      eventually(async () => {
        const reply = await postern.post('/v1/captchas/check', asked)
        return reply.status !== 503 && reply
      })
    const replies = await Promise.all(Array.from({ length: 200 }, check))
    const statuses = replies.map(({ status }) => status).sort()
    expect(statuses).toEqual([200, ...Array(199).fill(410)])
  })
})

describe('code.length 6', () => {
  test('a longer code is sent, has its length in the answer, and must be typed in full', async () => {
    const six = await startPostern({
      policyFile: { code: { length: 6, ttl: '10m' }, policies: noLimits },
    })
    const to = newPhone()
    const { body } = await six.post('/v1/captchas', { channel: 'sms', to })
    expect(body.codeLength).toBe(6)
    const code = await six.codeFor(body.id)
    expect(code).toMatch(/^\d{6}$/)
    expect((await six.messageFor(body.id)).text).toContain('10 minutes')
    const short = await six.post('/v1/captchas/check', {
      channel: 'sms',
      to,
      code: code.slice(0, 4),
    })
    expect(short).toMatchObject({ status: 400, body: { errors: [{ path: 'code' }] } })
    expect((await six.post('/v1/captchas/check', { channel: 'sms', to, code })).status).toBe(200)
  })
})
