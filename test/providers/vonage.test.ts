import { describe, expect, it } from 'vitest'
import { resultOfStatus } from '../../src/providers/vonage/index.ts'
import * as given from './cases/vonage.ts'
import { forged, malformed, testVendor } from './vendor.ts'

const { entry } = given
const { message, read: readPushed, send } = testVendor(given)

describe('vonage', () => {
  it('sends what its API asks for: an alphabet by the text, a time to live in its bounds', async () => {
    const { requests } = await send()
    const form = (body?: string) => Object.fromEntries(new URLSearchParams(body))
    expect(form(requests[0]?.body)).toEqual({
      api_key: entry.apiKey,
      api_secret: entry.apiSecret,
      from: 'Acme',
      to: '447700900123',
      text: message.text,
      type: 'text',
      'client-ref': 'n-1',
    })
    const short = await send({ text: '您的验证码', endsAtMs: performance.now() + 5_000 })
    expect(form(short.requests[0]?.body)).toMatchObject({ type: 'unicode', ttl: '20000' })
  })

  it('a sender may be written with +, which Vonage does not take', async () => {
    const { requests } = await send({}, { from: '+15550001111' })
    expect(new URLSearchParams(requests[0]?.body).get('from')).toBe('15550001111')
  })

  it.each([
    ['1', 'throttled'],
    ['3', 'rejected'],
    ['4', 'unavailable'],
    ['6', 'invalid_recipient'],
    ['8', 'unavailable'],
    ['15', 'rejected'],
    ['29', 'invalid_recipient'],
    ['33', 'invalid_recipient'],
    ['32', 'unavailable'],
    ['99', 'rejected'],
    [22, 'rejected'],
  ])('takes status %s for %s', (status, kind) => {
    expect(resultOfStatus(status)).toMatchObject({ kind })
  })

  it('a status that is a number counts as its text; a value that is no status has no result', async () => {
    expect(resultOfStatus(undefined)).toBeUndefined()
    expect(resultOfStatus({})).toBeUndefined()
    const body = JSON.stringify({ messages: [{ status: 0, 'message-id': '0A-7' }] })
    const { result } = await send({}, {}, () => ({ status: 200, body }))
    expect(result).toEqual({ kind: 'accepted', messageId: '0A-7' })
  })

  describe('receipts', () => {
    const receipt = { messageId: '0A-1', 'client-ref': 'n-1', status: 'delivered', 'err-code': '0' }
    const parse = (pushed: unknown, token = entry.receiptToken) =>
      readPushed(pushed, { query: { token } })

    it('reads one receipt, and answers a step on the way without one', () => {
      const read = { messageId: '0A-1', noticeId: 'n-1', detail: 'vonage 0' }
      expect(parse(receipt)).toMatchObject({
        ok: true,
        receipts: [{ ...read, outcome: 'delivered' }],
        reply: { status: 200 },
      })
      expect(parse({ ...receipt, status: 'rejected' })).toMatchObject({
        receipts: [{ ...read, outcome: 'failed' }],
      })
      expect(parse({ ...receipt, status: 'buffered' })).toMatchObject({ ok: true, receipts: [] })
    })

    it('reads the others of a push with one that is no receipt, which is counted as malformed by its missing id', () => {
      expect(parse([{}, receipt])).toMatchObject({
        ok: true,
        receipts: [{ outcome: 'failed' }, { messageId: '0A-1', outcome: 'delivered' }],
      })
    })

    it('reads a receipt in a form and in a query, and counts an unknown status', () => {
      const fields = { messageId: '0A-1', status: 'delivered', 'err-code': '0', msisdn: '4477' }
      const read = { ok: true, receipts: [{ messageId: '0A-1', outcome: 'delivered' }] }
      const query = { token: entry.receiptToken }
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      expect(readPushed(new URLSearchParams(fields), { headers, query })).toMatchObject(read)
      expect(readPushed('', { query: { ...fields, ...query } })).toMatchObject(read)
      expect(parse({ ...receipt, status: 'teleported' })).toMatchObject({
        ok: true,
        receipts: [{ outcome: 'failed' }],
      })
    })

    it('refuses another token, and what is no receipt', () => {
      expect(parse(receipt, 'another-token-here')).toEqual(forged)
      for (const pushed of [null, 1, {}, { messageId: 7 }, [{}, 1]]) {
        expect(parse(pushed)).toEqual(malformed)
      }
    })
  })
})
