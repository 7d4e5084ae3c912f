import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import PostalMime from 'postal-mime'
import type { SMTPServerOptions } from 'smtp-server'
import { describe, expect, it, vi } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import type { Message } from '../../src/providers/provider.ts'
import type { ProviderDeps } from '../../src/providers/provider-kind.ts'
import { resultOfFailure } from '../../src/providers/smtp/errors.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'
import smtp, * as given from './cases/smtp.ts'
import { makeCertificate, trust } from './far-ends/certificate.ts'
import { startSmtpFarEnd } from './far-ends/smtp.ts'
import { testConformance } from './test-conformance.ts'

const { from } = given
const { message } = given.conformance

testConformance(given)

/** A network in front of the server. After `forget`, its open connections carry nothing, and new ones work. */
async function startForgetfulRelay(targetPort: number) {
  const pairs: Socket[][] = []
  const server = createServer((client) => {
    const target = connect(targetPort, '127.0.0.1')
    client.pipe(target).pipe(client)
    for (const socket of [client, target]) socket.on('error', () => {})
    pairs.push([client, target])
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  releaseLater(() => {
    for (const socket of pairs.flat()) socket.destroy()
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    forget() {
      for (const [client, target] of pairs) {
        client?.unpipe().pause()
        target?.unpipe().pause()
      }
    },
  }
}

describe('smtp', () => {
  const never = new AbortController().signal
  const certificate = makeCertificate()
  /** A far end, and a provider of its address. `url`: how its settings write that address. */
  async function open(
    options: Parameters<typeof startSmtpFarEnd>[0] = {},
    deps: Partial<ProviderDeps> = {},
    {
      url = (at: string) => `smtp://${at}`,
      ...entry
    }: { url?: (at: string) => string; [setting: string]: unknown } = {},
  ) {
    const farEnd = await startSmtpFarEnd(options)
    releaseLater(farEnd.close)
    const settings = smtp.settings.parse({ url: url(`127.0.0.1:${farEnd.port}`), from, ...entry })
    const usual = { timeoutMs: 20_000, concurrency: 100, clock: Date.now }
    const provider = smtp.create('mail', settings, { ...usual, ...deps })
    releaseLater(provider.close)
    const send = (over: Partial<Message> = {}, onSign?: () => void) =>
      provider.send({ ...message, noticeId: newId(), ...over }, never, onSign)
    const sendTo = (name: string, onSign?: () => void) =>
      send({ to: `${name}@example.test` }, onSign)
    return { ...farEnd, provider, send, sendTo }
  }

  const refusal = (responseCode: number) => Object.assign(new Error('Later'), { responseCode })

  it('sends subject, text, HTML and a Message-ID made of the notice id', async () => {
    const { taken, send } = await open()
    const noticeId = newId()
    const result = await send({ noticeId })
    expect(result).toEqual({ kind: 'accepted', messageId: `<${noticeId}@acme.test>` })
    const mail = await PostalMime.parse(taken[0]?.mail ?? '')
    expect(mail).toMatchObject({
      messageId: `<${noticeId}@acme.test>`,
      subject: message.subject,
      from: { name: 'Acme', address: 'no-reply@acme.test' },
      to: [{ address: message.to }],
    })
    expect(mail.text?.trim()).toBe(message.text)
    expect(mail.html?.trim()).toBe(message.html)
    expect(taken[0]?.mail).toContain('Auto-Submitted: auto-generated')
  })

  it.each([
    'a@example.test, b@example.test',
    'a@example.test;b@example.test',
    'group: a@example.test;',
    'Ada <a@example.test>',
    'a@example.test\r\nRCPT TO:<b@example.test>',
    '"a b"@example.test',
    'a@[127.0.0.1]',
    'a@b@example.test',
    'a',
    '',
    'a\0@example.test',
    `${'a'.repeat(65)}@example.test`,
    `a@${'b'.repeat(254)}`,
  ])('never connects for what is not one plain address: %j', async (to) => {
    const { taken, openConnections, send } = await open()
    const result = await send({ to })
    expect(result.kind).toBe('invalid_recipient')
    expect(taken).toEqual([])
    expect(openConnections()).toBe(0)
  })

  it.each(['Hello\r\nBcc: eve@example.test', '=? Hello\r\nBcc: eve@example.test'])(
    'puts a line break of the subject %j into no header',
    async (subject) => {
      const { taken, send } = await open()
      await send({ subject })
      expect(taken[0]?.to).toBe(message.to)
      expect(taken[0]?.mail).not.toMatch(/^Bcc:/im)
      const { subject: shown } = await PostalMime.parse(taken[0]?.mail ?? '')
      expect(shown).toBe(subject.replace('\r\n', ' '))
    },
  )

  it.each([
    ['an encoded-word', 'Order =?utf-8?B?4oCuZ2FtZQ==?= is ready'],
    ['an encoded-word with a line break in it', '=?utf-8?Q?paid=0D=0ABcc:_eve=40example.test?='],
    ['half of one', 'Is 1 =? 2, or 2 ?= 1'],
    ['a Latin one that a lenient reader decodes', 'Hi =?iso-8859-1?q?a b?= there'],
    ['an encoded-word beside letters that have to be encoded', '订单 =?utf-8?B?4oCu?= 好了'],
    ['a word of 998 letters', `Order ${'x'.repeat(998)} is ready`],
    [
      'a word of 998 letters, of which one is not ASCII',
      `Order ${'x'.repeat(600)}é${'x'.repeat(397)}`,
    ],
    ['998 signs of four bytes', '😀'.repeat(499)],
    ['many long words', `${'y'.repeat(70)} `.repeat(14).trim()],
    ['ordinary words, many', 'word '.repeat(200).trim()],
  ])(
    'shows %s of the subject as it is written, in lines that are no longer than 998',
    async (_, subject) => {
      const { taken, send } = await open()
      const result = await send({ subject })
      expect(result.kind).toBe('accepted')
      const raw = taken[0]?.mail ?? ''
      expect((await PostalMime.parse(raw)).subject).toBe(subject)
      for (const line of raw.split('\r\n')) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(998)
    },
  )

  it.each([
    ['https://acme.test/off/a%20b', 'List-Unsubscribe=One-Click'],
    ['mailto:off@acme.test?subject=7', undefined],
  ])('List-Unsubscribe: %s, with One-Click (RFC 8058) for https alone', async (link, post) => {
    const { taken, send } = await open()
    await send({ listUnsubscribe: link })
    const { headers } = await PostalMime.parse(taken[0]?.mail ?? '')
    const headerOf = (name: string) => headers.find(({ key }) => key === name)?.value
    expect(headerOf('list-unsubscribe')).toBe(`<${link}>`)
    expect(headerOf('list-unsubscribe-post')).toBe(post)
  })

  it('List-Unsubscribe: none where the template has none; an address that fits no line is refused', async () => {
    const { taken, send } = await open()
    await send()
    expect(taken[0]?.mail).not.toMatch(/unsubscribe/i)
    const linkOf = (length: number) => `https://acme.test/${'a'.repeat(length - 18)}`
    expect((await send({ listUnsubscribe: linkOf(978) })).kind).toBe('accepted')
    expect(
      taken[1]?.mail.split('\r\n').find((line) => /^List-Unsubscribe:/.test(line)),
    ).toHaveLength(998)
    expect(await send({ listUnsubscribe: linkOf(979) })).toMatchObject({ kind: 'rejected' })
    expect(taken).toHaveLength(2)
  })

  it('greets the server by the name of the settings', async () => {
    const greetings: string[] = []
    const onMailFrom: SMTPServerOptions['onMailFrom'] = (_address, { hostNameAppearsAs }, done) => {
      greetings.push(String(hostNameAppearsAs))
      done()
    }
    const { send } = await open({ onMailFrom }, {}, { ehlo: 'mail.acme.test' })
    await send()
    expect(greetings).toEqual(['mail.acme.test'])
  })

  it.each(['mail', 'mail acme.test', 'mail.acme.test\r\nRSET', ''])('refuses ehlo: %j', (ehlo) => {
    expect(smtp.settings.safeParse({ url: 'smtp://host', from, ehlo }).success).toBe(false)
  })

  describe('with a login', () => {
    const login = {
      authOptional: false,
      onAuth: (
        auth: { username?: string | undefined; password?: string | null | undefined },
        _session: unknown,
        done: (error: Error | null, answer?: { user: string }) => void,
      ) =>
        auth.username === 'postern' && auth.password === 'p@ss/word'
          ? done(null, { user: 'postern' })
          : done(new Error('Invalid username or password')),
    }

    it.each([
      ['logs in over STARTTLS with the percent-encoded password of the URL', false],
      ['talks TLS from the first byte to smtps://', true],
    ])('%s', async (_, secure) => {
      trust(certificate)
      const url = (at: string) =>
        `${secure ? 'smtps' : 'smtp'}://postern:p%40ss%2Fword@${at}${secure ? '' : '?tls=required'}`
      const { taken, send } = await open({ ...login, ...certificate, secure }, {}, { url })
      expect((await send()).kind).toBe('accepted')
      expect(taken).toHaveLength(1)
    })

    it('answers unavailable without the password when the login is refused', async () => {
      const url = (at: string) => `smtp://postern:not-this-one@${at}`
      const { send } = await open({ ...login, allowInsecureAuth: true }, {}, { url })
      const result = await send()
      expect(result.kind).toBe('unavailable')
      expect(JSON.stringify(result)).not.toContain('not-this-one')
    })

    it('sends nothing without it when the server offers no login', async () => {
      const url = (at: string) => `smtp://postern:p%40ss%2Fword@${at}?tls=off`
      const options = { disabledCommands: ['STARTTLS', 'AUTH'] }
      const { taken, send } = await open(options, {}, { url })
      expect(await send()).toEqual({ kind: 'unavailable', detail: 'SMTP server offers no login' })
      expect(taken).toEqual([])
    })
  })

  it('answers unavailable when nobody vouches for the certificate', async () => {
    const { taken, send } = await open(certificate)
    expect(await send()).toEqual({
      kind: 'unavailable',
      detail: 'SMTP connection lost (DEPTH_ZERO_SELF_SIGNED_CERT)',
    })
    expect(taken).toEqual([])
  })

  it('sends nothing without TLS when tls=required and the server has none', async () => {
    const { taken, send } = await open({}, {}, { url: (at) => `smtp://${at}?tls=required` })
    expect((await send()).kind).toBe('unavailable')
    expect(taken).toEqual([])
  })

  it('gives up on a tarpit at its own time limit, however steadily it drips (F20)', async () => {
    const { drip, taken, send } = await open({}, { timeoutMs: 700 })
    drip(500)
    const startedAt = performance.now()
    const result = await send()
    expect(result).toEqual({ kind: 'unavailable', detail: 'SMTP no answer in time' })
    // The greeting alone would take longer.
    expect(performance.now() - startedAt).toBeLessThan(9_000)
    expect(taken).toEqual([])
  })

  it.each([
    ['RCPT', '421 4.3.2 Shutting down', 'unavailable'],
    ['DATA', '421 4.7.0 Too many errors', 'unavailable'],
    ['MAIL', '451 4.7.1 Try later', 'unavailable'],
    ['MAIL', '450 4.1.8 Unknown sender domain', 'unavailable'],
    ['RCPT', '450 4.1.2 Domain not found', 'postponed'],
    ['RCPT', '450 4.2.1 Mailbox busy', 'postponed'],
    ['RCPT', '452 4.2.2 Mailbox full', 'postponed'],
    ['RCPT', '451 4.7.1 Greylisted', 'postponed'],
    ['RCPT', '451 Try later', 'postponed'],
    ['RCPT', '451 4.3.0 Temporary lookup failure', 'unavailable'],
    ['DATA', '451 4.7.1 Greylisted', 'postponed'],
    ['DATA', '452 4.3.1 Out of space', 'unavailable'],
    ['RCPT', '550 5.1.1 No such user', 'invalid_recipient'],
    ['RCPT', '550 No such user', 'invalid_recipient'],
    ['RCPT', '550 5.7.1 Relaying denied', 'rejected'],
    ['RCPT', '552 5.2.3 Too big for this mailbox', 'rejected'],
    ['DATA', '550 5.1.1 No such user', 'invalid_recipient'],
    ['DATA', '550 Spam', 'rejected'],
    ['DATA', '554 5.6.0 Malformed', 'rejected'],
    ['MAIL', '550 5.1.8 Bad sender', 'rejected'],
    ['MAIL', '530 5.7.0 Log in first', 'unavailable'],
    ['MAIL', '535 5.7.3 The login has ended', 'unavailable'],
    ['DATA', '550 5.4.5 Daily user sending limit exceeded', 'throttled'],
    ['RCPT', '550 5.4.5 Daily user sending limit exceeded', 'throttled'],
    ['DATA', '554 5.2.0 STOREDRV.Submission: the account may not send as this sender', 'rejected'],
    ['DATA', '554 5.2.252 SendAsDenied', 'rejected'],
    ['RCPT', '550 5.2.0 The mailbox takes nothing', 'invalid_recipient'],
    ['RCPT', '550 5.2.252 SendAsDenied', 'rejected'],
    ['DATA', '554 5.2.1 Mailbox disabled', 'invalid_recipient'],
    ['DATA', '454 Throttling failure: Maximum sending rate exceeded', 'postponed'],
  ] as const)('the reply to %s: %s is %s (F19)', async (step, line, kind) => {
    const { answer, taken, send } = await open()
    answer(step, line)
    const result = await send()
    expect(result.kind).toBe(kind)
    expect(taken).toEqual([])
    answer(step, undefined)
    expect((await send()).kind).toBe('accepted')
  })

  it.each([
    [{ responseCode: 554, command: 'CONN', response: '554 no service' }, false, 'unavailable'],
    [{ responseCode: 535, command: 'AUTH PLAIN', code: 'EAUTH' }, false, 'unavailable'],
    [{ responseCode: 503, command: 'DATA', response: '503 order' }, true, 'unavailable'],
    [{ responseCode: 354, code: 'ECONNECTION' }, true, 'unknown'],
    [{ code: 'ECONNECTION' }, false, 'unavailable'],
    [{ code: 'ETIMEDOUT' }, true, 'unknown'],
    [{}, true, 'unknown'],
  ] as const)('takes %j, handed over: %s, for %s (F19)', (failure, isHandedOver, kind) => {
    expect(resultOfFailure(failure, isHandedOver).kind).toBe(kind)
  })

  it('tells nothing of a reply but its numbers and the step', () => {
    const response = '550 5.1.1 <ada@example.test>: who is that?'
    const failure = { code: 'EENVELOPE', command: 'RCPT TO', responseCode: 550, response }
    expect(resultOfFailure(failure, false)).toEqual({
      kind: 'invalid_recipient',
      suppresses: 'bounced',
      detail: 'SMTP 550 5.1.1 at RCPT TO',
    })
  })

  it('450 to five recipients, with mails between, leaves the connection: all mails go over it', async () => {
    const onRcptTo: SMTPServerOptions['onRcptTo'] = ({ address }, _session, done) =>
      done(address.startsWith('later') ? refusal(450) : null)
    const { taken, sendTo, connectionCount } = await open({ onRcptTo }, {}, { connections: 1 })
    const kinds: string[] = []
    for (const name of ['ada', 'later', 'grace', 'later', 'later', 'later', 'edith', 'later'])
      kinds.push(`${name} ${(await sendTo(name)).kind}`)
    expect(kinds).toEqual([
      'ada accepted',
      'later postponed',
      'grace accepted',
      ...Array(3).fill('later postponed'),
      'edith accepted',
      'later postponed',
    ])
    const names = taken.map(({ to }) => to.split('@')[0])
    expect(names).toEqual(['ada', 'grace', 'edith'])
    expect(connectionCount()).toBe(1)
  })

  it('a server that slows down a session after ten errors without a mail, as Postfix does: no connection meets as many (I30)', async () => {
    const refusals = new Map<string, number>()
    let most = 0
    const { taken, openConnections, sendTo } = await open({
      onRcptTo({ address }, { id }, done) {
        if (!address.startsWith('nowhere')) {
          refusals.delete(id)
          return done(null)
        }
        const inARow = (refusals.get(id) ?? 0) + 1
        refusals.set(id, inARow)
        most = Math.max(most, inARow)
        done(refusal(450))
      },
    })
    for (let round = 0; round < 10; round++) {
      const some = Array.from({ length: 4 }, () => sendTo('nowhere'))
      const [good] = await Promise.all([sendTo('ada'), ...some])
      expect(good.kind).toBe('accepted')
    }
    expect(taken).toHaveLength(10)
    // A refused mail is two errors: of its RCPT and of its DATA.
    expect(most).toBe(4)
    // The replaced connections are closed.
    await expect.poll(openConnections).toBe(5)
  })

  it('the place of a connection that was refused too often is taken at once: no mail waits for a greeting (I30)', async () => {
    const greeted = new Set<string>()
    const carriers: string[] = []
    const { sendTo } = await open({
      onConnect({ id }, done) {
        done()
        greeted.add(id)
      },
      onRcptTo({ address }, { id }, done) {
        if (!address.startsWith('nowhere')) carriers.push(id)
        done(address.startsWith('nowhere') ? refusal(450) : null)
      },
    })
    await Promise.all([sendTo('ada'), sendTo('grace')])
    for (let round = 1; round <= 5; round++) {
      for (let mail = 0; mail < 4; mail++) await sendTo('nowhere')
      const before = new Set(greeted)
      await sendTo('ada')
      expect(before).toContain(carriers.at(-1))
      await expect.poll(() => greeted.size).toBe(2 + round)
    }
  })

  it('a recipient whose RCPT is never answered: postponed, and the server is known to live before it is late (I30)', async () => {
    const { sendTo } = await open(
      {
        onRcptTo({ address }, _session, done) {
          if (!address.startsWith('silent')) done(null)
        },
      },
      { timeoutMs: 2_000 },
    )
    const result = { kind: 'postponed', retryAfterMs: 30_000, detail: 'SMTP no answer in time' }
    // Again where a busy machine was late.
    await eventually(async () => {
      const startMs = performance.now()
      const signsMs: number[] = []
      const sign = () => signsMs.push(performance.now() - startMs)
      const silent = Promise.all(
        ['silent1', 'silent2', 'silent3'].map((name) => sendTo(name, sign)),
      )
      await expect.poll(() => signsMs.length).toBe(3)
      expect(await sendTo('ada', sign)).toMatchObject({ kind: 'accepted' })
      expect(await silent).toEqual([result, result, result])
      expect(signsMs).toHaveLength(3)
      // The circuit counts a call without a sign as late after 1.5 s.
      expect(Math.max(...signsMs)).toBeLessThan(1_400)
    })
  })

  it('a server that no longer greets is away, for every recipient; so is one that is silent after the message', async () => {
    const { behave, send } = await open({}, { timeoutMs: 1_500 })
    await behave('hang')
    let signs = 0
    const result = await send({}, () => signs++)
    expect([result.kind, signs]).toEqual(['unavailable', 0])
    expect(resultOfFailure({ code: 'ETIMEDOUT' }, true, true).kind).toBe('unknown')
    expect(resultOfFailure({ code: 'ECONNECTION' }, false, true).kind).toBe('unavailable')
  })

  it.each([
    ['hangs up at MAIL, after a mail on the connection', 'cut', 1, 'accepted', 2],
    ['hangs up at MAIL, on a new connection', 'cut', 0, 'unavailable', 1],
    ['answers MAIL with 421, after a mail on the connection', '421', 1, 'accepted', 2],
    ['answers MAIL with 421, on a new connection', '421', 0, 'unavailable', 1],
  ] as const)(
    'a server that %s: another connection only for a connection that was used',
    async (_, how, mailsBefore, kind, expected) => {
      let mails = 0
      const { behave, taken, send, connectionCount } = await open({
        onMailFrom(_address, _session, done) {
          if (mails++ !== mailsBefore) done()
          else if (how === 'cut') behave('accept')
          else done(refusal(421))
        },
      })
      for (let mail = 0; mail < mailsBefore; mail++) await send()
      expect((await send()).kind).toBe(kind)
      expect(connectionCount()).toBe(expected)
      expect(taken).toHaveLength(mailsBefore + Number(kind === 'accepted'))
    },
  )

  it('a server that hangs up after the message, on a connection that was used: unknown, and not sent again', async () => {
    let mails = 0
    const { behave, provider, send, connectionCount } = await open({
      onData(stream, _session, done) {
        stream.resume()
        stream.on('end', () => {
          if (++mails === 2) behave('accept')
          else done()
        })
      },
    })
    const kindOfSend = async () => (await send()).kind
    expect([await kindOfSend(), await kindOfSend()]).toEqual(['accepted', 'unknown'])
    expect([mails, connectionCount()]).toEqual([2, 1])
    await provider.close()
    expect(await kindOfSend()).toBe('unavailable')
    expect([mails, connectionCount()]).toEqual([2, 1])
  })

  it('an idle connection that went silent, while the server greets others → a new one at once, one mail', async () => {
    const { port, taken } = await open()
    const relay = await startForgetfulRelay(port)
    const { send } = await open({}, {}, { url: () => `smtp://127.0.0.1:${relay.port}` })
    expect((await send()).kind).toBe('accepted')
    relay.forget()
    const startMs = performance.now()
    expect((await send()).kind).toBe('accepted')
    // Far below the time limit of 20 s.
    expect(performance.now() - startMs).toBeLessThan(8_000)
    expect(taken).toHaveLength(2)
  })

  it('a mail is refused while the server is probed → the next mail keeps the connection, and is answered', async () => {
    let [connections, recipients] = [0, 0]
    const probe = { greet: () => {}, closed: Promise.withResolvers<void>() }
    const probed = Promise.withResolvers<void>()
    const { send } = await open({
      onConnect(_session, done) {
        connections++
        if (connections !== 2) return done()
        probe.greet = done
        probed.resolve()
      },
      onClose: () => probe.closed.resolve(),
      async onRcptTo(_to, _session, done) {
        recipients++
        if (recipients !== 2) return done()
        await probed.promise
        done(refusal(450))
      },
      onData(stream, _session, done) {
        stream.resume()
        stream.on('end', async () => {
          if (recipients < 3) return done()
          probe.greet()
          await probe.closed.promise
          await setTimeout(100)
          done()
        })
      },
    })
    expect((await send()).kind).toBe('accepted')
    expect((await send()).kind).toBe('postponed')
    expect((await send()).kind).toBe('accepted')
    expect(connections).toBe(2)
  })

  it('a server that is usually slow keeps its connection', async () => {
    let slowMs = 1_200
    const { send, connectionCount } = await open({
      onRcptTo: (_to, _session, done) => void globalThis.setTimeout(done, slowMs),
    })
    await send()
    slowMs = 1_000
    await send()
    // Each slow mail has one probe.
    expect(connectionCount()).toBe(3)
  })

  it('an answer to the message after the time limit of the connection → accepted, one mail', async () => {
    const taken: string[] = []
    const options: SMTPServerOptions = {
      onData(stream, _session, done) {
        stream.resume()
        stream.on('end', () => {
          taken.push('mail')
          globalThis.setTimeout(done, 900)
        })
      },
    }
    const { send } = await open(options, { timeoutMs: 500, answerMs: 20_000 })
    expect((await send()).kind).toBe('accepted')
    expect(taken).toHaveLength(1)
  })

  it('a mail just before the idle time ends is answered, and QUIT follows only after the whole time', async () => {
    const { openConnections, taken, send } = await open()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true })
    await send()
    vi.advanceTimersByTime(59_000)
    expect((await send()).kind).toBe('accepted')
    expect(taken).toHaveLength(2)
    vi.advanceTimersByTime(50_000)
    await new Promise((resolve) => setImmediate(resolve))
    expect(openConnections()).toBe(1)
    vi.advanceTimersByTime(10_000)
    await vi.waitFor(() => expect(openConnections()).toBe(0))
  })

  it.each([
    ['smtp://mail.acme.test', 'auto'],
    ['smtp://user:pass@mail.acme.test', 'required'],
    ['smtp://user:pass@mail.acme.test?tls=auto', 'auto'],
    ['smtp://user:pass@10.0.0.5:25', 'required'],
    ['smtp://user:pass@mail.acme.test?tls=off', 'off'],
    ['smtp://user:pass@localhost', 'auto'],
    ['smtp://user:pass@127.0.0.2:25', 'auto'],
    ['smtp://user:pass@[::1]:25', 'auto'],
    ['smtp://user:pass@127.0.0.1.evil.test', 'required'],
  ])('%s → tls %s', (url, tls) => {
    expect(smtp.settings.parse({ url, from }).url.tls).toBe(tls)
  })

  it('a connection stays open for a minute without a mail, whatever the time limit of a mail', async () => {
    const timeoutMs = 300
    const { openConnections, send } = await open({}, { timeoutMs })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true })
    expect((await send()).kind).toBe('accepted')
    vi.advanceTimersByTime(59_000)
    await setTimeout(2 * timeoutMs)
    expect(openConnections()).toBe(1)
    vi.advanceTimersByTime(1_000)
    await vi.waitFor(() => expect(openConnections()).toBe(0))
  })

  it('sends over a new connection when the server has closed the idle one', async () => {
    const { behave, taken, send } = await open()
    for (let turn = 0; turn < 3; turn++) {
      expect((await send()).kind).toBe('accepted')
      await behave('accept')
    }
    expect(taken).toHaveLength(3)
  })

  it.each([
    ['http://host', 'smtp://'],
    ['nonsense', 'must be a URL'],
    ['smtp://host?tls=maybe', 'tls must be one of'],
    ['smtp://host?pool=true', 'allows no query'],
    ['smtps://host?tls=off', 'contradict'],
    ['smtp://user:se%cret@host', 'without two hexadecimal digits'],
    ['smtp://host/path', 'not have a path'],
  ])('refuses the setting %s and does not repeat it', (url, words) => {
    const checked = smtp.settings.safeParse({ url, from })
    expect(checked.success).toBe(false)
    expect(JSON.stringify(checked.error?.issues)).toContain(words)
    expect(JSON.stringify(checked.error?.issues)).not.toContain('se%cret')
  })

  it.each([
    ['Acme (Billing) <a@b.test>', 'Acme (Billing)'],
    ['Acme, Inc. <a@b.test>', 'Acme, Inc.'],
    ['"Acme, Inc." <a@b.test>', 'Acme, Inc.'],
    ['A;B: "Q" <a@b.test>', 'A;B: "Q"'],
    ['"Acme \\"Q\\" Co" <a@b.test>', 'Acme "Q" Co'],
    ['中文 <a@b.test>', '中文'],
    [' <a@b.test> ', ''],
    ['a@b.test', ''],
  ])('the name of the sender %j is shown as %j', async (text, name) => {
    const { taken, send } = await open({}, {}, { from: text })
    await send()
    const { from: shown } = await PostalMime.parse(taken[0]?.mail ?? '')
    expect(shown).toEqual({ name, address: 'a@b.test' })
  })

  it('a domain of the sender with other letters → ASCII in every header and in the message id', async () => {
    const { taken, send } = await open({}, {}, { from: 'Acme <no-reply@müller.test>' })
    const noticeId = newId()
    const result = await send({ noticeId })
    expect(result).toEqual({ kind: 'accepted', messageId: `<${noticeId}@xn--mller-kva.test>` })
    expect(taken[0]?.mail.split('\r\n\r\n')[0]).toMatch(/^[\r\n -~]*$/)
  })

  it.each([
    '',
    'nobody',
    'a@b.test, c@d.test',
    'group: a@b.test;',
    'Acme <b> <a@b.test>',
    'Acme <a@b.test',
    'a@b.test Acme',
    'Acme <a@b@c.test>',
  ])('refuses from: %j', (wrong) => {
    expect(smtp.settings.safeParse({ url: 'smtp://host', from: wrong }).success).toBe(false)
  })
})
