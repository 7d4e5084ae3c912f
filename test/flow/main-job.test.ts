/** The main job from end to end: a code is requested, sent, read, and checked once. */
import { expect, test } from 'vitest'
import { type Postern, startPostern } from '../tools/postern.ts'
import { startSmtp } from '../tools/smtp.ts'
import { eventually } from '../tools/wait.ts'

async function expectPassesOnce(postern: Postern, owner: object, code: string) {
  const check = () => postern.post('/v1/captchas/check', { ...owner, code })
  const passed = await check()
  expect(passed).toMatchObject({ status: 200, body: { verified: true, scene: 'signup' } })
  expect(await check()).toMatchObject({ status: 410, body: { code: 'code_gone' } })
}

test('a captcha by SMS through the sandbox arrives, passes once and never again', async () => {
  const postern = await startPostern()
  const owner = { channel: 'sms', to: '+8613800138000', scene: 'signup' }
  const { status, body } = await postern.post('/v1/captchas', owner)
  expect(status).toBe(202)
  const code = await postern.codeFor(body.id)
  expect(code).toMatch(/^\d{4}$/)
  await expectPassesOnce(postern, owner, code)
})

test.each(['en', 'zh'])(
  'a captcha by email over SMTP (%s) arrives as text and HTML, passes once and never again',
  async (locale) => {
    const smtp = await startSmtp()
    const postern = await startPostern({
      policyFile: {
        providers: { mail: { kind: 'smtp', url: smtp.url, from: 'Acme <no-reply@acme.test>' } },
        routes: { email: [{ use: ['mail'] }] },
      },
    })
    const owner = { channel: 'email', to: 'Ada@Example.com', scene: 'signup' }
    const { status, body } = await postern.post('/v1/captchas', { ...owner, locale })
    expect(status).toBe(202)

    const mail = await smtp.waitForMail(({ envelope }) => envelope.to.includes('ada@example.com'))
    expect(mail.envelope).toEqual({ from: 'no-reply@acme.test', to: ['ada@example.com'] })
    expect(mail.messageId).toContain(body.id)
    const code = /\d{4}/.exec(mail.subject ?? '')?.[0] ?? ''
    expect(mail.text).toContain(code)
    expect(mail.html).toContain(code)
    await expectPassesOnce(postern, owner, code)

    const notice = await eventually(async () => {
      const reply = await postern.get(`/v1/notices/${body.id}`)
      return reply.body.state !== 'sending' && reply
    })
    expect(notice.body).toMatchObject({
      state: 'sent',
      to: 'a***@example.com',
      provider: 'mail',
      attempts: [{ provider: 'mail', outcome: 'accepted' }],
    })
    expect(smtp.mails).toHaveLength(1)
  },
)

test('a notice in Chinese by both channels has what it was given, and nothing of it is interpreted', async () => {
  const postern = await startPostern()
  const params = { name: '<b>{{code}}</b> 王' }
  for (const [channel, to] of [
    ['sms', '+8613900139000'],
    ['email', 'wang@example.com'],
  ]) {
    const { status } = await postern.post('/v1/notices', {
      channel,
      to,
      template: 'welcome',
      locale: 'zh-CN',
      params,
    })
    expect(status).toBe(202)
  }
  await expect.poll(async () => (await postern.messages()).length).toBe(2)
  for (const { text } of await postern.messages()) expect(text).toContain(params.name)
})
