/** One attacker at every entry: HTTP, Twilio Verify, CAMARA, and a hook. What one refuses, no other admits. */
import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { apiKey } from '../tools/api-key.ts'
import { newPhone } from '../tools/people.ts'
import { startPostern } from '../tools/postern.ts'

const va = `VA${'a'.repeat(32)}`
const hookKey = 'a signing key of Zitadel'
const recipient = { name: 'recipient', key: '{channel}:{to}', sliding: '1 per 1h' }
const guesses = {
  name: 'guesses',
  key: '{channel}:{to}',
  lockout: { limit: 3, window: '1h', lock: '1h' },
}
const refused = ['+8613900139000', 'Refused.Person@Example.com']
const postern = await startPostern({
  policyFile: {
    code: { length: 4, ttl: '5m', triesPerCode: 3 },
    policies: { captcha: [recipient], notice: [], check: [guesses] },
    recipients: { refuse: refused },
    compat: {
      camara: {},
      twilioVerify: { services: { [va]: { app: 'default', scene: 'camara' } } },
      hooks: { zitadel: { kind: 'zitadel', secret: hookKey, app: 'default', scene: 'camara' } },
    },
  },
})
const otherApp = await apiKey(postern.database, { app: 'other' })
const ended = await apiKey(postern.database, { expiresAt: new Date(Date.now() - 1_000) })

const basic = (key: string) =>
  `Basic ${Buffer.from(`AC${'0'.repeat(32)}:${key}`).toString('base64')}`
const twilioForm = (path: string, form: Record<string, string>, key: string) =>
  postern.post(`/v2/Services/${va}/${path}`, String(new URLSearchParams(form)), {
    key: null,
    headers: { 'content-type': 'application/x-www-form-urlencoded', authorization: basic(key) },
  })

const channelOf = (to: string) => (to.includes('@') ? 'email' : 'sms')
/** Each returns the status of a send. */
const doors: Record<string, (to: string, key?: string) => Promise<number>> = {
  http: async (to, key = postern.key) =>
    (await postern.post('/v1/captchas', { channel: channelOf(to), to, scene: 'camara' }, { key }))
      .status,
  twilio: async (to, key = postern.key) =>
    (await twilioForm('Verifications', { To: to, Channel: channelOf(to) }, key)).status,
  camara: async (to, key = postern.key) =>
    (
      await postern.post(
        '/one-time-password-sms/v1/send-code',
        { phoneNumber: to, message: '{{code}}' },
        { key },
      )
    ).status,
  async hook(to, key = hookKey) {
    const name = to.includes('@') ? 'recipientEmailAddress' : 'recipientPhoneNumber'
    const body = JSON.stringify({ contextInfo: { [name]: to }, args: { code: 'Q7W8E9' } })
    const at = Math.floor(Date.now() / 1_000)
    const v1 = createHmac('sha256', key).update(`${at}.${body}`).digest('hex')
    const headers = { 'zitadel-signature': `t=${at},v1=${v1}` }
    return (await postern.post('/v1/hooks/zitadel', body, { key: null, headers })).status
  },
}
const success: Record<string, number> = { http: 202, twilio: 201, camara: 200, hook: 200 }
const names = Object.keys(doors)
const through = (name: string, to: string, key?: string) =>
  (doors[name] as (to: string, key?: string) => Promise<number>)(to, key)

test.each(names)('limits: a send by %s counts at every other door', async (first) => {
  const to = newPhone()
  expect(await through(first, to)).toBe(success[first])
  for (const name of names.filter((one) => one !== first)) {
    expect([name, await through(name, to)]).toEqual([name, 429])
  }
})

describe('a refused recipient', () => {
  test.each(names)(
    '%s: 403 in every spelling that names this person, and nothing is sent',
    async (name) => {
      const spellings = [
        '+8613900139000',
        ...(name === 'camara' ? [] : ['+86 139-0013-9000', '+86 (139) 0013.9000']),
        ...(name === 'hook' ? ['8613900139000'] : []),
        ...(name === 'camara' ? [] : ['refused.person@example.com', 'REFUSED.PERSON@EXAMPLE.COM']),
      ]
      for (const to of spellings) expect([to, await through(name, to)]).toEqual([to, 403])
      expect(await postern.messages()).not.toContainEqual(
        expect.objectContaining({ to: expect.stringMatching(/13900139000|refused/i) }),
      )
    },
  )
})

test('keys: one that has ended, and a made-up one, open no door', async () => {
  for (const name of names) {
    for (const key of [ended, `${postern.key.slice(0, -1)}_`, '', 'psk_x:y']) {
      expect([name, key, await through(name, newPhone(), key || 'x')]).toEqual([name, key, 401])
    }
  }
})

test('codes: guesses by every door count in one budget, and the right code passes by none afterwards', async () => {
  const to = newPhone()
  const sent = await postern.post('/one-time-password-sms/v1/send-code', {
    phoneNumber: to,
    message: '{{code}}',
  })
  const id = sent.body.authenticationId
  const code = await postern.codeFor(to)
  const wrong = code === '0000' ? '1111' : '0000'
  const checks = {
    http: (typed: string) =>
      postern.post('/v1/captchas/check', { channel: 'sms', to, scene: 'camara', code: typed }),
    twilio: (typed: string) =>
      twilioForm('VerificationCheck', { To: to, Code: typed }, postern.key),
    camara: (typed: string) =>
      postern.post('/one-time-password-sms/v1/validate-code', {
        authenticationId: id,
        code: typed,
      }),
  }
  expect((await checks.http(wrong)).status).toBe(422)
  expect((await checks.twilio(wrong)).body.status).toBe('pending')
  expect((await checks.camara(wrong)).body.code).toMatch(/VERIFICATION_FAILED$/)
  expect((await checks.http(code)).status).toBeGreaterThanOrEqual(400)
  expect((await checks.twilio(code)).status).toBeGreaterThanOrEqual(400)
  expect((await checks.camara(code)).status).toBeGreaterThanOrEqual(400)
})

test('another app reads, checks and ends nothing of this one, by SID, by id, by number and by cursor', async () => {
  const to = newPhone()
  const sent = await twilioForm('Verifications', { To: to, Channel: 'sms' }, postern.key)
  const sid = sent.body.sid as string
  const id = sid.slice(2).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  const code = await postern.codeFor(to)
  const asOther = { key: null, headers: { authorization: basic(otherApp) } }
  for (const name of [sid, to]) {
    const path = `/v2/Services/${va}/Verifications/${name}`
    expect((await postern.get(path, asOther)).status).toBe(404)
    for (const Status of ['canceled', 'approved']) {
      expect((await twilioForm(`Verifications/${name}`, { Status }, otherApp)).status).toBe(404)
    }
  }
  const forms: Record<string, string>[] = [{ VerificationSid: sid }, { To: to }]
  for (const form of forms) {
    const checked = await twilioForm('VerificationCheck', { ...form, Code: code }, otherApp)
    expect(checked.status).toBe(404)
  }
  const validated = await postern.post(
    '/one-time-password-sms/v1/validate-code',
    { authenticationId: id, code },
    { key: otherApp },
  )
  expect(validated.status).toBe(404)
  for (const query of [
    '',
    `?VerificationSid=${sid}`,
    `?ChannelData.To=${encodeURIComponent(to)}`,
  ]) {
    const listed = await postern.get(`/v2/Attempts${query}`, asOther)
    expect([listed.status, listed.body.attempts]).toEqual([200, []])
  }
  const summary = await postern.get('/v2/Attempts/Summary', asOther)
  expect(summary.body.total_attempts).toBe(0)
  const ours = { key: null, headers: { authorization: basic(postern.key) } }
  const { body } = await postern.get('/v2/Attempts?PageSize=1', ours)
  const next = new URL(body.meta.next_page_url)
  expect((await postern.get(next.pathname + next.search, ours)).status).toBe(200)
  const stolen = await postern.get(next.pathname + next.search, asOther)
  expect(JSON.stringify(stolen.body)).not.toContain(sid.slice(0, 10))
  // The code is as it was.
  const passed = await twilioForm('VerificationCheck', { To: to, Code: code }, postern.key)
  expect(passed.body.status).toBe('approved')
})
