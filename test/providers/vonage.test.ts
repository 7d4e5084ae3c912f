import { describe, expect, it } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { resultOfStatus } from '../../src/providers/vonage/errors.ts'
import vonage, * as given from './cases/vonage.ts'
import { withProvider } from './conformance.ts'
import { startHttpFarEnd } from './far-ends/http.ts'
import { testConformance } from './test-conformance.ts'

const { entry } = given
const { message } = given.conformance
const never = new AbortController().signal

testConformance(given)

describe('vonage', () => {
  it('sends what its API asks for: an alphabet by the text, a time to live in its bounds', async () => {
    await withProvider(given, async (provider, farEnd) => {
      const noticeId = newId()
      await provider.send({ ...message, noticeId }, never)
      const endsAtMs = performance.now() + 5_000
      await provider.send({ ...message, noticeId, text: '您的验证码', endsAtMs }, never)
      const [first, second] = farEnd.requests.map(({ body }) =>
        Object.fromEntries(new URLSearchParams(body)),
      )
      expect(first).toEqual({
        api_key: entry.apiKey,
        api_secret: entry.apiSecret,
        from: 'Acme',
        to: '447700900123',
        text: message.text,
        type: 'text',
        'client-ref': noticeId,
      })
      expect(second).toMatchObject({ type: 'unicode', ttl: '20000' })
    })
  })

  it('a sender may be written with +, which Vonage does not take', async () => {
    const settings = (port: number) => ({
      ...given.conformance.settings(port),
      from: '+15550001111',
    })
    const conformance = { ...given.conformance, settings }
    await withProvider({ default: vonage, conformance }, async (provider, farEnd) => {
      await provider.send({ ...message, noticeId: newId() }, never)
      const [request] = farEnd.requests
      expect(new URLSearchParams(request?.body).get('from')).toBe('15550001111')
    })
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
    const farEnd = await startHttpFarEnd(() => ({ status: 200, body }))
    const endpoint = `http://127.0.0.1:${farEnd.port}`
    const provider = vonage.create('vonage', vonage.settings.parse({ ...entry, endpoint }), {
      timeoutMs: 20_000,
      concurrency: 1,
      clock: Date.now,
    })
    const result = await provider.send(
      { ...message, noticeId: 'n-1' },
      new AbortController().signal,
    )
    expect(result).toEqual({ kind: 'accepted', messageId: '0A-7' })
    await provider.close()
    await farEnd.close()
  })

  describe('receipts', () => {
    const reader = vonage.createReceiptReader?.(vonage.settings.parse(entry))
    const receipt = { messageId: '0A-1', 'client-ref': 'n-1', status: 'delivered', 'err-code': '0' }
    const parse = (pushed: unknown, token = entry.receiptToken) =>
      reader?.parse({
        headers: {},
        query: { token },
        rawBody: Buffer.from(JSON.stringify(pushed)),
        receivedAt: 0,
      })

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
      const fields = {
        messageId: '0A-1',
        status: 'delivered',
        'err-code': '0',
        msisdn: '447700900123',
      }
      const read = [{ messageId: '0A-1', outcome: 'delivered' }]
      const token = entry.receiptToken
      const form = {
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        rawBody: Buffer.from(new URLSearchParams(fields).toString()),
        query: { token },
        receivedAt: 0,
      }
      expect(reader?.parse(form)).toMatchObject({ ok: true, receipts: read })
      const byQuery = {
        headers: {},
        rawBody: Buffer.alloc(0),
        query: { ...fields, token },
        receivedAt: 0,
      }
      expect(reader?.parse(byQuery)).toMatchObject({ ok: true, receipts: read })
      expect(parse({ ...receipt, status: 'teleported' })).toMatchObject({
        ok: true,
        receipts: [{ outcome: 'failed' }],
      })
    })

    it('refuses another token, and what is no receipt', () => {
      expect(parse(receipt, 'another-token-here')).toEqual({ ok: false, reason: 'forged' })
      for (const pushed of [null, 1, {}, { messageId: 7 }, [{}, 1]]) {
        expect(parse(pushed)).toEqual({ ok: false, reason: 'malformed' })
      }
    })
  })
})
