/** Programs of examples/ that have no page. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { signWebhook } from '../../src/crypto/standard-webhooks.ts'
import { findOrInstall } from '../../src/dev/find-or-install.ts'
import { startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'
import { judgements } from './passes.ts'
import { installExamples, startServer } from './run-example.ts'

/** Begins a body and goes. Resolves when the connection has closed. */
async function leaveInMidBody(origin: string, path = '/'): Promise<void> {
  const socket = connect(Number(new URL(origin).port), '127.0.0.1')
  await once(socket, 'connect')
  socket.end(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nabc`)
  await once(socket.resume(), 'close')
}

test('examples/login-lock: three wrong passwords lock one account, a right one clears, and without an answer no visitor gets in', async () => {
  const postern = await startPostern()
  const start = (key: string) => {
    const env = { POSTERN_URL: postern.url, SECRET_KEY: key }
    return startServer('examples/login-lock/server.mjs', () => env)
  }
  const [server, misconfigured] = [await start(postern.key), await start('psk_of_nobody')]
  const logIn = async (user: string, password: string, { origin } = server) => {
    const body = new URLSearchParams({ user, password })
    const answer = await fetch(origin, { method: 'POST', body })
    return [answer.status, answer.headers.get('retry-after'), await answer.text()]
  }
  // More than the rule admits, but each right password clears.
  for (const user of ['ada', 'Ada', 'ada', 'ada', 'ada'])
    expect(await logIn(user, 'open sesame')).toEqual([200, null, 'Welcome!\n'])
  for (let guess = 0; guess < 3; guess++)
    expect(await logIn('ada', 'guess')).toEqual([401, null, 'Wrong name or password.\n'])
  expect(await logIn('ADA', 'open sesame')).toEqual([429, '900', 'Locked for 900 s.\n'])
  expect(await logIn('bob', 'guess')).toEqual([401, null, 'Wrong name or password.\n'])

  await leaveInMidBody(server.origin)
  const unknown = [503, null, 'Please try again in a minute.\n']
  expect(await logIn('ada', 'open sesame', misconfigured)).toEqual(unknown)
  await postern.stop()
  expect(await logIn('ada', 'open sesame')).toEqual(unknown)
})

test('examples/events: what Postern sends is printed once, and what it did not sign is refused', async () => {
  const folder = join(await installExamples(['events']), 'events')
  const secret = `whsec_${Buffer.from('the key of the example').toString('base64')}`
  const receiver = await startServer('receiver.mjs', () => ({ EVENTS_SECRET: secret }), folder)
  const postern = await startPostern({ policyFile: { events: { url: receiver.origin, secret } } })
  const to = '+8613800138000'
  const sent = await postern.post('/v1/captchas', { channel: 'sms', to })
  const code = await postern.codeFor(sent.body.id)
  await postern.post('/v1/captchas/check', { channel: 'sms', to, code })
  const lines = () => receiver.output().split('\n').slice(1, -1).sort()
  await eventually(() =>
    expect(lines()).toEqual(['captcha.passed +8613****8000', 'notice.sent +8613****8000']),
  )

  await leaveInMidBody(receiver.origin)
  const body = JSON.stringify({ type: 'notice.failed', data: { to: 'a repeat' } })
  const headers = { ...signWebhook(secret, 'an id', Date.now(), body) }
  for (const _ of [1, 2])
    expect((await fetch(receiver.origin, { method: 'POST', headers, body })).status).toBe(204)
  expect((await fetch(receiver.origin, { method: 'POST', body })).status).toBe(401)
  expect(lines().filter((line) => line.startsWith('notice.failed'))).toHaveLength(1)
})

const asExpected = {
  ofItsApp: ['good', 'refused', 'refused', 'refused', 'refused', 'good'],
  ofAnotherApp: ['refused'],
}
const judging = 'each is good once, and what is used, altered, of another scene or app is refused'

test(`examples/passes in Node: ${judging}`, async () => {
  expect(await judgements('node', ['examples/passes/verify.mjs'])).toEqual(asExpected)
})

test(`examples/passes in Python: ${judging}`, async () => {
  // Debian's Python with Debian's PyJWT, which has no program to look for.
  const library = '../lib/python3/dist-packages/jwt/api_jwt.py'
  findOrInstall(
    [library],
    'python3-jwt',
    'This test needs PyJWT (Debian: apt-get install python3-jwt).',
  )
  expect(await judgements('/usr/bin/python3', ['examples/passes/verify.py'])).toEqual(asExpected)
})
