/** Test recipients through the whole product: a fixed code, and no other effect of a send. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startPostern } from '../tools/postern.ts'

const phone = '+15005550006'
const mail = 'reviewer@acme.test'
const oneEach = (key: string, name = 'recipient') => ({ name, key, sliding: '1 per 1h' })
const postern = await startPostern({
  policyFile: {
    code: { length: 4, triesPerCode: 3 },
    recipients: { countries: ['CN'], mail: { refuse: ['acme.test'] } },
    testing: {
      recipients: [
        { to: phone, code: '0042' },
        { to: mail, code: '1234' },
      ],
      until: '2999-12-31',
    },
    policies: {
      captcha: [
        oneEach('{channel}:{to}'),
        oneEach('{mailbox}', 'mailbox'),
        oneEach('{prefix}', 'prefix'),
        oneEach('{country}', 'country'),
        oneEach('{dedupe}', 'duplicate'),
        { name: 'spend', key: '{app}', sliding: '100 per 24h', permits: 'price' },
        { name: 'ip', key: '{ip}', sliding: '3 per 1h' },
        { name: 'app', key: '{app}', sliding: '1000 per 1h' },
      ],
      notice: [oneEach('{dedupe}')],
      check: [
        { name: 'guesses', key: '{to}:{ip}', lockout: { limit: 5, window: '5m', lock: '15m' } },
        { name: 'ip', key: '{ip}', lockout: { limit: 100, window: '5m', lock: '15m' } },
      ],
    },
    prices: { default: 100 },
    // A test recipient needs no route.
    routes: { email: [{ use: ['sandbox'] }], sms: [] },
    providers: { sandbox: { kind: 'sandbox' } },
  },
})
const send = (body: object, ip = '198.51.100.1', headers = {}) =>
  postern.post('/v1/captchas', { ip, ...body }, { headers })
const check = (to: string, code: string, more = {}) =>
  postern.post('/v1/captchas/check', {
    channel: to.includes('@') ? 'email' : 'sms',
    to,
    code,
    ip: '198.51.100.1',
    ...more,
  })
const sms = { channel: 'sms', to: phone }

async function metric(name: string): Promise<number> {
  const response = await fetch(`${postern.adminUrl}/metrics`)
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith(name))
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

test('a send: 202 like any other; no row, no message; its fixed code passes, once', async () => {
  const before = await metric('postern_test_sends_total')
  const { status, headers, body } = await send({ ...sms, to: '+1 (500) 555-0006' })
  expect(status).toBe(202)
  expect(body).toEqual({
    id: expect.any(String),
    channel: 'sms',
    to: '+150****0006',
    scene: 'default',
    state: 'pending',
    expiresAt: expect.any(String),
    resendAt: expect.any(String),
    codeLength: 4,
  })
  expect(Date.parse(body.expiresAt) - Date.now()).toBeGreaterThan(290_000)
  expect(headers.get('location')).toBe(`/v1/notices/${body.id}`)
  expect((await postern.get(`/v1/notices/${body.id}`)).status).toBe(404)
  const { rows } = await postern.database.pool.query('SELECT count(*)::int AS count FROM notice')
  expect(rows[0].count).toBe(0)
  expect(await check(phone, '0042')).toMatchObject({ status: 200, body: { id: body.id } })
  expect((await check(phone, '0042')).status).toBe(410)
  expect(await postern.messages()).toEqual([])
  expect(await metric('postern_test_sends_total')).toBe(before + 1)
  expect(await metric('postern_accepted_total')).toBe(0)
  // A right code is not counted. A check without a code is.
  expect(await metric('postern_checks_total')).toBe(1)
})

test('a mail address with any domain; in capitals; by its id only', async () => {
  const first = await send({ channel: 'email', to: 'Reviewer@Acme.TEST' })
  const second = await send({ channel: 'email', to: mail })
  expect([first.status, second.status]).toEqual([202, 202])
  expect((await check(mail, '1234', { id: first.body.id })).status).toBe(410)
  expect((await check(mail, '1234', { id: second.body.id })).status).toBe(200)
})

test('tries per code hold: after three wrong guesses the right one is gone', async () => {
  await send(sms, '198.51.100.2')
  for (const triesLeft of [2, 1, 0]) {
    expect(await check(phone, '9999')).toMatchObject({ status: 422, body: { triesLeft } })
  }
  expect((await check(phone, '0042')).status).toBe(410)
  await send(sms, '198.51.100.2')
  expect((await check(phone, '0042', { ip: '198.51.100.3' })).status).toBe(200)
})

test('a fixed code is guessed at no faster than any other: checks are locked, counted and remembered', async () => {
  const ip = '198.51.100.77'
  const counted = await metric('postern_checks_total')
  const statuses: number[] = []
  for (let guess = 0; guess < 7; guess++) {
    await send(sms, `198.51.100.${20 + guess}`)
    statuses.push((await check(phone, `900${guess}`, { ip })).status)
  }
  expect(statuses).toEqual([422, 422, 422, 422, 422, 429, 429])
  expect(await metric('postern_checks_total')).toBe(counted + 7)
  await send(sms, '198.51.100.30')
  expect((await check(phone, '0042', { ip: '198.51.100.78' })).status).toBe(200)
})

test('limits by address, app and key hold, those about the recipient do not', async () => {
  const statuses = []
  for (let count = 0; count < 4; count++) statuses.push(await send(sms, '198.51.100.9'))
  expect(statuses.map(({ status }) => status)).toEqual([202, 202, 202, 429])
  expect(statuses.at(-1)?.body).toMatchObject({ code: 'limited', policy: 'captcha', rule: 'ip' })
})

test('tests take nothing from real sends', async () => {
  const ip = '198.51.100.11'
  for (let count = 0; count < 3; count++) await send(sms, ip)
  expect((await send({ channel: 'email', to: 'ada@example.com' }, ip)).status).toBe(202)
})

test('an Idempotency-Key: the same answer, and one send', async () => {
  const headers = { 'idempotency-key': randomUUID() }
  const before = await metric('postern_test_sends_total')
  const first = await send(sms, '198.51.100.12', headers)
  const again = await send(sms, '198.51.100.12', headers)
  expect(again.body).toEqual(first.body)
  expect(await metric('postern_test_sends_total')).toBe(before + 1)
})

test('a notice: 202, and nothing is sent', async () => {
  const messages = await postern.messages()
  const counted = () => metric('postern_test_sends_total{channel="email"')
  const before = await counted()
  const body = { channel: 'email', to: mail, template: 'welcome', params: { name: 'Ada' } }
  const wrong = await postern.post('/v1/notices', { ...body, template: 'nothing' })
  expect(wrong.status).toBe(400)
  for (let count = 0; count < 2; count++) {
    const { status, body: answer } = await postern.post('/v1/notices', body)
    expect(status).toBe(202)
    expect((await postern.get(`/v1/notices/${answer.id}`)).status).toBe(404)
  }
  expect(await counted()).toBe(before + 2)
  expect(await postern.messages()).toEqual(messages)
})
