/** Recipients that must get nothing, through the whole product: reports of providers, refusals, look-up and reset. */
import { expect, test } from 'vitest'
import { createPostern } from '../../src/main/create-postern.ts'
import { apiKey } from '../tools/api-key.ts'
import { type FarEndAnswer, startFarEnd } from '../tools/far-end.ts'
import { noLimits, posternEnv, startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { releaseLater } from '../tools/release.ts'
import { startSmtp } from '../tools/smtp.ts'
import { eventually } from '../tools/wait.ts'
import { postReceipts, type Receipt, secret } from './receipt-calls.ts'

const farEnd = await startFarEnd()
const taken: FarEndAnswer = { status: 200 }
/** The answer of the carriers to the next messages. */
let answer = taken
const texts = new Map<string, string>()
farEnd.behave = ({ noticeId, text }) => {
  texts.set(noticeId, text)
  return answer
}
const reply = (line: string) => {
  const [status = '', ...words] = line.split(' ')
  return Object.assign(new Error(words.join(' ')), { responseCode: Number(status) })
}
const rcptReplies = new Map<string, string>()
const smtp = await startSmtp({
  onRcptTo: ({ address }, _, callback) => {
    const answer = rcptReplies.get(address)
    callback(answer === undefined ? undefined : reply(answer))
  },
})

const file = {
  policies: { ...noLimits, captcha: [{ name: 'all', key: '{app}:{to}', sliding: '50 per 1h' }] },
  browser: { rules: [], checkRules: [] },
  providers: {
    carrier: { kind: 'webhook', url: farEnd.url, secret },
    second: { kind: 'webhook', url: farEnd.url, secret },
    mail: { kind: 'smtp', url: smtp.url, from: 'Acme <no-reply@acme.test>' },
    post: { kind: 'webhook', url: farEnd.url, secret },
  },
  routes: {
    sms: [{ match: { country: 'DE' }, use: ['carrier', 'second'] }, { use: ['carrier'] }],
    email: [{ match: { template: 'welcome' }, use: ['post'] }, { use: ['mail'] }],
  },
  workflows: { both: ['sms', 'email'] },
}
const postern = await startPostern({ policyFile: file })

let count = 0
const nextNumber = () => `+8613800${String(138_000 + count++)}`
const codeIn = (text = '') => /\b\d{4,8}\b/.exec(text)?.[0]
const channelOf = (to: string) => (to.includes('@') ? 'email' : 'sms')
const sendCode = (to: string, options = {}) =>
  postern.post('/v1/captchas', { channel: channelOf(to), to }, options)
const sendNotice = (to: string) =>
  postern.post('/v1/notices', {
    ...{ channel: channelOf(to), to, template: 'welcome', params: { name: 'Ada' } },
  })
const lookUp = async (to: string, options = {}) =>
  (await postern.post('/v1/recipients/lookup', { channel: channelOf(to), to }, options)).body
const refusedBy = (reason?: string) => ({
  status: 403,
  body: { code: 'destination_not_allowed', ...(reason ? { reason } : {}) },
})
const stateOf = async (id: string) => {
  const { state, error } = (await postern.get(`/v1/notices/${id}`)).body
  return error === undefined ? state : `${state} (${error})`
}

/** A notice that the carrier has accepted. */
async function sent(to: string): Promise<string> {
  const { body } = await sendNotice(to)
  await eventually(async () => (await stateOf(body.id)) === 'sent')
  return body.id
}

async function report(id: string, outcome: Receipt['outcome'], provider = 'carrier') {
  expect((await postReceipts(postern, [{ noticeId: id, outcome }], secret, provider)).status).toBe(
    204,
  )
}

async function metricOf(line: string): Promise<number> {
  const text = await (await fetch(`${postern.adminUrl}/metrics`)).text()
  return Number(
    text
      .split('\n')
      .find((one) => one.startsWith(line))
      ?.split(' ')
      .at(-1),
  )
}

test('bounced: the notice fails, codes and notices are refused before a row, the look-up shows why and until when', async () => {
  const to = nextNumber()
  const id = await sent(to)
  await report(id, 'bounced')
  expect(await stateOf(id)).toBe('failed (bounced)')
  expect(await sendCode(to)).toMatchObject(refusedBy('bounced'))
  expect(await sendNotice(to)).toMatchObject(refusedBy('bounced'))
  const { suppressions, limits, notices } = await lookUp(to)
  expect(suppressions).toEqual([
    {
      reason: 'bounced',
      provider: 'carrier',
      since: expect.any(String),
      until: expect.any(String),
    },
  ])
  const [{ since, until }] = suppressions
  expect(Date.parse(until) - Date.parse(since)).toBe(7 * 86_400_000)
  expect(notices).toHaveLength(1)
  expect(limits).toMatchObject([{ rule: 'all', used: 0 }])
  expect(
    await metricOf('postern_suppressed_total{kind="captcha",channel="sms",reason="bounced"'),
  ).toBe(1)
  expect(await metricOf('postern_suppressions_total{provider="carrier",reason="bounced"')).toBe(1)
})

test('a repeated report, also after the reset: the recipient stays free', async () => {
  const to = nextNumber()
  const id = await sent(to)
  await report(id, 'bounced')
  await report(id, 'bounced')
  const [{ since }] = (await lookUp(to)).suppressions
  const reset = { channel: 'sms', to, what: ['suppression'], reason: 'ticket 7' }
  expect((await postern.post('/v1/recipients/reset', reset)).status).toBe(204)
  const story = await lookUp(to)
  expect(story.suppressions).toEqual([])
  expect(story.operations).toMatchObject([{ what: ['suppression'], reason: 'ticket 7' }])
  await report(id, 'bounced')
  expect((await lookUp(to)).suppressions).toEqual([])
  const later = await sent(to)
  await report(later, 'bounced')
  const [again] = (await lookUp(to)).suppressions
  expect(Date.parse(again.since)).toBeGreaterThan(Date.parse(since))
})

test('complained: notices are refused and codes are sent; the state stays', async () => {
  const to = nextNumber()
  const id = await sent(to)
  await report(id, 'delivered')
  await report(id, 'complained')
  expect(await stateOf(id)).toBe('delivered')
  expect(await sendNotice(to)).toMatchObject(refusedBy('complained'))
  expect((await sendCode(to)).status).toBe(202)
})

test('opted out of one of two providers: the other one sends; of both: refused', async () => {
  const to = '+4915123456789'
  const id = await sent(to)
  await report(id, 'opted_out')
  expect(await stateOf(id)).toBe('sent')
  const next = await sent(to)
  expect((await postern.get(`/v1/notices/${next}`)).body.provider).toBe('second')
  await report(next, 'opted_out', 'second')
  expect(await sendNotice(to)).toMatchObject(refusedBy('opted_out'))
  expect(await sendCode(to)).toMatchObject(refusedBy('opted_out'))
  expect((await lookUp(to)).suppressions).toMatchObject([
    { provider: 'second' },
    { provider: 'carrier' },
  ])
})

test('a report after the acceptance: the open notice is not sent', async () => {
  const [bounced, barred] = [nextNumber(), nextNumber()]
  const ids: string[] = []
  for (const to of [bounced, barred]) {
    answer = taken
    const earlier = await sent(to)
    answer = { status: 429, headers: { 'retry-after': '1' }, body: '{"about":"recipient"}' }
    const { body } = await sendNotice(to)
    await eventually(() => farEnd.calls.has(body.id))
    await report(earlier, to === bounced ? 'bounced' : 'opted_out')
    answer = taken
    ids.push(body.id)
  }
  await eventually(async () => {
    expect(await stateOf(ids[0] as string)).toBe('failed (bounced)')
    expect(await stateOf(ids[1] as string)).toBe('failed (opted_out)')
  })
  expect(ids.filter((id) => farEnd.taken.has(id))).toEqual([])
})

test('a workflow leaves out ways to such an address, also the first; it is refused if none is left', async () => {
  const [to, email] = [nextNumber(), 'ada@workflow.test']
  const send = () => postern.post('/v1/captchas', { workflow: 'both', to, email })
  expect((await send()).body.way).toEqual({ channel: 'sms', index: 1, of: 2, next: 'email' })
  await report(await sent(to), 'bounced')
  const { status, body } = await send()
  expect([status, body.way]).toEqual([202, { channel: 'email', index: 1, of: 1 }])
  expect((await postern.post(`/v1/captchas/${body.id}/next`, {})).body.code).toBe('no_more_ways')
  const mail = await smtp.waitForMail(({ envelope }) => envelope.to.includes(email))
  const code = codeIn(mail.text)
  const checked = await postern.post('/v1/captchas/check', { id: body.id, code })
  expect(checked.body).toMatchObject({ verified: true, id: body.id })
  const alone = await postern.post('/v1/captchas', { workflow: 'both', to })
  expect(alone).toMatchObject(refusedBy('bounced'))
})

test('a right code ends the bounce of its address', async () => {
  const to = nextNumber()
  const { body } = await sendCode(to)
  const code = codeIn(await eventually(() => texts.get(body.id) ?? false))
  await eventually(async () => (await stateOf(body.id)) === 'sent')
  await report(body.id, 'bounced')
  expect(await sendCode(to)).toMatchObject(refusedBy('bounced'))
  const checked = await postern.post('/v1/captchas/check', { channel: 'sms', to, code })
  expect(checked.body).toMatchObject({ verified: true })
  await eventually(async () => (await lookUp(to)).suppressions.length === 0)
  expect((await sendCode(to)).status).toBe(202)
})

test('pages: refused without the reason, and the earlier code still passes', async () => {
  const to = nextNumber()
  const { body } = await sendCode(to)
  const code = codeIn(await eventually(() => texts.get(body.id) ?? false))
  await eventually(async () => (await stateOf(body.id)) === 'sent')
  await report(body.id, 'bounced')
  const key = await publishableKey(postern.database, {})
  const headers = { origin: 'https://shop.example' }
  const refused = await sendCode(to, { key, headers })
  expect(refused).toMatchObject(refusedBy())
  expect(refused.body).not.toHaveProperty('reason')
  const checked = await postern.post('/v1/captchas/check', { channel: 'sms', to, code })
  expect(checked.body).toMatchObject({ verified: true })
})

test('another app: sends, sees nothing, and its reset changes nothing', async () => {
  const to = nextNumber()
  await report(await sent(to), 'bounced')
  const key = await apiKey(postern.database, { app: 'other' })
  expect((await lookUp(to, { key })).suppressions).toEqual([])
  const reset = { channel: 'sms', to, what: ['suppression'], reason: 'ticket 8' }
  expect((await postern.post('/v1/recipients/reset', reset, { key })).status).toBe(204)
  expect((await sendCode(to, { key })).status).toBe(202)
  expect(await sendCode(to)).toMatchObject(refusedBy('bounced'))
})

test('an Idempotency-Key is free after such a refusal', async () => {
  const to = nextNumber()
  await report(await sent(to), 'bounced')
  const options = { headers: { 'idempotency-key': 'once' } }
  expect(await sendCode(to, options)).toMatchObject(refusedBy('bounced'))
  const reset = { channel: 'sms', to, what: ['suppression'], reason: 'ticket 9' }
  await postern.post('/v1/recipients/reset', reset)
  expect((await sendCode(to, options)).status).toBe(202)
})

test.for(['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10'])(
  'SMTP 550 %s at RCPT: a bounce',
  async (enhanced) => {
    const to = `gone${enhanced}@mail.test`
    rcptReplies.set(to, `550 ${enhanced} no such user`)
    const { body } = await sendCode(to)
    await eventually(async () => (await stateOf(body.id)) === 'failed (invalid_recipient)')
    expect(await sendCode(to)).toMatchObject(refusedBy('bounced'))
    expect((await lookUp(to)).suppressions).toMatchObject([{ reason: 'bounced', provider: 'mail' }])
  },
)

test.for([
  '550 no such user',
  '550 5.1.0 other address status',
  '550 5.2.1 disabled',
  '550 5.7.1 policy',
])('SMTP %s: no bounce', async (line) => {
  const to = `kept-${line.replaceAll(/\W/g, '')}@mail.test`
  rcptReplies.set(to, line)
  const { body } = await sendCode(to)
  await eventually(async () => /failed/.test(await stateOf(body.id)))
  expect((await sendCode(to)).status).toBe(202)
})

test('the durations of the file apply when read; false switches a reason off; a call in process has the reason', async () => {
  const [to, other] = [nextNumber(), nextNumber()]
  await report(await sent(to), 'bounced')
  await report(await sent(other), 'complained')
  const { pool } = postern.database
  await pool.query(`UPDATE suppression SET at = at - interval '3 days'`)
  const hosts = await Promise.all(
    [{ bounced: '4d', complained: false }, { bounced: '2d' }].map((suppress) => {
      const policyFile = { ...file, recipients: { suppress } }
      const environment = posternEnv({ ...postern, policyFile })
      return createPostern({ environment, keyPrefix: postern.redis.prefix })
    }),
  )
  for (const host of hosts) releaseLater(() => host.close())
  const [longer, shorter] = hosts as [(typeof hosts)[0], (typeof hosts)[0]]
  const asked = { app: 'default', channel: 'sms', to } as const
  expect(await longer.sendCaptcha(asked)).toEqual({
    outcome: 'destination_not_allowed',
    reason: 'bounced',
  })
  expect(await shorter.sendCaptcha(asked)).toMatchObject({ outcome: 'accepted' })
  const notice = { ...asked, to: other, template: 'welcome', params: { name: 'Ada' } }
  expect(await longer.sendNotice(notice)).toMatchObject({ outcome: 'accepted' })
  expect(await shorter.sendNotice(notice)).toMatchObject({
    outcome: 'destination_not_allowed',
    reason: 'complained',
  })
})
