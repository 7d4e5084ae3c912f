/** Workflows together with test recipients, challenges of pages, known browsers, prices, and a new SECRET. */
import { expect, test } from 'vitest'
import { testDatabase } from '../tools/database.ts'
import { newPerson, otherThan } from '../tools/people.ts'
import { noLimits, type Postern, startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { testRedis } from '../tools/redis.ts'
import { solveChallenge } from '../tools/solve-challenge.ts'

const ok = [{ use: ['ok'] }]
const base = {
  code: { length: 6, triesPerCode: 3 },
  providers: { ok: { kind: 'sandbox' } },
  workflows: { all: ['sms', 'voice', 'email'] },
  browser: { workflows: ['all'] },
  routes: { sms: ok, email: ok, voice: ok },
}
const testNumber = '+8613800000042'
/** The second send to a number, by any channel, asks for a challenge. A message to a British number costs more than a call. */
const postern = await startPostern({
  env: { LOG_LEVEL: 'error' },
  policyFile: {
    ...base,
    policies: {
      captcha: [
        { ...{ name: 'sends', key: '{to}:{lane}', sliding: '1 per 1h' }, mode: 'challenge' },
        { name: 'spend', key: '{country}', sliding: '100 per 24h', permits: 'price' },
      ],
      notice: [],
      check: [{ name: 'guesses', key: '{channel}:{to}:{lane}', fixed: '9 per 1h' }],
    },
    challenge: { kind: 'altcha', tries: 5 },
    prices: { default: 1, email: 1, voice: 20, GB: 50 },
    testing: { recipients: [{ to: testNumber, code: '424242' }], until: '2999-12-31' },
  },
})

const send = (person: object, options = {}, on: Postern = postern) =>
  on.post('/v1/captchas', { workflow: 'all', ...person }, options)
const next = (id: string, more = {}, options = {}, on: Postern = postern) =>
  on.post(`/v1/captchas/${id}/next`, more, options)
const check = (id: string, code: string, more = {}, on: Postern = postern) =>
  on.post('/v1/captchas/check', { id, code, ...more })
const view = async (id: string) => (await postern.get(`/v1/captchas/${id}`)).body

test('a test recipient: each way begins without a message, and the fixed code passes once', async () => {
  const sent = await send({ to: testNumber })
  expect(sent).toMatchObject({
    status: 202,
    body: { way: { channel: 'sms', of: 2 }, codeLength: 6 },
  })
  const { id } = sent.body
  expect(await next(id)).toMatchObject({ status: 202, body: { way: { channel: 'voice' } } })
  expect(await next(id)).toMatchObject({ status: 409, body: { code: 'no_more_ways' } })
  expect(await postern.messages(testNumber)).toEqual([])
  expect(await check(id, '424243')).toMatchObject({ status: 422, body: { triesLeft: 2 } })
  expect(await check(id, '424242')).toMatchObject({ status: 200, body: { id } })
  expect((await check(id, '424242', { scene: 'default' })).status).toBe(200)
  expect((await next(id)).status).toBe(410)
})

test('a page: next asks for a challenge, an answer begins the way, and is used once', async () => {
  const origin = 'https://shop.example'
  const key = await publishableKey(postern.database, { app: 'default', origins: [origin] })
  const page = { key, headers: { origin } }
  const solved = async () =>
    solveChallenge((await postern.post('/v1/challenges', {}, page)).body.challenge)
  const { id } = (await send(newPerson(), page)).body
  expect(await next(id, {}, page)).toMatchObject({
    status: 403,
    body: { code: 'challenge_required' },
  })
  expect((await view(id)).ways[1].state).toBe('waiting')
  const challenge = await solved()
  expect(await next(id, { challenge }, page)).toMatchObject({
    status: 202,
    body: { way: { index: 2 } },
  })
  expect((await next(id, { challenge }, page)).status).not.toBe(202)
  expect(await next(id, { challenge: await solved() }, page)).toMatchObject({
    status: 202,
    body: { way: { channel: 'email' } },
  })
})

test('a known browser: its ways count in its lane, and it passes after strangers have used up their tries', async () => {
  const { to } = newPerson()
  const person = { to }
  const first = (await send(person)).body.id
  const passed = await check(first, await postern.codeFor(to), { known: true })
  const { known } = passed.body
  expect(known).toEqual(expect.any(String))
  const sent = await send({ ...person, known })
  expect(sent.status).toBe(202)
  const { id } = sent.body
  const code = await postern.codeFor((await view(id)).ways[0].noticeId)
  for (const triesLeft of [2, 1, 0]) {
    expect(await check(id, otherThan(code))).toMatchObject({ status: 422, body: { triesLeft } })
  }
  expect((await check(id, code)).status).toBe(410)
  // By the lane of the person, the verification goes on.
  expect((await next(id, {})).status).toBe(202)
  expect(await check(id, code, { known })).toMatchObject({ status: 200, body: { id } })
})

test('prices: each way costs the price of its channel, or the price of its country', async () => {
  // The message costs 50 and the call 20, so a second verification can begin no message, and its call is affordable.
  const { id } = (await send({ to: '+447400123001' })).body
  expect(await next(id)).toMatchObject({ status: 202, body: { way: { channel: 'voice' } } })
  expect(await send({ to: '+447400123002' })).toMatchObject({
    status: 429,
    body: { rule: 'spend' },
  })
  const call = { channel: 'voice', to: '+447400123003' }
  expect((await postern.post('/v1/captchas', call)).status).toBe(202)
  expect(await postern.post('/v1/captchas', { ...call, to: '+447400123004' })).toMatchObject({
    status: 429,
  })
})

test('a new SECRET: a process of each step begins ways, checks and cancels verifications of the other (I35)', async () => {
  const [before, after] = [
    'the secret before, of thirty-two bytes',
    'the secret after, of thirty-two bytes',
  ]
  const steps = [
    { SECRET: before, SECRET_PREVIOUS: after },
    { SECRET: after, SECRET_PREVIOUS: before },
  ]
  const policyFile = { ...base, policies: noLimits }
  const on = { redis: await testRedis(), database: await testDatabase() }
  const [one, other] = (await Promise.all(
    steps.map((env) =>
      startPostern({
        on,
        policyFile,
        env: { LOG_LEVEL: 'error', BOOTSTRAP_SECRET_KEY: 'psk_of_both_processes', ...env },
      }),
    ),
  )) as [Postern, Postern]
  for (const [maker, user] of [
    [one, other],
    [other, one],
  ] as const) {
    const person = newPerson()
    const { id } = (await send(person, {}, maker)).body
    expect(await next(id, {}, {}, user)).toMatchObject({ status: 202, body: { way: { index: 2 } } })
    expect(await next(id, {}, {}, maker)).toMatchObject({
      status: 202,
      body: { way: { index: 3 } },
    })
    const code = await user.codeFor(person.email)
    expect(await check(id, otherThan(code), {}, user)).toMatchObject({ body: { triesLeft: 2 } })
    expect(await check(id, otherThan(code), {}, maker)).toMatchObject({ body: { triesLeft: 1 } })
    expect(await check(id, code, {}, user)).toMatchObject({ status: 200, body: { id } })
    // A send by the other process ends the verification, under either name.
    const second = (await send(person, {}, maker)).body.id
    const plain = await user.post('/v1/captchas', { channel: 'sms', to: person.to })
    expect(plain.status).toBe(202)
    expect((await next(second, {}, {}, maker)).status).toBe(410)
    // A verification ends a plain code to its mail address.
    const mail = { channel: 'email', to: person.email }
    const { id: old } = (await user.post('/v1/captchas', mail)).body
    const mailCode = await user.codeFor(old)
    const third = (await send(person, {}, maker)).body.id
    for (const on of [user, maker]) await next(third, {}, {}, on)
    expect((await maker.post('/v1/captchas/check', { ...mail, code: mailCode })).status).not.toBe(
      200,
    )
    expect((await user.post(`/v1/captchas/${third}/cancel`, {})).status).toBe(204)
    expect((await next(third, {}, {}, maker)).status).toBe(410)
  }
})
