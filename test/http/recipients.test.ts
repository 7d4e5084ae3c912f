/** "Why did my code not come?": the cases that one look-up must tell apart, and the uses that a reset gives back. */

import { createServer } from 'node:http'
import { describe, expect, test } from 'vitest'
import { createApiKeys } from '../../src/access/api-keys.ts'
import { databaseAt } from '../tools/database.ts'
import { listen } from '../tools/listen.ts'
import { startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'
import { openApiAnswers } from './openapi-answers.ts'
import { postReceipts, secret } from './receipt-calls.ts'

const farEnd = createServer((request, response) => {
  request.resume().on('end', () => response.end('{}'))
})
const farEndUrl = await listen(farEnd)

const testNumber = '+15005550006'

const recipientKey = '{app}:{channel}:{to}'
const policies = {
  captcha: [
    { name: 'duplicate', key: '{app}:{dedupe}', fixed: '2 per 60s' },
    { name: 'recipient', key: recipientKey, sliding: ['1 per 60s', '5 per 1h', '10 per 24h'] },
    { name: 'ip', key: '{app}:{ip}', sliding: '60 per 10m' },
    {
      name: 'daily',
      key: '{app}',
      calendar: { limit: 100_000, cron: '0 0 * * *', timezone: 'Asia/Shanghai' },
    },
  ],
  notice: [{ name: 'duplicate', key: '{app}:{dedupe}', fixed: '2 per 60s' }],
  check: [
    {
      name: 'guesses',
      key: `${recipientKey}:{ip}`,
      lockout: { limit: 3, window: '5m', lock: '15m' },
    },
  ],
  // Only for POST /v1/limits: a look-up does not show it.
  signups: [{ name: 'signups', key: '{app}:{to}', sliding: '1 per 1h' }],
}

const postern = await startPostern({
  policyFile: {
    policies,
    browser: { rules: [] },
    recipients: { countries: ['CN', 'HK'], mail: { refuse: ['tempmail.test'] } },
    testing: { recipients: [{ to: testNumber, code: '4071' }], until: '2099-12-31' },
    providers: {
      carrier: { kind: 'webhook', url: `${farEndUrl}/send`, secret },
      sandbox: { kind: 'sandbox' },
    },
    routes: {
      sms: [{ match: { country: 'HK' }, use: ['carrier'] }, { use: ['sandbox'] }],
      email: [{ use: ['sandbox'] }],
    },
  },
})
const answers = await openApiAnswers(postern)
const database = databaseAt(postern.database.url, 1)
const otherKey = (await createApiKeys(database).create({ name: 'other', app: 'other' })).token

let count = 0
const newNumber = (country = '+86138003') => {
  count += 1
  return `${country}${String(count).padStart(5, '0')}`
}
const send = (to: string, more = {}, key = postern.key) =>
  postern.post('/v1/captchas', { channel: 'sms', to, ...more }, { key })
const check = (to: string, code: string, more = {}) =>
  postern.post('/v1/captchas/check', { channel: 'sms', to, code, ...more })
const reset = (to: string, what: string[], more = {}, key = postern.key) =>
  postern.post(
    '/v1/recipients/reset',
    { channel: 'sms', to, what, reason: 'asked', ...more },
    { key },
  )

async function lookUp(to: string, more = {}, key = postern.key) {
  const reply = await postern.post(
    '/v1/recipients/lookup',
    { channel: 'sms', to, ...more },
    { key },
  )
  answers.expectPromised('post /v1/recipients/lookup', reply)
  expect(reply.status).toBe(200)
  return reply.body
}
/** Waits until the story has it: refusals and checks are written a moment later. */
// biome-ignore lint/suspicious/noExplicitAny: the contract is checked by lookUp
const story = (to: string, holds: (told: any) => boolean, more = {}) =>
  eventually(async () => {
    const told = await lookUp(to, more)
    return holds(told) && told
  })

/** Three wrong codes, and a try after them, from one address. */
async function lockFrom(to: string, ip: string): Promise<void> {
  const { body } = await send(to)
  const code = wrong(await postern.codeFor(body.id))
  for (let tries = 0; tries < 4; tries++) await check(to, code, { ip })
}
const wrong = (code: string) => String((Number(code) + 1) % 10_000).padStart(4, '0')

describe('POST /v1/recipients/lookup separates', () => {
  test('never asked', async () => {
    const to = newNumber()
    expect(await lookUp(to)).toEqual({
      to: `+8613****${to.slice(-4)}`,
      destination: 'allowed',
      isTestRecipient: false,
      limits: [
        { policy: 'captcha', rule: 'duplicate', window: '60s', used: 0, limit: 2, resetsInMs: 0 },
        { policy: 'captcha', rule: 'recipient', window: '60s', used: 0, limit: 1, resetsInMs: 0 },
        { policy: 'captcha', rule: 'recipient', window: '1h', used: 0, limit: 5, resetsInMs: 0 },
        { policy: 'captcha', rule: 'recipient', window: '24h', used: 0, limit: 10, resetsInMs: 0 },
        expect.objectContaining({ policy: 'captcha', rule: 'daily', limit: 100_000 }),
        { policy: 'notice', rule: 'duplicate', window: '60s', used: 0, limit: 2, resetsInMs: 0 },
      ],
      codes: [],
      refusals: [],
      checks: [],
      notices: [],
      operations: [],
      suppressions: [],
    })
  })

  test('refused: by which rule, when, and until when', async () => {
    const to = newNumber()
    await send(to)
    const askedAtMs = Date.now()
    const { body } = await send(to, { template: 'captcha' })
    expect(body).toMatchObject({ policy: 'captcha', rule: 'recipient' })
    const told = await story(to, ({ refusals }) => refusals.length > 0)
    expect(told.refusals).toEqual([
      {
        at: expect.any(String),
        policy: 'captcha',
        rule: 'recipient',
        window: '60s',
        retryAfterMs: body.retryAfterMs,
      },
    ])
    const refusedAtMs = Date.parse(told.refusals[0].at)
    expect(refusedAtMs).toBeGreaterThanOrEqual(askedAtMs)
    expect(refusedAtMs).toBeLessThanOrEqual(Date.now())
    expect(told.limits).toContainEqual(
      expect.objectContaining({ rule: 'recipient', window: '60s', used: 1, limit: 1 }),
    )
    expect(told.notices).toHaveLength(1)
  })

  test('refused by a shared address, whose count is listed if the address is given', async () => {
    const ip = '198.51.100.7'
    for (let sent = 0; sent < 60; sent++) await send(newNumber(), { ip })
    const to = newNumber()
    expect((await send(to, { ip })).body).toMatchObject({ rule: 'ip' })
    const told = await story(to, ({ refusals }) => refusals.length > 0, { ip })
    expect(told.refusals).toMatchObject([{ policy: 'captcha', rule: 'ip', window: '10m' }])
    expect(told.limits).toContainEqual(expect.objectContaining({ rule: 'ip', used: 60, limit: 60 }))
    expect(told.notices).toEqual([])
  })

  test('sent, with the provider that accepted; the code that would pass, without its digits', async () => {
    const to = newNumber()
    const { body } = await send(to, { scene: 'login' })
    const told = await story(to, ({ notices }) => notices[0]?.state === 'sent')
    expect(told.notices).toMatchObject([
      { id: body.id, scene: 'login', provider: 'sandbox', attempts: [{ outcome: 'accepted' }] },
    ])
    const tries = { triesLeft: 3, knownTriesLeft: 3 }
    expect(told.codes).toEqual([{ scene: 'login', expiresAt: expect.any(String), ...tries }])
    const apart = Date.parse(told.codes[0].expiresAt) - Date.parse(body.expiresAt)
    expect(Math.abs(apart)).toBeLessThan(1_000)
    expect(JSON.stringify(told)).not.toContain(await postern.codeFor(body.id))
  })

  test.each([
    ['delivered', {}],
    ['failed', { error: expect.stringMatching(/^not_delivered \(.*absent/) }],
  ] as const)('%s, with the carrier’s reason', async (outcome, shown) => {
    const to = newNumber('+852613')
    const { body } = await send(to)
    await story(to, ({ notices }) => notices[0]?.state === 'sent')
    await postReceipts(postern, JSON.stringify([{ noticeId: body.id, outcome, reason: 'absent' }]))
    const told = await story(to, ({ notices }) => notices[0].state === outcome)
    expect(told.notices).toMatchObject([{ state: outcome, provider: 'carrier', ...shown }])
  })

  test('checked wrongly, and how often; then passed, and the code is gone', async () => {
    const to = newNumber()
    const { body } = await send(to)
    const code = await postern.codeFor(body.id)
    await check(to, wrong(code))
    const missed = await story(to, ({ checks }) => checks.length > 0)
    expect(missed.checks).toEqual([{ at: expect.any(String), result: 'mismatch' }])
    expect(missed.codes).toMatchObject([{ scene: 'default', triesLeft: 2 }])
    await check(to, code)
    await check(to, code)
    const told = await story(to, ({ checks }) => checks.length === 3)
    expect(told.checks.map(({ result }: { result: string }) => result).sort()).toEqual([
      'gone',
      'mismatch',
      'passed',
    ])
    expect(told.codes).toEqual([])
  })

  test('locked, by addresses that need not be given', async () => {
    const to = newNumber()
    await lockFrom(to, '198.51.100.20')
    await reset(to, ['limits'])
    await lockFrom(to, '198.51.100.21')
    // The beginning of each lock, and the first refusal by each.
    const told = await story(to, ({ refusals }) => refusals.length === 3)
    expect(told.refusals.filter(({ lockBegan }: { lockBegan?: true }) => lockBegan)).toHaveLength(2)
    expect(told.lockedForMs).toBeGreaterThan(890_000)
    const locks = told.limits.filter(({ policy }: { policy: string }) => policy === 'check')
    expect(locks).toEqual([
      expect.objectContaining({ rule: 'guesses', lockedForMs: expect.any(Number) }),
      expect.objectContaining({ rule: 'guesses', lockedForMs: expect.any(Number) }),
    ])
    expect(told.checks.map(({ result }: { result: string }) => result).sort()).toEqual([
      ...Array(6).fill('mismatch'),
      'refused',
    ])
  })

  test('locked from one address: with the address of a person, whether that person is', async () => {
    const [to, guesser, home] = [newNumber(), '198.51.100.25', '198.51.100.26']
    await lockFrom(to, guesser)
    await story(to, ({ refusals }) => refusals.length > 0)
    const theirs = await lookUp(to, { ip: guesser })
    expect(theirs.lockedForMs).toBeGreaterThan(890_000)
    expect(theirs).not.toHaveProperty('lockedElsewhereForMs')
    const owners = await lookUp(to, { ip: home })
    expect(owners).not.toHaveProperty('lockedForMs')
    expect(owners.lockedElsewhereForMs).toBeGreaterThan(890_000)
  })

  test('country refused', async () => {
    expect(await lookUp('+12025550123')).toMatchObject({ destination: 'country', notices: [] })
  })

  test('a domain of mail that is refused, and an address that is not', async () => {
    const mail = { channel: 'email' }
    expect(await lookUp('a@x.tempmail.test', mail)).toMatchObject({ destination: 'mail_domain' })
    expect(await lookUp('a@example.com', mail)).toMatchObject({
      to: 'a***@example.com',
      destination: 'allowed',
    })
  })

  test('a test recipient: nothing was sent, and its code stands in the policy file', async () => {
    await send(testNumber)
    const told = await lookUp(testNumber)
    expect(told).toMatchObject({ isTestRecipient: true, destination: 'allowed', notices: [] })
    expect(told.codes).toMatchObject([{ scene: 'default' }])
    expect(JSON.stringify(told)).not.toContain('4071')
  })

  test('no number at all is 422', async () => {
    const reply = await postern.post('/v1/recipients/lookup', { channel: 'sms', to: '12' })
    expect(reply).toMatchObject({ status: 422, body: { code: 'invalid_recipient' } })
    answers.expectPromised('post /v1/recipients/lookup', reply)
  })
})

test('another app sees nothing of it, and its reset moves nothing', async () => {
  const to = newNumber()
  await lockFrom(to, '198.51.100.30')
  await send(to)
  const mine = await story(to, ({ checks }) => checks.length >= 3)
  const theirs = await lookUp(to, {}, otherKey)
  expect(theirs).toMatchObject({ codes: [], refusals: [], checks: [], notices: [], operations: [] })
  expect(theirs.limits.every(({ used }: { used: number }) => used === 0)).toBe(true)
  expect(theirs).not.toHaveProperty('lockedForMs')

  expect((await reset(to, ['limits', 'lock', 'code'], {}, otherKey)).status).toBe(204)
  const after = await lookUp(to)
  expect(after.codes).toEqual(mine.codes)
  expect(after.lockedForMs).toBeGreaterThan(0)
  expect(after.operations).toEqual([])
  expect((await send(to)).status).toBe(429)
})

describe('POST /v1/recipients/reset', () => {
  test('limits: the same send is accepted again at once, and the address keeps its count', async () => {
    const [to, ip] = [newNumber(), '198.51.100.40']
    await send(to, { ip })
    expect((await send(to, { ip })).status).toBe(429)
    const answer = await reset(to, ['limits'], { reason: '客户来电 ticket 42' })
    expect(answer.status).toBe(204)
    answers.expectPromised('post /v1/recipients/reset', answer)
    expect((await send(to, { ip })).status).toBe(202)
    const told = await lookUp(to, { ip })
    expect(told.limits).toContainEqual(expect.objectContaining({ rule: 'ip', used: 2 }))
    const { rows } = await postern.database.pool.query('SELECT id FROM api_key WHERE app = $1', [
      'default',
    ])
    expect(told.operations).toEqual([
      { at: expect.any(String), by: rows[0].id, what: ['limits'], reason: '客户来电 ticket 42' },
    ])
  })

  test('limits: a duplicate of a template with variables, known from its refusal alone', async () => {
    const to = newNumber()
    const notice = () =>
      postern.post('/v1/notices', {
        channel: 'sms',
        to,
        template: 'welcome',
        params: { name: 'Ada' },
      })
    for (const status of [202, 202, 429]) expect((await notice()).status).toBe(status)
    const told = await story(to, ({ refusals }) => refusals.length > 0)
    const isOfNotices = ({ policy }: { policy: string }) => policy === 'notice'
    expect(told.limits.filter(isOfNotices)).toMatchObject([{ used: 0 }, { used: 2 }])
    expect((await reset(to, ['limits'])).status).toBe(204)
    expect((await lookUp(to)).limits.filter(isOfNotices)).toMatchObject([{ used: 0 }])
    expect((await notice()).status).toBe(202)
  })

  test('lock: lifted for every address that locked lately; limits are not', async () => {
    const [to, ip] = [newNumber(), '198.51.100.50']
    await send(to)
    for (let tries = 0; tries < 4; tries++) await check(to, '0000', { ip })
    expect((await check(to, '0000', { ip })).body.code).toBe('locked')
    await story(to, ({ lockedForMs }) => lockedForMs > 0)
    await reset(to, ['lock'])
    expect((await check(to, '0000', { ip })).body.code).toBe('code_gone')
    expect(await lookUp(to)).not.toHaveProperty('lockedForMs')
    expect((await send(to)).status).toBe(429)
  })

  test('lock: also of an address that locked before 21 others did; 20 locks are listed', async () => {
    const to = newNumber()
    await lockFrom(to, '198.51.101.1')
    for (let from = 2; from <= 22; from++) {
      await reset(to, ['limits'])
      await lockFrom(to, `198.51.101.${from}`)
      // So many are written at a time.
      if (from % 10 === 0) await story(to, ({ refusals }) => refusals.length > 0)
    }
    const locksOf = ({ limits }: { limits: { policy: string }[] }) =>
      limits.filter(({ policy }) => policy === 'check')
    const told = await story(to, (found) => locksOf(found).length >= 20)
    expect(locksOf(told)).toHaveLength(20)
    await reset(to, ['lock'])
    const again = await check(to, '0000', { ip: '198.51.101.1' })
    expect(['code_gone', 'code_mismatch']).toContain(again.body.code)
  })

  test('code: ended in every scene it was sent for', async () => {
    const to = newNumber()
    const { body } = await send(to, { scene: 'login' })
    const code = await postern.codeFor(body.id)
    await reset(to, ['code'])
    expect((await lookUp(to)).codes).toEqual([])
    expect((await check(to, code, { scene: 'login' })).body.code).toBe('code_gone')
  })

  test.each([
    ['nothing', { what: [] }],
    ['something else', { what: ['everything'] }],
    ['the same twice', { what: ['lock', 'lock'] }],
    ['no reason', { reason: undefined }],
    ['an empty reason', { reason: '' }],
    ['a reason of 501 characters', { reason: 'x'.repeat(501) }],
    ['a line break in the reason', { reason: 'a\nb' }],
    ['the number in the reason', { reason: 'called from 138-0000 0001' }],
    ['an address that is none', { ip: 'somewhere' }],
    ['another field', { until: 'tomorrow' }],
  ])('%s is 400 and recorded nowhere', async (_, wrongly) => {
    const to = '+8613800000001'
    const reply = await reset(to, ['lock'], wrongly)
    expect(reply).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
    expect((await lookUp(to)).operations).toEqual([])
  })
})
