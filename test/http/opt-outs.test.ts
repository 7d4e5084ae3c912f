/** Opt-outs by the words of persons, through the whole product: Twilio's incoming messages, error 21610, and STOP over SMPP. */
import { expect, test } from 'vitest'
import { json, startHttpFarEnd } from '../providers/far-ends/http.ts'
import { startSmppFarEnd } from '../providers/far-ends/smpp.ts'
import { signTwilio } from '../providers/far-ends/twilio.ts'
import { apiKey } from '../tools/api-key.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const barred = new Set<string>()
const twilio = await startHttpFarEnd(({ body }) => {
  const to = new URLSearchParams(body).get('To') ?? ''
  if (barred.has(to)) return json(400, { code: 21610, message: 'unsubscribed', status: 400 })
  return {
    ...json(201, { sid: `SM${to.slice(1)}`, status: 'queued' }),
    taken: { reference: to, to },
  }
})
const smsc = await startSmppFarEnd()
releaseLater(() => twilio.close())
releaseLater(() => smsc.close())
const [authToken, statusCallback] = ['token', 'https://postern.example/v1/receipts/twilio']
const postern = await startPostern({
  policyFile: {
    policies: noLimits,
    browser: { rules: [], checkRules: [] },
    providers: {
      twilio: {
        ...{
          kind: 'twilio',
          accountSid: `AC${'0'.repeat(32)}`,
          authToken,
          statusCallback,
          channels: ['sms', 'voice'],
        },
        ...{ from: '+15005550006', endpoint: `http://127.0.0.1:${twilio.port}` },
      },
      smsc: { kind: 'smpp', url: `smpp://postern:pass@127.0.0.1:${smsc.port}`, from: 'Acme' },
    },
    routes: {
      voice: [{ use: ['twilio'] }],
      sms: [{ match: { country: ['GB', 'GG'] }, use: ['smsc'] }, { use: ['twilio'] }],
      email: [],
    },
  },
})

const sendTo = (to: string, options = {}) =>
  postern.post(
    '/v1/notices',
    { channel: 'sms', to, template: 'welcome', params: { name: 'Ada' } },
    options,
  )
const stateOf = async (id: string) => {
  const { state, error } = (await postern.get(`/v1/notices/${id}`)).body
  return error === undefined ? state : `${state} (${error})`
}
async function sent(to: string): Promise<void> {
  const { body } = await sendTo(to)
  await eventually(async () => expect(await stateOf(body.id)).toBe('sent'))
}
const optedOut = { status: 403, body: { code: 'destination_not_allowed', reason: 'opted_out' } }
const reasons = async (to: string, options = {}) => {
  const { body } = await postern.post('/v1/recipients/lookup', { channel: 'sms', to }, options)
  return body.suppressions.map(
    ({ reason, provider }: Record<string, string>) => `${provider} ${reason}`,
  )
}

function incoming(from: string, fields: Record<string, string>, token = authToken) {
  const form = new URLSearchParams({ MessageSid: 'SM1', From: from, To: '+15005550006', ...fields })
  const headers = {
    'x-twilio-signature': signTwilio(token, statusCallback, form),
    'content-type': 'application/x-www-form-urlencoded',
  }
  return postern.post('/v1/receipts/twilio', form.toString(), { key: null, headers })
}

test('Twilio: STOP opts out, HELP changes nothing, START opts in', async () => {
  const to = '+12025550101'
  await sent(to)
  expect((await incoming(to, { Body: 'ARRET', OptOutType: 'STOP' }, 'another')).status).toBe(403)
  expect(await incoming(to, { Body: 'ARRET', OptOutType: 'HELP' })).toMatchObject({ status: 200 })
  expect(await reasons(to)).toEqual([])
  expect((await incoming(to, { Body: 'ARRET', OptOutType: 'STOP' })).status).toBe(200)
  expect(await sendTo(to)).toMatchObject(optedOut)
  expect(await reasons(to)).toEqual(['twilio opted_out'])
  expect((await incoming(to, { Body: 'START', OptOutType: 'START' })).status).toBe(200)
  expect((await sendTo(to)).status).toBe(202)
})

test('STOP concerns every channel of the provider to the number, and so does START', async () => {
  const to = '+12025550106'
  await sent(to)
  const call = () => postern.post('/v1/captchas', { channel: 'voice', to })
  await incoming(to, { Body: 'STOP', OptOutType: 'STOP' })
  expect(await call()).toMatchObject(optedOut)
  await incoming(to, { Body: 'START', OptOutType: 'START' })
  expect((await call()).status).toBe(202)
})

test('a reset of one channel ends the STOP for every channel of the number', async () => {
  const to = '+12025550107'
  await sent(to)
  await incoming(to, { Body: 'STOP', OptOutType: 'STOP' })
  const reset = { channel: 'sms', to, what: ['suppression'], reason: 'the person asked' }
  expect((await postern.post('/v1/recipients/reset', reset)).status).toBe(204)
  expect((await postern.post('/v1/captchas', { channel: 'voice', to })).status).toBe(202)
})

test('without Advanced Opt-Out: the word alone counts, and no sentence', async () => {
  const to = '+12025550102'
  await sent(to)
  await incoming(to, { Body: 'please stop it' })
  expect(await reasons(to)).toEqual([])
  await incoming(to, { Body: ' stop. ' })
  expect(await reasons(to)).toEqual(['twilio opted_out'])
})

test('a number that got no message yet: every app', async () => {
  const to = '+12025550103'
  const key = await apiKey(postern.database, { app: 'other' })
  await incoming(to, { Body: 'STOP', OptOutType: 'STOP' })
  expect(await sendTo(to)).toMatchObject(optedOut)
  expect(await sendTo(to, { key })).toMatchObject(optedOut)
})

test('a number that got messages of one app: that app', async () => {
  const to = '+12025550104'
  const key = await apiKey(postern.database, { app: 'another' })
  await sent(to)
  await incoming(to, { Body: 'STOP', OptOutType: 'STOP' })
  expect(await reasons(to, { key })).toEqual([])
  expect((await sendTo(to, { key })).status).toBe(202)
})

test('error 21610: this notice fails as opted out, and the next send is refused', async () => {
  const to = '+12025550105'
  barred.add(to)
  const { body } = await sendTo(to)
  await eventually(async () => (await stateOf(body.id)) === 'failed (opted_out)')
  expect(await sendTo(to)).toMatchObject(optedOut)
})

test.for([
  ['international', '447911123201'],
  ['with a plus', '+447911123202'],
  ['with the exit code', '00447911123203'],
  ['national', '07911123204'],
  ['national without the zero', '7911123205'],
])('SMPP: STOP from a number written %s', async ([, source_addr = '']) => {
  const to = `+44${source_addr.replace(/^\+?(0044|44|0)?/, '')}`
  await sent(to)
  const session = await eventually(() => smsc.sessions.at(-1) ?? false)
  const deliver = (short_message: string) =>
    new Promise<{ command_status: number }>((resolve) => {
      session.deliver_sm(
        { esm_class: 0, source_addr, destination_addr: 'Acme', short_message },
        resolve,
      )
    })
  expect((await deliver('Stop')).command_status).toBe(0)
  expect(await sendTo(to)).toMatchObject(optedOut)
  expect(await reasons(to)).toEqual(['smsc opted_out'])
  await deliver('START')
  expect((await sendTo(to)).status).toBe(202)
})
