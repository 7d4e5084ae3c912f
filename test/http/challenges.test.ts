import { describe, expect, test } from 'vitest'
import { newPhone } from '../tools/people.ts'
import { startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { startSiteverify } from '../tools/siteverify.ts'
import { payloadOf, solveChallenge } from '../tools/solve-challenge.ts'
import { eventually } from '../tools/wait.ts'
import { openApiAnswers } from './openapi-answers.ts'

const asks = { name: 'asks', key: '{app}', sliding: '0 per 24h', mode: 'challenge' }
const challenge = { kind: 'altcha', tries: 5 }
/** A challenge for every send from a page, and the rules under test. */
const policies = {
  captcha: [{ name: 'recipient', key: '{app}:{to}', sliding: '2 per 1h' }],
  notice: [],
  check: [{ name: 'budget', key: '{app}:{to}', sliding: '2 per 24h', mode: 'challenge' }],
}

const postern = await startPostern({
  policyFile: { policies, challenge, browser: { rules: [asks] } },
})
const pageKey = await publishableKey(postern.database)
const { expectPromised } = await openApiAnswers(postern)

const post = (path: string, body: unknown, key = pageKey, on = postern) =>
  on.post(path, body, { key })
const send = (to: string, more = {}, key = pageKey, on = postern) =>
  post('/v1/captchas', { channel: 'sms', to, ...more }, key, on)

async function answer(key = pageKey, on = postern): Promise<string> {
  const { body } = await post('/v1/challenges', {}, key, on)
  return solveChallenge(body.challenge)
}
const sentTo = async (to: string) => (await postern.messages(to)).length

describe('POST /v1/challenges', () => {
  test('a challenge of altcha’s version 2, for pages and servers', async () => {
    for (const key of [pageKey, postern.key]) {
      const reply = await post('/v1/challenges', {}, key)
      expectPromised('post /v1/challenges', reply)
      expect(reply).toMatchObject({
        status: 200,
        body: {
          kind: 'altcha',
          challenge: {
            parameters: { algorithm: 'PBKDF2/SHA-256', keySignature: expect.any(String) },
            signature: expect.stringMatching(/^[0-9a-f]{64}$/),
          },
        },
      })
    }
  })

  test('unknown members: 400; no key: 401', async () => {
    expect((await post('/v1/challenges', { to: 'x' })).status).toBe(400)
    expect((await postern.post('/v1/challenges', {}, { key: null })).status).toBe(401)
  })
})

describe('a send from a page that a rule asks of', () => {
  test('403 with the rule and a challenge; with its answer 202, and the same answer is good no more', async () => {
    const to = newPhone()
    const refused = await send(to)
    expectPromised('post /v1/captchas', refused)
    expect(refused).toMatchObject({
      status: 403,
      body: {
        code: 'challenge_required',
        policy: 'captcha',
        rule: 'asks',
        challenge: { kind: 'altcha' },
      },
    })
    expect(refused.headers.get('retry-after')).toBeNull()
    const solution = await solveChallenge(refused.body.challenge.challenge)
    const accepted = await send(to, { challenge: solution })
    expectPromised('post /v1/captchas', accepted)
    expect(accepted.status).toBe(202)
    const again = await send(to, { challenge: solution })
    expect(again).toMatchObject({ status: 403, body: { challenge: { kind: 'altcha' } } })
    expect(again.body).not.toHaveProperty('rule')
  })

  test.each([
    ['empty', ''],
    ['no base64', 'not base64!'],
    ['no JSON', 'bm90IGpzb24='],
    ['above 4 kB', 'A'.repeat(4_097)],
    ['a number', 7],
    ['null', null],
    ['a list', [payloadOf({})]],
  ])('%s: 400 that names the field, and nothing is taken', async (_, given) => {
    const to = newPhone()
    const reply = await send(to, { challenge: given })
    expect(reply).toMatchObject({ status: 400, body: { errors: [{ path: 'challenge' }] } })
    expect(await sentTo(to)).toBe(0)
  })

  test('refused by a limit: the answer is good for another send', async () => {
    const to = newPhone()
    for (let again = 0; again < 2; again++) await send(to, { challenge: await answer() })
    const solution = await answer()
    expect(await send(to, { challenge: solution })).toMatchObject({
      status: 429,
      body: { code: 'limited', policy: 'captcha', rule: 'recipient' },
    })
    const other = newPhone()
    await eventually(async () =>
      expect((await send(other, { challenge: solution })).status).toBe(202),
    )
  })

  test('PostgreSQL gives no row: 503, and the answer and the quota are back', async () => {
    const to = newPhone()
    const solution = await answer()
    const { pool } = postern.database
    await pool.query('ALTER TABLE notice RENAME TO notice_away')
    const reply = await send(to, { challenge: solution })
    await pool.query('ALTER TABLE notice_away RENAME TO notice')
    expect(reply.status).toBeGreaterThanOrEqual(500)
    await eventually(async () => expect((await send(to, { challenge: solution })).status).toBe(202))
    expect((await send(to, { challenge: await answer() })).status).toBe(202)
  })

  test('a repeat with the same Idempotency-Key may bring another answer, and gets the first 202', async () => {
    const to = newPhone()
    const withKey = async (solution: string) =>
      postern.post(
        '/v1/captchas',
        { channel: 'sms', to, challenge: solution },
        { key: pageKey, headers: { 'idempotency-key': `key-${to}` } },
      )
    const solved = await answer()
    // From now on this refusal comes from memory, but not for a request with an answer.
    expect((await send(to)).status).toBe(403)
    const first = await withKey(solved)
    expect(first.status).toBe(202)
    const solution = await answer()
    expect((await withKey(solution)).body).toEqual(first.body)
    // Which took nothing from it.
    expect((await send(newPhone(), { challenge: solution })).status).toBe(202)
  })

  test('secret keys are not asked, and an answer they bring must be good', async () => {
    expect((await send(newPhone(), {}, postern.key)).status).toBe(202)
    const solution = await answer(postern.key)
    expect((await send(newPhone(), { challenge: solution }, postern.key)).status).toBe(202)
    expect((await send(newPhone(), { challenge: solution }, postern.key)).status).toBe(403)
  })
})

describe('a check from a page that a rule asks of', () => {
  test('403 with a challenge, compared only with its answer; secret keys go on', async () => {
    const to = newPhone()
    const { body: sent } = await send(to, {}, postern.key)
    const code = await postern.codeFor(sent.id)
    const wrong = code === '0000' ? '0001' : '0000'
    const check = (given: string, more = {}, key = pageKey) =>
      post('/v1/captchas/check', { channel: 'sms', to, code: given, ...more }, key)
    expect((await check(wrong)).status).toBe(422)
    expect((await check(wrong)).status).toBe(422)
    // Guesses without an answer take no try of the code.
    for (let guess = 0; guess < 5; guess++) {
      const refused = await check(wrong)
      expectPromised('post /v1/captchas/check', refused)
      expect(refused).toMatchObject({ status: 403, body: { policy: 'check', rule: 'budget' } })
    }
    expect((await check(code, { challenge: await answer() })).status).toBe(200)

    const { body: next } = await send(to, {}, postern.key)
    expect((await check(await postern.codeFor(next.id), {}, postern.key)).status).toBe(200)
  })
})

describe('challenge: { kind: turnstile }', () => {
  test('the site key is offered, a token opens one send, and a vendor that is away is 503', async () => {
    const far = await startSiteverify('secret')
    const other = await startPostern({
      policyFile: {
        policies,
        browser: { rules: [asks] },
        challenge: { kind: 'turnstile', siteKey: 'site', secret: 'secret', url: far.url },
      },
    })
    const key = await publishableKey(other.database)
    const offer = { kind: 'turnstile', siteKey: 'site' }
    const offered = await post('/v1/challenges', {}, key, other)
    expect(offered).toMatchObject({ status: 200, body: offer })
    const to = newPhone()
    expect((await send(to, {}, key, other)).body.challenge).toEqual(offer)
    far.behave = { status: 500, body: '' }
    expect(await send(to, { challenge: 'good-1' }, key, other)).toMatchObject({ status: 503 })
    far.behave = undefined
    await eventually(async () =>
      expect((await send(to, { challenge: 'good-1' }, key, other)).status).toBe(202),
    )
    expect((await send(to, { challenge: 'good-1' }, key, other)).status).toBe(403)
    expect((await send(to, { challenge: 'bad-1' }, key, other)).status).toBe(403)
    // Solved on a page of another site with the same site key.
    far.behave = { status: 200, body: '{"success":true,"hostname":"evil.example"}' }
    expect((await send(to, { challenge: 'good-2' }, key, other)).status).toBe(403)
  })
})
