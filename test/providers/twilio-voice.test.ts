import { describe, expect, it } from 'vitest'
import { unreadable } from '../../src/base/receipt.ts'
import { callbackUrl } from '../../src/providers/twilio/settings.ts'
import twilio, { entry as ofEntry, conformance as ofSms } from './cases/twilio.ts'
import type { Conformance } from './conformance.ts'
import { signTwilio } from './far-ends/twilio.ts'
import { testVendor } from './vendor.ts'

/** Calls that Twilio accepted fail later, so their receipts report it. */
const { postpone: _, error_inside: __, ...expected } = ofSms.expected
const conformance = {
  ...ofSms,
  settings: (port) => ({
    ...ofEntry,
    channels: ['voice'],
    statusCallback: 'https://postern.test/v1/receipts/caller',
    endpoint: `http://127.0.0.1:${port}`,
  }),
  message: {
    ...ofSms.message,
    channel: 'voice',
    text: 'Your number is 7, 3, 8, 2, 9, 1 & <nobody> may ask for it.',
  },
  expected,
} satisfies Conformance

const { accountSid, authToken, ...entry } = conformance.settings(1)
const settings = twilio.settings.parse({ accountSid, authToken, ...entry })
const { message, read, send } = testVendor({ default: twilio, conformance })

describe('twilio: calls', () => {
  it('reads the text twice, escaped, in the language of the message', async () => {
    const { requests } = await send({ locale: 'de', endsAtMs: performance.now() + 20_900 })
    const text = 'Your number is 7, 3, 8, 2, 9, 1 &#38; &#60;nobody&#62; may ask for it.'
    const say = `<Say language="de-DE">${text}</Say>`
    expect(requests[0]?.path).toBe(`/2010-04-01/Accounts/${accountSid}/Calls.json`)
    expect(Object.fromEntries(new URLSearchParams(requests[0]?.body))).toEqual({
      To: message.to,
      From: '+15005550006',
      Timeout: '20',
      Twiml: `<?xml version="1.0" encoding="UTF-8"?><Response><Pause length="1"/>${say}<Pause length="1"/>${say}</Response>`,
      StatusCallback: 'https://postern.test/v1/receipts/caller?noticeId=n-1',
    })
  })

  it.each([
    ['en', 'en-US'],
    ['en-GB', 'en-GB'],
    ['zh', 'zh-CN'],
    ['zh-Hant', 'zh-TW'],
    ['zh-Hant-HK', 'zh-HK'],
    ['pt', 'pt-BR'],
    ['sr-Latn', 'sr-RS'],
  ])('the locale %s is read as %s, and rings for half a minute', async (locale, language) => {
    const { requests } = await send({ locale })
    const form = new URLSearchParams(requests[0]?.body)
    expect(form.get('Twiml')).toContain(`<Say language="${language}">`)
    expect(form.get('Timeout')).toBe('30')
  })

  it('characters that XML can never have are left out', async () => {
    const { requests } = await send({ text: 'a\u0000b\u001bc\ud800d\n"e"' })
    const twiml = new URLSearchParams(requests[0]?.body).get('Twiml')
    expect(twiml).toContain('>a b c\ufffdd\n&#34;e&#34;<')
  })

  it.each([
    [{ from: '+15005550006' }, true],
    [{ from: { default: '+15005550006', FR: false } }, true],
    [{ from: 'ACME' }, false],
    [{ from: '12345' }, false],
    [{ from: { default: '+15005550006', US: 'ACME' } }, false],
    [{ from: undefined, messagingServiceSid: `MG${'1'.repeat(32)}` }, false],
    [{ channels: ['sms'], from: 'ACME' }, true],
    [{ channels: ['sms', 'voice'], from: '+15005550006' }, true],
    [{ channels: ['email'] }, false],
    [{ channels: [] }, false],
  ])('the settings %j: %s', (more, isTaken) => {
    const read = twilio.settings.safeParse({ accountSid, authToken, ...entry, ...more })
    expect(read.success).toBe(isTaken)
  })

  it('without channels, an entry carries SMS only', () => {
    const { channels: ___, ...older } = { accountSid, authToken, ...entry }
    expect(twilio.channelsOf?.(twilio.settings.parse(older))).toEqual(['sms'])
    expect(twilio.channelsOf?.(settings)).toEqual(['voice'])
  })

  const report = (fields: Record<string, string>) => {
    const form = new URLSearchParams(fields)
    const signature = signTwilio(authToken, callbackUrl(settings, 'n-1') as string, form)
    return read(form, { headers: { 'x-twilio-signature': signature }, query: { noticeId: 'n-1' } })
  }

  it.each([
    ['completed', [{ outcome: 'delivered', detail: undefined }]],
    ['busy', [{ outcome: 'failed', detail: 'twilio busy' }]],
    ['no-answer', [{ outcome: 'failed', detail: 'twilio no-answer' }]],
    ['failed', [{ outcome: 'failed', detail: 'twilio failed' }]],
    ['canceled', [{ outcome: 'failed', detail: 'twilio canceled' }]],
    ['ringing', []],
    ['in-progress', []],
  ])('a call that is %s → %j', (CallStatus, expected) => {
    const ids = { messageId: 'CA1', noticeId: 'n-1' }
    expect(report({ CallSid: 'CA1', CallStatus })).toMatchObject({
      ok: true,
      receipts: expected.map((one) => ({ ...ids, ...one })),
    })
  })

  it('a status that this build does not know → counted', () => {
    expect(report({ CallSid: 'CA1', CallStatus: 'constructor' })).toMatchObject({
      receipts: [unreadable],
    })
  })
})
