import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { unreadable } from '../../src/base/receipt.ts'
import * as given from './cases/whatsapp.ts'
import { error } from './far-ends/whatsapp.ts'
import { forged, malformed, rejectedUnsent, testVendor } from './vendor.ts'

const { entry } = given
const { message, read, readerWith, send } = testVendor(given)

describe('whatsapp', () => {
  it('sends the authentication template with the code in its text and behind its button', async () => {
    const { result, requests } = await send({ locale: 'zh-CN' })
    expect(result).toEqual({ kind: 'accepted', messageId: 'wamid.n-1' })
    const parameters = [{ type: 'text', text: '738291' }]
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({
      messaging_product: 'whatsapp',
      recipient_type: 'individual',
      to: message.to,
      type: 'template',
      template: {
        name: 'verification_code',
        language: { code: 'zh_CN' },
        components: [
          { type: 'body', parameters },
          { type: 'button', sub_type: 'url', index: '0', parameters },
        ],
      },
      biz_opaque_callback_data: 'n-1',
    })
  })

  it.each(['de', 'zh-TW', 'sw'])(
    'a message in %s, without an entry in it → the nearest entry, else English, because the text is fixed',
    async (locale) => {
      const { requests } = await send({ locale })
      const { language } = JSON.parse(requests[0]?.body ?? '{}').template ?? {}
      expect(language).toEqual({ code: locale.startsWith('zh') ? 'zh_CN' : 'en_US' })
    },
  )

  it.each([
    ['a template without an entry', { template: 'welcome' }],
    ['no code', { variables: { name: 'Ada' } }],
    ['a code that is too long', { variables: { code: '1'.repeat(16) } }],
  ])('%s → rejected without a call', async (_, more) => {
    expect(await send(more as object)).toMatchObject(rejectedUnsent)
  })

  it.each([
    [400, 131026, { kind: 'invalid_recipient' }],
    [400, 131062, { kind: 'invalid_recipient', isBarredHere: true }],
    [400, 131056, { kind: 'postponed', retryAfterMs: 6_000 }],
    [429, 131056, { kind: 'postponed', retryAfterMs: 6_000 }],
    [400, 130429, { kind: 'throttled', retryAfterMs: 1_000 }],
    [429, 131048, { kind: 'throttled', retryAfterMs: 60_000 }],
    [400, 132015, { kind: 'rejected' }],
    [404, 132001, { kind: 'rejected' }],
    [400, 190, { kind: 'unavailable' }],
    [403, 204, { kind: 'unavailable' }],
    [403, 130497, { kind: 'invalid_recipient', isBarredHere: true }],
    [400, 100, { kind: 'rejected', detail: 'whatsapp 100' }],
    [401, 424242, { kind: 'unavailable' }],
    [500, 424242, { kind: 'unavailable' }],
  ])('HTTP %i with error %i → %j', async (status, code, expected) => {
    const answer = () => error(status, code, `about ${message.to}`)
    const { result } = await send({}, {}, answer)
    expect(result).toMatchObject(expected)
    expect(JSON.stringify(result)).not.toContain(message.to)
  })
})

describe('its webhook', () => {
  const sign = (body: string, secret = entry.appSecret) =>
    `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
  const post = (value: unknown, more: { signature?: string; settings?: object } = {}) => {
    const { signature = sign(typeof value === 'string' ? value : JSON.stringify(value)) } = more
    return read(value, { ...more, headers: { 'x-hub-signature-256': signature } })
  }
  const webhook = (value: object, phone_number_id = entry.phoneNumberId) => ({
    object: 'whatsapp_business_account',
    entry: [
      {
        id: '1',
        changes: [{ field: 'messages', value: { metadata: { phone_number_id }, ...value } }],
      },
    ],
  })
  const status = (more = {}) => ({ id: 'wamid.1', timestamp: '1750000000', ...more })
  const receiptsOf = (parsed: ReturnType<typeof read>) => (parsed.ok ? parsed.receipts : parsed)

  it.each([
    ['delivered', 'delivered'],
    ['read', 'delivered'],
    ['failed', 'failed'],
  ])('%s without a number → %s, by the id of the message', (name, outcome) => {
    const at = 1_750_000_000_000
    const value = { statuses: [status({ status: name })] }
    expect(receiptsOf(post(webhook(value)))).toEqual([{ messageId: 'wamid.1', outcome, at }])
  })

  it('a failure with its error, and the notice id that the message had', () => {
    const errors = [{ code: 131026, title: 'Message undeliverable' }]
    const value = {
      statuses: [status({ status: 'failed', errors, biz_opaque_callback_data: 'n-1' })],
    }
    expect(receiptsOf(post(webhook(value)))).toMatchObject([
      { messageId: 'wamid.1', noticeId: 'n-1', outcome: 'failed', detail: 'whatsapp 131026' },
    ])
  })

  it.each([
    [
      'a message that a person wrote',
      webhook({ messages: [{ from: '447700900123', id: 'wamid.2' }] }),
    ],
    ['a status that is not final', webhook({ statuses: [status({ status: 'sent' })] })],
    [
      'the status of another number of the app',
      webhook({ statuses: [status({ status: 'read' })] }, '4711'),
    ],
    [
      'news of the account',
      {
        object: 'whatsapp_business_account',
        entry: [{ changes: [{ field: 'account_update', value: {} }] }],
      },
    ],
  ])('%s → 200, and nothing changes', (_, sent) => {
    expect(post(sent)).toEqual({
      ok: true,
      receipts: [],
      reply: { status: 200, contentType: 'text/plain', body: '' },
    })
  })

  it('a status that this build does not know → 200, and counted', () => {
    const value = { statuses: [status({ status: 'framed' }), status({ status: 'read' })] }
    expect(receiptsOf(post(webhook(value)))).toMatchObject([unreadable, { outcome: 'delivered' }])
  })

  it('another signature, another secret, none in the settings → forged; a body that is none → malformed', () => {
    const sent = webhook({ statuses: [status({ status: 'read' })] })
    expect(post(sent, { signature: sign('{}') })).toEqual(forged)
    expect(post(sent, { signature: sign(JSON.stringify(sent), 'other') })).toEqual(forged)
    expect(post(sent, { signature: sign(JSON.stringify(sent)).slice(7) })).toEqual(forged)
    expect(post(sent, { settings: { appSecret: undefined } })).toEqual(forged)
    for (const body of ['', '{}', '[]', 'null', '{"entry":{}}', 'x'])
      expect(post(body)).toEqual(malformed)
    expect(readerWith().mayBeGenuine({ headers: {}, query: {}, receivedAt: 0 })).toBe(false)
  })

  const greet = (query: Record<string, unknown>, settings = {}) => read('', { query, settings })
  const greeting = {
    'hub.mode': 'subscribe',
    'hub.verify_token': entry.verifyToken,
    'hub.challenge': '1158201444',
  }

  it('the handshake with the right token → its challenge as plain text', () => {
    expect(greet(greeting)).toEqual({
      ok: true,
      receipts: [],
      reply: { status: 200, contentType: 'text/plain', body: '1158201444' },
    })
    expect(readerWith().readsQuery).toBe(true)
    expect(readerWith().mayBeGenuine({ headers: {}, query: greeting, receivedAt: 0 })).toBe(true)
  })

  it('the handshake with another token, with two, or without one in the settings → forged', () => {
    for (const token of ['other', '', undefined, [entry.verifyToken, 'other']])
      expect(greet({ ...greeting, 'hub.verify_token': token })).toEqual(forged)
    expect(greet(greeting, { verifyToken: undefined })).toEqual(forged)
    expect(greet({ ...greeting, 'hub.mode': 'unsubscribe' })).toEqual(forged)
  })
})
