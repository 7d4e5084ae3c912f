/** The check of a provider's credentials, which sends nothing. */
import { expect, test } from 'vitest'
import { examineProviders } from '../../src/providers/examine-providers.ts'
import { createProviderKinds } from '../../src/providers/kinds.ts'
import type { ProviderKind } from '../../src/providers/provider-kind.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { startSmtp } from '../tools/smtp.ts'
import { startHttpFarEnd } from './far-ends/http.ts'
import { startSmppFarEnd } from './far-ends/smpp.ts'

const sid = `AC${'0'.repeat(32)}`

async function examine(entry: { kind: string } & Record<string, unknown>) {
  const { kind: name, ...settings } = entry
  const kind = createProviderKinds().find(name) as ProviderKind
  return examineKind(kind, kind.settings.parse(settings))
}

async function examineKind(kind: ProviderKind, settings: unknown) {
  const [finding] = await examineProviders(new Map([['p', { kind, settings }]]), 1_000)
  return finding
}

test('smtp: taken, refused, away', async () => {
  const server = await startSmtp({
    authOptional: false,
    allowInsecureAuth: true,
    onAuth: ({ username, password }, _, done) =>
      username === 'u' && password === 'right'
        ? done(null, { user: 'u' })
        : done(new Error('535 wrong password for u')),
  })
  const smtp = (login: string, port = server.port) =>
    examine({ kind: 'smtp', url: `smtp://${login}@127.0.0.1:${port}`, from: 'a@acme.test' })
  expect(await smtp('u:right')).toMatchObject({ state: 'ok', subject: 'provider p' })
  const refused = await smtp('u:wrong')
  expect(refused).toMatchObject({ state: 'error', message: expect.stringMatching(/^SMTP 535/) })
  expect(JSON.stringify(refused)).not.toContain('wrong')
  expect(await smtp('u:right', 1)).toMatchObject({
    state: 'error',
    message: expect.stringMatching(/ECONNREFUSED|connection lost/),
  })
  expect(server.mails).toEqual([])
})

test('smtp without AUTH: a login that was not tried is reported, and a URL without a login', async () => {
  const { port } = await startSmtp({ disabledCommands: ['STARTTLS', 'AUTH'] })
  const smtp = (login: string) =>
    examine({ kind: 'smtp', url: `smtp://${login}127.0.0.1:${port}`, from: 'a@acme.test' })
  expect(await smtp('u:right@')).toMatchObject({
    state: 'error',
    message: 'SMTP server offers no login',
  })
  expect(await smtp('')).toMatchObject({ state: 'ok', message: 'smtp answers; no login is set' })
})

/** Linux connects this to 127.0.0.1, but it is not known as an address of this machine. */
const elsewhere = '0.0.0.0'

test.for([
  ['a login, tls=auto', 'u:right@', elsewhere, 'tls=auto', 'warning'],
  ['a login, tls=off', 'u:right@', elsewhere, 'tls=off', 'warning'],
  ['no login', '', elsewhere, 'tls=auto', 'ok'],
  ['a server on this machine', 'u:right@', '127.0.0.1', 'tls=off', 'ok'],
] as const)(
  'smtp that works without TLS, %s → a warning only if a login would cross a network',
  async ([, login, host, tls, state]) => {
    const { port } = await startSmtp({
      allowInsecureAuth: true,
      onAuth: (_, __, done) => done(null, { user: 'u' }),
    })
    const url = `smtp://${login}${host}:${port}?${tls}`
    const finding = await examine({ kind: 'smtp', url, from: 'a@acme.test' })
    expect(finding?.state).toBe(state)
    if (state === 'ok') return
    expect(finding?.message).toContain('without TLS')
    expect(finding?.advice).toContain('smtps://')
  },
)

test('twilio: taken, refused, suspended, silent', async () => {
  let status = 'active'
  const farEnd = await startHttpFarEnd(({ method, path, headers }) => {
    const isOurs =
      headers.authorization === `Basic ${Buffer.from(`${sid}:token`).toString('base64')}`
    if (method !== 'GET' || path !== `/2010-04-01/Accounts/${sid}.json`)
      return { status: 404, body: '{}' }
    return { status: isOurs ? 200 : 401, body: JSON.stringify({ sid, status }) }
  })
  releaseLater(() => farEnd.close())
  const twilio = (authToken: string) =>
    examine({
      kind: 'twilio',
      accountSid: sid,
      authToken,
      from: '+15005550006',
      endpoint: `http://127.0.0.1:${farEnd.port}`,
    })
  expect(await twilio('token')).toMatchObject({ state: 'ok' })
  expect(await twilio('other')).toMatchObject({
    state: 'error',
    message: 'twilio refuses this accountSid with this authToken',
  })
  status = 'suspended'
  expect(await twilio('token')).toMatchObject({
    message: 'twilio: the account is not active (suspended)',
  })
  farEnd.behave('hang')
  expect(await twilio('token')).toMatchObject({
    state: 'error',
    message: 'twilio: no answer in time',
  })
})

test('smpp: taken, refused, silent', async () => {
  const farEnd = closeLater(await startSmppFarEnd())
  const smpp = (password: string) =>
    examine({
      kind: 'smpp',
      url: `smpp://postern:${password}@127.0.0.1:${farEnd.port}`,
      from: 'Acme',
    })
  expect(await smpp('pass')).toMatchObject({ state: 'ok' })
  expect(await smpp('nope')).toMatchObject({
    state: 'error',
    message: expect.stringMatching(/^SMPP bind refused/),
  })
  farEnd.behave('hang')
  expect(await smpp('pass')).toMatchObject({ state: 'error' })
})

test('others report that they cannot be asked', async () => {
  const webhook = { kind: 'webhook', url: 'http://127.0.0.1:1', secret: 'a secret of the carrier' }
  expect(await examine(webhook)).toMatchObject({
    state: 'ok',
    message: expect.stringMatching(/can't check credentials without sending/),
  })
  expect(await examine({ kind: 'sandbox' })).toMatchObject({ state: 'ok' })
})

test('a kind of another author: a probe that throws, one that never ends', async () => {
  const kind = createProviderKinds().find('sandbox') as ProviderKind
  const probed = (probe: ProviderKind['probe']) => examineKind({ ...kind, kind: 'acme', probe }, {})
  expect(
    await probed(() => {
      throw new Error('no such thing')
    }),
  ).toMatchObject({ state: 'error', message: 'the provider kind failed: no such thing' })
  expect(await probed(() => new Promise(() => {}))).toMatchObject({
    state: 'error',
    message: expect.stringMatching(/^no result within /),
  })
})
