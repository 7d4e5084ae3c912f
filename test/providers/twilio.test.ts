import { describe, expect, it } from 'vitest'
import { unreadable } from '../../src/base/receipt.ts'
import { resultOfError } from '../../src/providers/twilio/index.ts'
import { callbackUrl } from '../../src/providers/twilio/settings.ts'
import { isSignedByTwilio } from '../../src/providers/twilio/signature.ts'
import twilio, * as given from './cases/twilio.ts'
import { signTwilio } from './far-ends/twilio.ts'
import { forged, malformed, testVendor } from './vendor.ts'

const { accountSid, authToken, entry } = given
const { statusCallback } = entry
const { message, read, send } = testVendor(given)

describe('twilio', () => {
  it.each([
    ['+12025550123', true],
    ['12345', true],
    ['Acme Ltd', true],
    ['A', true],
    ['ACMECOMPANY', true],
    ['whatsapp:+12025550123', true],
    ['Zeus The Mighty', false],
    ['ACMECOMPANY1', false],
    [' Acme', false],
    ['Acme ', false],
    ['Зевс', false],
    ['+1 202 555 0123', false],
    ['+', false],
  ])('takes the sender %j: %s', (sender, isTaken) => {
    expect(twilio.settings.safeParse({ ...entry, from: sender }).success).toBe(isTaken)
  })

  it('sends the form that the API takes', async () => {
    const messagingServiceSid = `MG${'1'.repeat(32)}`
    const { requests } = await send({}, { from: undefined, messagingServiceSid })
    expect(Object.fromEntries(new URLSearchParams(requests[0]?.body))).toEqual({
      To: message.to,
      Body: message.text,
      MessagingServiceSid: messagingServiceSid,
      StatusCallback: `${statusCallback}?noticeId=n-1`,
    })
  })

  it.each([
    [299_500, '299'],
    [300, '1'],
    [-1_000, '1'],
    [86_400_000, '36000'],
  ])('a message with %d ms left has a validity of %s s', async (leftMs, expected) => {
    const { requests } = await send({ endsAtMs: performance.now() + leftMs })
    expect(new URLSearchParams(requests[0]?.body).get('ValidityPeriod')).toBe(expected)
  })

  it.each([
    { ...entry, messagingServiceSid: `MG${'1'.repeat(32)}` },
    { accountSid, authToken },
    { ...entry, accountSid: 'AC1' },
    { ...entry, statusCallback: 'ftp://postern.test' },
  ])('refuses wrong settings %#', (wrong) => {
    const checked = twilio.settings.safeParse(wrong)
    expect(checked.success).toBe(false)
    expect(JSON.stringify(checked.error?.issues)).not.toContain(authToken)
  })

  it.each([
    [21610, 400, 'invalid_recipient'],
    [21614, 400, 'invalid_recipient'],
    [21635, 400, 'invalid_recipient'],
    [30003, 201, 'postponed'],
    [30008, 201, 'postponed'],
    [20429, 429, 'throttled'],
    [21611, 400, 'throttled'],
    [21408, 400, 'rejected'],
    [20003, 401, 'unavailable'],
    [20404, 404, 'unavailable'],
    [undefined, 400, 'rejected'],
    ['21211', 403, 'unavailable'],
  ])('takes error %s in HTTP %i for %s', (code, status, kind) => {
    expect(resultOfError(code, status).kind).toBe(kind)
  })

  it('accepts the signature of the example of the documentation', () => {
    const form = new URLSearchParams({
      CallSid: 'CA1234567890ABCDE',
      Caller: '+14158675310',
      Digits: '1234',
      From: '+14158675310',
      To: '+18005551212',
    })
    const url = 'https://mycompany.com/myapp.php?foo=1&bar=2'
    expect(isSignedByTwilio('12345', url, form, 'GvWf1cFY/Q7PnoempGyD5oXAezc=')).toBe(true)
  })

  describe('receipts', () => {
    const fields = {
      MessageSid: 'SM1',
      MessageStatus: 'delivered',
      To: '+447700900123',
      AccountSid: accountSid,
    }

    /** A callback with these fields, signed for this address. */
    const signedFor = (
      url: string,
      form: Record<string, string>,
      query = {},
      token = authToken,
    ) => {
      const body = new URLSearchParams(form)
      return { body, query, headers: { 'x-twilio-signature': signTwilio(token, url, body) } }
    }
    function parse(form: Record<string, string>, noticeId = 'n-1', token = authToken) {
      const url = `${statusCallback}?noticeId=${noticeId}`
      const { body, ...request } = signedFor(url, form, { noticeId }, token)
      return read(body, request)
    }

    it('reads final states and passes over the others', () => {
      const reply = { status: 204, contentType: 'text/plain', body: '' }
      const receipt = { messageId: 'SM1', noticeId: 'n-1', outcome: 'delivered' }
      expect(parse(fields)).toEqual({ ok: true, receipts: [receipt], reply })
      expect(parse({ ...fields, MessageStatus: 'undelivered', ErrorCode: '30003' })).toEqual({
        ok: true,
        receipts: [{ ...receipt, outcome: 'failed', detail: 'twilio 30003' }],
        reply,
      })
      expect(parse({ ...fields, MessageStatus: 'constructor' })).toMatchObject({
        receipts: [unreadable],
      })
      for (const status of ['queued', 'sent', 'sending']) {
        expect(parse({ ...fields, MessageStatus: status })).toEqual({
          ok: true,
          receipts: [],
          reply,
        })
      }
    })

    it('refuses another token, another notice id and a missing signature (I12)', () => {
      expect(parse(fields, 'n-1', 'another')).toEqual(forged)
      const { body, ...request } = signedFor(statusCallback, fields)
      expect(read(body, { ...request, query: { noticeId: 'n-2' } })).toEqual(forged)
      expect(read(body)).toEqual(forged)
    })

    const query = '/v1/receipts/twilio?noticeId=n-1'
    it.each([
      ['https://h.test:8443/v1/receipts/twilio', `https://h.test${query}`],
      ['https://h.test:8443/v1/receipts/twilio', `https://h.test:8443${query}`],
      ['https://h.test/v1/receipts/twilio', `https://h.test:443${query}`],
      ['https://h.test:443/v1/receipts/twilio', `https://h.test:443${query}`],
      ['https://h.test:443/v1/receipts/twilio', `https://h.test${query}`],
      ['http://h.test/v1/receipts/twilio', `http://h.test:80${query}`],
      ['https://u:p@h.test/v1/receipts/twilio', `https://u:p@h.test${query}`],
      ['https://u:p@h.test/v1/receipts/twilio', `https://u:p@h.test:443${query}`],
      ['https://u:p@h.test/v1/receipts/twilio', `https://h.test${query}`],
      ['https://h.test/v1/receipts/twilio#rc=2', `https://h.test${query}`],
      ['https://h.test/v1/receipts/twilio#rc=2', `https://h.test${query}#rc=2`],
      ['https://h.test:8443/v1/receipts/twilio#rc=2&ct=5', `https://h.test${query}#rc=2&ct=5`],
    ])('of %s, signed as %s → accepted', (statusCallback, signedUrl) => {
      const parsedBy = (url: string) => {
        const { body, ...request } = signedFor(url, fields, { noticeId: 'n-1' })
        return read(body, { ...request, settings: { statusCallback } })
      }
      expect(parsedBy(signedUrl)).toMatchObject({ ok: true })
      for (const other of ['https://other.test', 'https://h.test:9999', 'https://x:y@h.test']) {
        expect(parsedBy(other + query)).toEqual(forged)
      }
    })

    it('the notice id stands before the fragment of the address', () => {
      const callback = {
        ...twilio.settings.parse(entry),
        statusCallback: 'https://h.test/r?a=1#rc=2',
      }
      expect(callbackUrl(callback, 'n-1')).toBe('https://h.test/r?a=1&noticeId=n-1#rc=2')
    })

    it('calls a signed form without sid or status malformed', () => {
      expect(parse({ MessageSid: 'SM1' })).toEqual(malformed)
      expect(parse({ MessageStatus: 'delivered' })).toEqual(malformed)
    })
  })
})
