/** The lane of known browsers: a stranger uses up no limit, no try and no lock of a person who once typed a right code. */
import { createPrivateKey } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { createApiKeys } from '../../src/access/api-keys.ts'
import { databaseAt } from '../tools/database.ts'
import { newPhone, otherThan } from '../tools/people.ts'
import { startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'
import { openApiAnswers } from './openapi-answers.ts'

const key = '{app}:{channel}:{to}:{lane}'
const lockout = { limit: 3, window: '15m', lock: '15m' }
const policies = {
  captcha: [{ name: 'recipient', key, sliding: '2 per 1h' }],
  notice: [],
  check: [{ name: 'guesses', key, lockout }],
}
const postern = await startPostern({ policyFile: { policies, browser: { rules: [] } } })
const { expectPromised } = await openApiAnswers(postern)
const database = databaseAt(postern.database.url, 1)
const keys = createApiKeys(database)
const origin = 'https://shop.example'
const made = await keys.create({
  ...{ name: 'page', app: 'default', kind: 'publishable', origins: [origin] },
})
const page = { key: made.token, headers: { origin } }
const otherApp = (await keys.create({ name: 'other', app: 'other' })).token

async function call(path: string, body: object, options = {}) {
  const reply = await postern.post(path, body, options)
  expectPromised(`post ${path}`, reply)
  return reply
}
const send = (to: string, more = {}, options = {}) =>
  call('/v1/captchas', { channel: 'sms', to, ...more }, options)
const check = (to: string, code: string, more = {}, options = {}) =>
  call('/v1/captchas/check', { channel: 'sms', to, code, ...more }, options)

/** Sends a code and types it. */
async function signIn(to: string, more: object = {}, options = {}) {
  const sent = await send(to, 'known' in more && more.known === true ? {} : more, options)
  expect(sent.status).toBe(202)
  return check(to, await postern.codeFor(sent.body.id), more, options)
}
/** The token of a browser, in a lane with all its limits left. */
async function tokenOf(to: string): Promise<string> {
  const { known } = (await signIn(to, { known: true })).body
  await reset(to, ['limits', 'lock'])
  return known
}
const recipients = (path: string, body: object) => call(`/v1/recipients/${path}`, body)
const reset = (to: string, what: string[]) =>
  recipients('reset', { channel: 'sms', to, what, reason: 'asked' })

describe('a right code', () => {
  test('of a page → a token besides the pass', async () => {
    const to = newPhone()
    const { status, body } = await signIn(to, {}, page)
    expect(status).toBe(200)
    expect(Object.keys(body)).toEqual(['verified', 'id', 'scene', 'verifiedAt', 'pass', 'known'])
    expect(decodeProtectedHeader(body.known)).toMatchObject({ alg: 'ES256', typ: 'known+jwt' })
    expect(decodeJwt(body.known).aud).toBe('default')
  })

  test('of a server → a token only if it sent `known`, also one that is no longer valid', async () => {
    const to = newPhone()
    expect((await signIn(to)).body).not.toHaveProperty('known')
    const { known } = (await signIn(to, { known: true })).body
    expect(known).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/)
    const stranger = newPhone()
    const renewed = (await signIn(stranger, { known })).body.known
    expect(decodeJwt(renewed).sub).not.toBe(decodeJwt(known).sub)
  })

  test('repeated by its id within a minute → the same pass, and a token too', async () => {
    const to = newPhone()
    const { id } = (await send(to, {}, page)).body
    const code = await postern.codeFor(id)
    const [first, again] = [
      await check(to, code, { id }, page),
      await check(to, code, { id }, page),
    ]
    expect(again.body.pass).toBe(first.body.pass)
    expect(again.body.known).toMatch(/\./)
  })
})

describe('a valid token', () => {
  test('a send: the limits of strangers are used up, and the limits of its browser are not; and the other way', async () => {
    const to = newPhone()
    const known = await tokenOf(to)
    for (const status of [202, 202, 429]) expect((await send(to)).status).toBe(status)
    for (const status of [202, 202, 429]) expect((await send(to, { known })).status).toBe(status)
    const away = newPhone()
    const own = await tokenOf(away)
    for (const status of [202, 202, 429]) {
      expect((await send(away, { known: own }, page)).status).toBe(status)
    }
    expect((await send(away)).status).toBe(202)
  })

  test('two browsers of one person share one lane', async () => {
    const to = newPhone()
    const [one, other] = [await tokenOf(to), await tokenOf(to)]
    const statuses = [one, other, one, other].map((known) => () => send(to, { known }))
    const answers = []
    for (const next of statuses) answers.push((await next()).status)
    expect(answers).toEqual([202, 202, 429, 429])
  })

  test('a lock of strangers is not a lock of its browser, and its right code ends no lock of strangers', async () => {
    const to = newPhone()
    const known = await tokenOf(to)
    const code = otherThan(await postern.codeFor((await send(to)).body.id))
    for (const lockedForMs of [undefined, undefined, expect.any(Number)]) {
      const { status, body } = await check(to, code)
      expect([status, body.lockedForMs]).toEqual([422, lockedForMs])
    }
    expect((await check(to, code)).status).toBe(429)
    const { status, body } = await send(to, { known })
    expect([status, body.lockedForMs]).toEqual([202, undefined])
    expect((await check(to, await postern.codeFor(body.id), { known })).status).toBe(200)
    expect((await send(to)).body.lockedForMs).toBeGreaterThan(0)
    expect((await check(to, '0000')).body.code).toBe('locked')
  })
})

test('a code has its tries once per lane: strangers end it for strangers alone, and the look-up has both', async () => {
  const to = newPhone()
  const known = await tokenOf(to)
  const { id } = (await send(to, { known })).body
  const code = await postern.codeFor(id)
  const triesOf = async () => {
    const { codes } = (await recipients('lookup', { channel: 'sms', to })).body
    return codes.map((one: Record<string, number>) => [one.triesLeft, one.knownTriesLeft])
  }
  expect(await triesOf()).toEqual([[3, 3]])
  for (const triesLeft of [2, 1, 0]) {
    expect((await check(to, otherThan(code))).body).toMatchObject({ triesLeft })
  }
  // The lock of strangers ends first here: the tries are the second bound.
  await reset(to, ['lock'])
  expect((await check(to, code)).body.code).toBe('code_gone')
  expect(await triesOf()).toEqual([[0, 3]])
  expect((await check(to, otherThan(code), { known })).body).toMatchObject({ triesLeft: 2 })
  expect(await triesOf()).toEqual([[0, 2]])
  const passed = await check(to, code, { known, id })
  expect([passed.status, typeof passed.body.known]).toEqual([200, 'string'])
  expect((await postern.get(`/v1/notices/${id}`)).body.codeEnd).toBe('passed')
})

describe('a stranger, and no error', () => {
  const takeTwo = async (to: string, more: object) => {
    for (const status of [202, 202, 429]) expect((await send(to, more)).status).toBe(status)
    expect((await send(to)).status).toBe(429)
  }

  test("another recipient's, another app's, a pass, an altered token", async () => {
    const [to, other] = [newPhone(), newPhone()]
    await takeTwo(newPhone(), { known: await tokenOf(other) })
    const ofApp = { key: otherApp }
    const elsewhere = (await signIn(to, { known: true }, ofApp)).body.known
    await takeTwo(to, { known: elsewhere })
    const third = newPhone()
    const { pass, known } = (await signIn(third, { known: true })).body
    await reset(third, ['limits'])
    await takeTwo(third, { known: pass })
    await reset(third, ['limits'])
    await takeTwo(third, { known: `${known.slice(0, -4)}AAAA` })
  })

  test('a token whose time has ended, also for a check', async () => {
    const { createSigningKeys } = await import('../../src/captcha/signing-keys.ts')
    const { createSecrets } = await import('../../src/crypto/secrets.ts')
    const { knownSeeds } = createSecrets('a secret of at least thirty-two bytes')
    const { jwks } = await createSigningKeys(knownSeeds)
    const d = knownSeeds[0]?.(0).toString('base64url')
    const signing = createPrivateKey({ key: { ...jwks.keys[0], d } as never, format: 'jwk' })
    const to = newPhone()
    const known = await tokenOf(to)
    const sign = (exp: number) =>
      new SignJWT({ ...decodeJwt(known), exp })
        .setProtectedHeader(decodeProtectedHeader(known) as { alg: string })
        .sign(signing)
    const [ended, lasting] = [await sign(1_700_000_000), await sign(9_999_999_999)]
    await takeTwo(to, { known: ended })
    expect((await send(to, { known: lasting })).status).toBe(202)
    const { id } = (await send(to, { known: lasting })).body
    const { status, body } = await check(to, await postern.codeFor(id), { known: ended })
    expect([status, typeof body.known]).toEqual([200, 'string'])
  })
})

test.each([
  ['send', 'true', true],
  ['send', 'false', false],
  ['send', 'null', null],
  ['send', 'an empty text', ''],
  ['send', 'a word', 'token'],
  ['send', 'two parts', 'a.b'],
  ['send', 'four parts', 'a.b.c.d'],
  ['send', 'a space', 'a.b.c d'],
  ['send', 'a list', ['a.b.c']],
  ['send', 'more than 2 kB', `${'a'.repeat(2_000)}.b.c`],
  ['check', 'false', false],
  ['check', 'a number', 1],
  ['check', 'an object', {}],
  ['check', 'the text true', 'true'],
  ['check', 'dots', '..'],
  ['check', 'more than 2 kB', `a.${'b'.repeat(2_048)}.c`],
])('%s with %s as `known` → 400 that names it, and nothing is counted', async (what, _, known) => {
  const to = newPhone()
  const { id } = (await send(to)).body
  const code = await postern.codeFor(id)
  const reply = what === 'send' ? await send(to, { known }) : await check(to, code, { known })
  expect(reply).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  expect(reply.body.errors).toMatchObject([{ path: 'known' }])
  expect((await send(to)).status).toBe(202)
})

test('a repeat with the same Idempotency-Key and another token is a repeat', async () => {
  const to = newPhone()
  const known = await tokenOf(to)
  const options = { headers: { 'idempotency-key': 'same' } }
  const first = await send(to, {}, options)
  expect((await send(to, { known }, options)).body).toEqual(first.body)
})

describe('support', () => {
  test('reset: `lane` ends all earlier tokens, of this recipient alone, and is recorded', async () => {
    const [to, other] = [newPhone(), newPhone()]
    const [known, own] = [await tokenOf(to), await tokenOf(other)]
    const use = async (phone: string, token: string) => {
      for (let sent = 0; sent < 2; sent++) await send(phone)
      return (await send(phone, { known: token })).status
    }
    expect((await reset(to, ['lane'])).status).toBe(204)
    expect(await use(to, known)).toBe(429)
    expect(await use(other, own)).toBe(202)
    const { operations } = (await recipients('lookup', { channel: 'sms', to })).body
    expect(operations[0]).toMatchObject({ what: ['lane'], reason: 'asked' })
    await reset(to, ['limits'])
    const later = await tokenOf(to)
    expect(await use(to, later)).toBe(202)
  })

  test('reset: `limits` and `lock` reset both lanes', async () => {
    const to = newPhone()
    const known = await tokenOf(to)
    const lock = async (more: object) => {
      expect((await send(to, more)).status).toBe(202)
      const { id } = (await send(to, more)).body
      expect((await send(to, more)).status).toBe(429)
      const code = otherThan(await postern.codeFor(id))
      for (let tries = 0; tries < 3; tries++) await check(to, code, more)
      expect((await check(to, code, more)).body.code).toBe('locked')
    }
    await lock({})
    await lock({ known })
    await reset(to, ['limits', 'lock'])
    for (const more of [{}, { known }]) {
      const { status, body } = await send(to, more)
      expect([status, body.lockedForMs]).toEqual([202, undefined])
    }
  })

  test('look-up: the counts of each lane, the known one while it is not empty', async () => {
    const to = newPhone()
    const known = await tokenOf(to)
    await send(to)
    const limitsOf = async () => {
      const { limits } = (await recipients('lookup', { channel: 'sms', to })).body
      const shown = limits.filter(({ rule }: { rule: string }) => rule === 'recipient')
      return shown.map(({ lane, used }: { lane: string; used: number }) => [lane, used])
    }
    expect(await eventually(limitsOf)).toEqual([['stranger', 1]])
    for (let sent = 0; sent < 2; sent++) await send(to, { known })
    expect(await limitsOf()).toEqual([
      ['stranger', 1],
      ['known', 2],
    ])
  })
})
