import { describe, expect, test } from 'vitest'
import { newPhone } from '../tools/people.ts'
import { startPostern } from '../tools/postern.ts'
import { startSmtp } from '../tools/smtp.ts'
import { templatesFolder } from '../tools/templates-folder.ts'
import { eventually } from '../tools/wait.ts'
import { badRequest, expectRefused } from './ledger.ts'

const smtp = await startSmtp()
const postern = await startPostern({
  policyFile: {
    // Without the rules that count callers: every test here has a new recipient.
    policies: {
      captcha: [{ name: 'recipient', key: '{channel}:{to}', sliding: '1 per 60s' }],
      notice: [{ name: 'duplicate', key: '{dedupe}', fixed: '2 per 60s' }],
      check: [
        {
          name: 'guesses',
          key: '{channel}:{to}:{ip}',
          lockout: { limit: 3, window: '5m', lock: '15m' },
        },
      ],
    },
    providers: {
      sandbox: { kind: 'sandbox' },
      mail: { kind: 'smtp', url: smtp.url, from: 'Acme <no-reply@acme.test>' },
    },
    routes: {
      sms: [{ use: ['sandbox'] }],
      email: [{ match: { template: 'welcome' }, use: ['mail'] }, { use: ['sandbox'] }],
    },
    templates: templatesFolder(
      {
        'order/sms.en.txt': '{{name}}: {{order}}',
        'order/sms.zh.txt': '{{name}}：{{order}}（{{day}}）',
      },
      { withShipped: true },
    ),
  },
})

const welcome = (name: unknown, to = newPhone()) => ({
  channel: 'sms',
  to,
  template: 'welcome',
  params: { name },
})

describe('text', () => {
  test.each([
    ['CRLF and a header', 'Ada\r\nBcc: eve@example.com'],
    ['a line feed', 'Ada\n'],
    ['a carriage return', '\rAda'],
    ['a line separator', 'Ada\u2028'],
    ['a next-line', 'Ada\u0085'],
    ['NUL', 'Ada\0'],
    ['an escape sequence', '\u001b[31mAda'],
    ['a lone surrogate', 'Ada\ud83d'],
    ['a right-to-left override', 'Ada\u202egpj.exe'],
    ['an isolate', 'Ada\u2066x'],
    ['10 kB', 'x'.repeat(10_000)],
    ['a list', ['Ada']],
  ])('a variable with %s: refused, nothing used', async (_, name) => {
    const reply = await expectRefused(postern, badRequest, () =>
      postern.post('/v1/notices', welcome(name)),
    )
    expect(reply.body.errors[0].path).toBe('params.name')
  })

  test.each([
    ['emoji', '👩‍👩‍👧 🔑'],
    ['Hebrew with its marks', 'שלום\u200f!'],
    ['Chinese', '王小明'],
    ['braces', '{{code}} {{{name}}} {{#each}}'],
    ['a regular expression’s words', '$& $1 $$'],
    ['HTML', '<script>alert(1)</script>'],
    ['a number', 0],
    ['a boolean', false],
  ])('a variable with %s arrives as it was given and is not interpreted', async (_, name) => {
    const { status, body } = await postern.post('/v1/notices', welcome(name))
    expect(status).toBe(202)
    const message = await postern.messageFor(body.id)
    expect(message.text).toBe(`Welcome, ${name}! Your account is ready.`)
  })

  test('in a mail: subject and text are plain, one header each, with any variable', async () => {
    const name = '=?utf-8?q?x?= <b>王</b> "Ada", eve@example.com'
    const to = 'ada@example.com'
    const { status } = await postern.post('/v1/notices', { ...welcome(name, to), channel: 'email' })
    expect(status).toBe(202)
    const mail = await smtp.waitForMail(({ envelope }) => envelope.to.includes(to))
    expect(mail.subject).toBe(`Welcome, ${name}`)
    expect(mail.text).toContain(`Hello ${name},`)
    expect(mail.envelope).toEqual({ from: 'no-reply@acme.test', to: [to] })
    expect(mail.headers.filter(({ key }) => ['bcc', 'cc'].includes(key))).toEqual([])
  })

  test('in the HTML of a captcha mail: only the variables of Postern appear', async () => {
    const to = 'html@example.com'
    const sent = { channel: 'email', to, params: { name: '<script>alert(1)</script>' } }
    const refused = await expectRefused(postern, badRequest, () =>
      postern.post('/v1/captchas', sent),
    )
    expect(refused.body.errors[0].path).toBe('params.name')
    const { body } = await postern.post('/v1/captchas', { channel: 'email', to })
    const code = await postern.codeFor(body.id)
    const [message] = await postern.messages(to)
    expect(message?.html).toContain(code)
    expect(message?.html).not.toContain('script')
  })
})

describe('duplicate', () => {
  test('the same content in another order of params, or as number instead of text, is the same content (S2)', async () => {
    const to = newPhone()
    const send = (params: unknown) =>
      postern.post('/v1/notices', { channel: 'sms', to, template: 'order', params })
    expect((await send({ name: 7, order: 'x' })).status).toBe(202)
    expect((await send({ order: 'x', name: 7 })).status).toBe(202)
    const third = await send({ name: '7', order: 'x' })
    expect(third).toMatchObject({ status: 429, body: { code: 'limited', rule: 'duplicate' } })
    expect((await send({ name: '8', order: 'x' })).status).toBe(202)
  })

  test('a variable that only another variant uses is taken, and makes no other content either', async () => {
    const to = newPhone()
    const send = (day: string, locale: string) =>
      postern.post('/v1/notices', {
        channel: 'sms',
        to,
        locale,
        template: 'order',
        params: { name: 'Ada', order: 1, day },
      })
    expect((await send('Monday', 'en')).status).toBe(202)
    expect((await send('Tuesday', 'en')).status).toBe(202)
    expect(await send('Wednesday', 'en')).toMatchObject({
      status: 429,
      body: { rule: 'duplicate' },
    })
    const { status, body } = await send('星期三', 'zh')
    expect(status).toBe(202)
    expect((await postern.messageFor(body.id)).text).toBe('Ada：1（星期三）')
  })
})

describe('code', () => {
  const codes: [string, unknown][] = [
    ['empty', ''],
    ['short', '123'],
    ['long', '12345'],
    ['very long', '1'.repeat(10_000)],
    ['of spaces', '    '],
    ['with a space before', ' 1234'],
    ['with a space inside', '12 34'],
    ['with a newline', '1234\n'],
    ['full-width', '１２３４'],
    ['Arabic', '١٢٣٤'],
    ['letters', 'abcd'],
    ['1e3', '1e3'],
    ['hexadecimal', '0x1f'],
    ['negative', '-123'],
    ['with NUL', '123\0'],
    ['a number', 1234],
    ['a number that lost its zeros', 42],
    ['null', null],
    ['missing', undefined],
    ['a list', ['1234']],
    ['an object', { $ne: '' }],
    ['true', true],
  ]
  test('22 codes of no shape take no try: the right one passes afterwards with all tries left', async () => {
    const to = newPhone()
    const { body: sent } = await postern.post('/v1/captchas', { channel: 'sms', to })
    const right = await postern.codeFor(sent.id)
    for (const [, code] of codes) {
      const reply = await expectRefused(postern, badRequest, () =>
        postern.post('/v1/captchas/check', { channel: 'sms', to, code }),
      )
      expect(reply.body.errors[0].path).toBe('code')
    }
    const wrong = String((Number(right) + 1) % 10_000).padStart(4, '0')
    const mismatch = await postern.post('/v1/captchas/check', { channel: 'sms', to, code: wrong })
    expect(mismatch).toMatchObject({ status: 422, body: { code: 'code_mismatch', triesLeft: 2 } })
    const passed = await postern.post('/v1/captchas/check', { channel: 'sms', to, code: right })
    expect(passed.status).toBe(200)
    // The earlier guess is forgiven after its answer. The ledgers of the next tests must not see that.
    await eventually(async () => (await postern.redis.client.keys('*:reset')).length > 0)
  })

  test.each([
    ['empty', ''],
    ['over-long', 'x'.repeat(65)],
    ['with NUL', 'a\0'],
    ['a number', 7],
  ])('an id that is %s takes no try', async (_, id) => {
    const body = { channel: 'sms', to: newPhone(), code: '0000', id }
    await expectRefused(postern, badRequest, () => postern.post('/v1/captchas/check', body))
  })
})
