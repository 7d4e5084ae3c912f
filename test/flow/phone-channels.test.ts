/** Channels to a phone number beside SMS, sent directly: voice by a webhook that speaks the text, WhatsApp and Telegram. */
import { createHash, createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { signWebhook } from '../../src/crypto/standard-webhooks.ts'
import { entry as gatewayEntry } from '../providers/cases/telegram.ts'
import { entry as metaEntry } from '../providers/cases/whatsapp.ts'
import { startTelegramFarEnd } from '../providers/far-ends/telegram.ts'
import { startWebhookFarEnd } from '../providers/far-ends/webhook.ts'
import { startPostern } from '../tools/postern.ts'
import { closeLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const secret = `whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`
const caller = closeLater(await startWebhookFarEnd(secret))
const gateway = closeLater(await startTelegramFarEnd(gatewayEntry.token))
const { url, key, ...postern } = await startPostern({
  policyFile: {
    providers: {
      sandbox: { kind: 'sandbox' },
      caller: { kind: 'webhook', url: `http://127.0.0.1:${caller.port}/call`, secret },
      meta: { kind: 'whatsapp', ...metaEntry },
      gateway: { kind: 'telegram', ...gatewayEntry, endpoint: `http://127.0.0.1:${gateway.port}` },
    },
    routes: {
      sms: [{ match: { country: 'CN' }, use: ['sandbox'] }],
      voice: [{ match: { country: ['CN', 'GB'] }, use: ['caller'] }],
      whatsapp: [{ use: ['sandbox'] }],
      telegram: [{ match: { template: 'captcha', country: 'CN' }, use: ['gateway'] }],
    },
  },
})

let people = 0
const newPhone = () => `+861380031${String(++people).padStart(4, '0')}`
const send = (channel: string, to: string, more = {}) =>
  postern.post('/v1/captchas', { channel, to, ...more })
const check = (channel: string, to: string, code: string) =>
  postern.post('/v1/captchas/check', { channel, to, code })
const called = (to: string) =>
  eventually(() => {
    const found = caller.requests.map(({ body }) => JSON.parse(body)).find((one) => one.to === to)
    return found ?? false
  })
const digitsIn = (text: string) => (/\d(, \d){3}/.exec(text)?.[0] ?? '').replaceAll(', ', '')

test('voice by a webhook: the text for the ear, with the digits apart; its code passes for voice and not for SMS', async () => {
  const to = newPhone()
  const sent = await send('voice', to, { locale: 'de' })
  expect(sent).toMatchObject({
    status: 202,
    body: { channel: 'voice', to: `${to.slice(0, 5)}****${to.slice(-4)}`, codeLength: 4 },
  })
  const { text, channel, locale } = await called(to)
  expect([channel, locale]).toEqual(['voice', 'de'])
  expect(text).toMatch(/^Ihr Bestätigungscode lautet: \d, \d, \d, \d, er gilt 5 Minuten\./)
  const code = digitsIn(text)
  expect((await check('sms', to, code)).body).toMatchObject({ code: 'code_gone' })
  expect((await check('voice', to, code)).body).toMatchObject({ verified: true, id: sent.body.id })
})

test('voice: a receipt of the webhook, and a reason that names the number, which is left out', async () => {
  const to = newPhone()
  const { body } = await send('voice', to)
  await eventually(async () => (await postern.get(`/v1/notices/${body.id}`)).body.state === 'sent')
  const report = JSON.stringify({
    noticeId: body.id,
    outcome: 'failed',
    reason: `busy.${to.slice(1)}`,
  })
  const headers = { ...signWebhook(secret, body.id, Date.now(), report) }
  const taken = await postern.post('/v1/receipts/caller', report, { key: null, headers })
  expect(taken.status).toBe(204)
  const { body: notice } = await postern.get(`/v1/notices/${body.id}`)
  expect(notice).toMatchObject({ channel: 'voice', state: 'failed', error: 'not_delivered' })
})

test('a landline gets calls and no SMS; a channel has only its own routes', async () => {
  const landline = '+442071234567'
  expect((await send('voice', landline)).status).toBe(202)
  expect(await send('sms', landline)).toMatchObject({
    status: 422,
    body: {
      code: 'invalid_recipient',
      detail: 'This type of number gets no messages by this channel. Use a mobile number.',
    },
  })
  expect(await send('voice', '+12125550100')).toMatchObject({
    status: 400,
    body: { errors: [{ path: 'channel' }] },
  })
  expect((await send('telegram', '+447400123456')).body).toMatchObject({
    code: 'invalid_request',
    errors: [{ path: 'channel' }],
  })
})

test('an address in place of a number → a sentence that is true of every such channel', async () => {
  for (const channel of ['sms', 'voice', 'whatsapp', 'telegram']) {
    const { body } = await send(channel, 'ada@example.com')
    expect(body).toMatchObject({ code: 'invalid_recipient' })
    expect(body.detail).toContain('this channel needs a phone number')
  }
})

test('one number, three channels within a minute → all are sent, and the search by number finds them together', async () => {
  const to = newPhone()
  const ids: string[] = []
  for (const channel of ['sms', 'voice', 'whatsapp']) {
    const { status, body } = await send(channel, to)
    expect([channel, status]).toEqual([channel, 202])
    ids.unshift(body.id)
  }
  const search = (more = {}) => postern.post('/v1/notices/search', { to, ...more }, { key })
  const found = await search()
  expect(found.body.items.map(({ id }: { id: string }) => id)).toEqual(ids)
  expect((await search({ channel: 'voice' })).body.items).toHaveLength(1)
  const { body } = await postern.post('/v1/recipients/lookup', { channel: 'whatsapp', to })
  expect(body.notices).toMatchObject([{ id: ids[0], channel: 'whatsapp' }])
  // The text of SMS, because there is none for WhatsApp.
  expect((await postern.messageFor(ids[0] as string)).text).toContain('is your verification code')
})

test('the handshake of Meta at the real address → its challenge; a wrong token → 403', async () => {
  const meta = 'hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token='
  const answer = await fetch(`${url}/v1/receipts/meta?${meta}test-verify-token`)
  expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([
    200,
    expect.stringMatching(/^text\/plain/),
    '1158201444',
  ])
  expect((await fetch(`${url}/v1/receipts/meta?${meta}other`)).status).toBe(403)
  expect((await fetch(`${url}/v1/receipts/meta`)).status).toBe(403)
})

test('Telegram: sent by its Gateway; a report that it was not delivered in time fails the notice, and its refund is counted', async () => {
  const to = newPhone()
  const { body } = await send('telegram', to)
  const sent = await eventually(async () => {
    const { body: notice } = await postern.get(`/v1/notices/${body.id}`)
    return notice.state === 'sent' && notice
  })
  const seconds = String(Math.floor(Date.now() / 1_000))
  const report = JSON.stringify({
    request_id: sent.providerMessageId,
    phone_number: to,
    delivery_status: { status: 'expired', updated_at: Number(seconds) },
    is_refunded: true,
  })
  const tokenHash = createHash('sha256').update(gatewayEntry.token).digest()
  const signature = createHmac('sha256', tokenHash).update(`${seconds}\n${report}`).digest('hex')
  const headers = { 'x-request-timestamp': seconds, 'x-request-signature': signature }
  for (let copy = 0; copy < 2; copy++) {
    const taken = await postern.post('/v1/receipts/gateway', report, { key: null, headers })
    expect(taken.status).toBe(200)
  }
  const { body: notice } = await postern.get(`/v1/notices/${body.id}`)
  expect(notice).toMatchObject({ state: 'failed', error: 'not_delivered (telegram expired)' })
  const metrics = await (await fetch(`${postern.adminUrl}/metrics`)).text()
  expect(metrics).toMatch(/^postern_refunds_total\{provider="gateway".*\} 1$/m)
})
