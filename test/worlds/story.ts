/**
 * The whole story of Postern through its HTTP alone, as a sign-up page, a server and support see it. It holds in every
 * world.
 */
import { expect } from 'vitest'
import type { Postern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'

type Client = Pick<Postern, 'post' | 'get' | 'messageFor' | 'codeFor'>

/** The policy file of the story: the shipped one without its limit on the caller, who is always the same here. */
export const storyPolicy = {
  policies: {
    captcha: [{ name: 'recipient', key: '{channel}:{to}', sliding: ['1 per 60s', '5 per 1h'] }],
    notice: [],
    check: [
      { name: 'guesses', key: '{channel}:{to}', lockout: { limit: 5, window: '5m', lock: '15m' } },
    ],
    login: [{ name: 'tries', key: '{subject}', lockout: { limit: 3, window: '5m', lock: '15m' } }],
    nightly: [
      {
        name: 'day',
        key: '{name}',
        calendar: { limit: 1, cron: '0 0 * * *', timezone: 'Asia/Shanghai' },
      },
    ],
  },
}

const minuteMs = 60_000
/** The instant is now, in any zone of servers and processes. */
function expectNow(time: string, toleranceMs = minuteMs): void {
  expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(Math.abs(Date.parse(time) - Date.now())).toBeLessThan(toleranceMs)
}

const until = (client: Client, id: string, state: string) =>
  eventually(async () => {
    const { body } = await client.get(`/v1/notices/${id}`)
    return body.state === state && body
  })

export async function tellStory(client: Client): Promise<void> {
  await aCodeComesAndPasses(client)
  await aMailComesInChinese(client)
  await limitsHoldAndAreLifted(client)
  await otherServicesAsk(client)
}

async function aCodeComesAndPasses(client: Client): Promise<void> {
  const owner = { channel: 'sms', to: '+8613800138000', scene: 'signup' }
  const sent = await client.post('/v1/captchas', owner)
  expect(sent.status).toBe(202)
  const { id } = sent.body
  expectNow(new Date(Date.parse(sent.body.expiresAt) - 5 * minuteMs).toISOString())
  expectNow(new Date(Date.parse(sent.body.resendAt) - minuteMs).toISOString())
  const code = await client.codeFor(id)

  const notice = await until(client, id, 'sent')
  for (const time of [notice.createdAt, notice.sentAt, notice.finishedAt, notice.attempts[0].at])
    expectNow(time)

  const again = await client.post('/v1/captchas', owner)
  expect(again).toMatchObject({ status: 429, body: { code: 'limited', rule: 'recipient' } })
  expect(again.body.retryAfterMs).toBeLessThanOrEqual(minuteMs)
  const wrong = code === '0000' ? '0001' : '0000'
  const check = (typed: string) => client.post('/v1/captchas/check', { ...owner, code: typed })
  expect(await check(wrong)).toMatchObject({ status: 422, body: { triesLeft: 2 } })
  const passed = await check(code)
  expect(passed).toMatchObject({ status: 200, body: { verified: true, scene: 'signup' } })
  expectNow(passed.body.verifiedAt)
  expect((await check(code)).status).toBe(410)
  const verify = () =>
    client.post('/v1/passes/verify', { pass: passed.body.pass, channel: 'sms', to: owner.to })
  expect((await verify()).body).toMatchObject({ valid: true, scene: 'signup' })
  expect((await verify()).body).toMatchObject({ valid: false })
}

async function aMailComesInChinese(client: Client): Promise<void> {
  const notice = {
    channel: 'email',
    to: 'Wang@Example.com',
    template: 'welcome',
    locale: 'zh-CN',
    params: { name: 'İsmail 王 ß' },
  }
  const options = { headers: { 'idempotency-key': 'one-welcome' } }
  const first = await client.post('/v1/notices', notice, options)
  expect(first.status).toBe(202)
  const second = await client.post('/v1/notices', notice, options)
  expect(second).toMatchObject({ status: 202, body: { id: first.body.id } })
  expect((await client.messageFor(first.body.id)).text).toContain('İsmail 王 ß')
  await until(client, first.body.id, 'sent')
  const found = await client.post('/v1/notices/search', {
    to: 'wang@example.com',
    channel: 'email',
  })
  expect(found.body.items).toHaveLength(1)
  expectNow(found.body.items[0].createdAt)

  const sendAt = new Date(Date.now() + 3_600_000).toISOString()
  const later = await client.post('/v1/notices', { ...notice, sendAt })
  expect(later.status).toBe(202)
  expect((await client.get(`/v1/notices/${later.body.id}`)).body).toMatchObject({
    state: 'pending',
    sendAt,
  })
}

async function limitsHoldAndAreLifted(client: Client): Promise<void> {
  const owner = { channel: 'sms', to: '+8613800138000' }
  // What is remembered of a decision is written beside its answer.
  const body = await eventually(async () => {
    const found = await client.post('/v1/recipients/lookup', owner)
    expect(found.status).toBe(200)
    for (const kind of ['refusals', 'checks', 'notices'])
      expect(found.body[kind].length).toBeGreaterThan(0)
    return found.body
  })
  for (const { at } of [...body.refusals, ...body.checks]) expectNow(at)
  for (const { createdAt } of body.notices) expectNow(createdAt)
  for (const { resetsInMs } of body.limits) expect(resetsInMs).toBeLessThanOrEqual(60 * minuteMs)
  const reset = await client.post('/v1/recipients/reset', {
    ...owner,
    what: ['limits'],
    reason: 'a story of the tests',
  })
  expect(reset.status).toBe(204)
  const after = await client.post('/v1/recipients/lookup', owner)
  expectNow(after.body.operations[0].at)
  expect((await client.post('/v1/captchas', { ...owner, scene: 'signup' })).status).toBe(202)
}

async function otherServicesAsk(client: Client): Promise<void> {
  const login = { policy: 'login', subject: 'ada' }
  for (const triesLeft of [2, 1, 0]) {
    const { body } = await client.post('/v1/attempts', login)
    expect(body).toMatchObject({ allowed: true, triesLeft })
  }
  expect(await client.post('/v1/attempts', login)).toMatchObject({
    status: 429,
    body: { code: 'locked' },
  })
  expect((await client.post('/v1/attempts/clear', login)).status).toBe(204)
  expect((await client.post('/v1/attempts', login)).status).toBe(200)

  const acquire = () => client.post('/v1/limits/nightly/acquire', { fields: { name: 'ada' } })
  expect((await acquire()).status).toBe(200)
  const refused = await acquire()
  expect(refused.status).toBe(429)
  // Midnight in Shanghai, which keeps UTC+8 all year.
  const wait = 86_400_000 - ((Date.now() + 8 * 3_600_000) % 86_400_000)
  expect(Math.abs(refused.body.retryAfterMs - wait)).toBeLessThan(minuteMs)
}
