import { createHash, createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { unreadable } from '../../src/base/receipt.ts'
import type { Message } from '../../src/providers/provider.ts'
import * as given from './cases/telegram.ts'
import { json } from './far-ends/http.ts'
import { no, yes } from './far-ends/telegram.ts'
import { forged, malformed, never, rejectedUnsent, testVendor } from './vendor.ts'

const { message, read, send, withVendor } = testVendor(given)

/** A provider whose far end gives these answers, one after the other; the last one again and again. */
function withAnswers(
  answers: ReturnType<typeof yes>[],
  run: (
    send: (more?: Partial<Message>) => Promise<unknown>,
    methods: () => string[],
  ) => Promise<void>,
) {
  const answer = () => (answers.length > 1 ? answers.shift() : answers[0]) as typeof opened
  return withVendor(
    (provider, farEnd) =>
      run(
        (more) => provider.send({ ...message, ...more }, never),
        () => farEnd.requests.map(({ path }) => path.slice(1)),
      ),
    answer,
  )
}

const [check, sendMessage] = ['checkSendAbility', 'sendVerificationMessage']
const askStatus = 'checkVerificationStatus'
const opened = yes({ request_id: 'r1', request_cost: 0.01 })

describe('telegram', () => {
  it('asks whether the number can get it, then sends its code by that request', async () => {
    const { result, requests } = await send()
    expect(result).toEqual({ kind: 'accepted', messageId: 'r1' })
    const code = { code: '738291', payload: 'n-1', sender_username: 'acmecodes' }
    expect(requests.map(({ path, body }) => [path, JSON.parse(body)])).toEqual([
      [`/${check}`, { phone_number: message.to }],
      [`/${sendMessage}`, { phone_number: message.to, request_id: 'r1', ...code }],
    ])
  })

  it.each([
    [299_500, 299],
    [12_000, 30],
    [7_200_000, 3_600],
  ])('a code that lives for %i ms → ttl %i', async (leftMs, ttl) => {
    const { requests } = await send({ endsAtMs: performance.now() + leftMs })
    expect(JSON.parse(requests[1]?.body ?? '').ttl).toBe(ttl)
  })

  it.each(['123', '123456789', 'A1B2C3', ''])(
    'the code %j → rejected without a call',
    async (code) => expect(await send({ variables: { code } })).toMatchObject(rejectedUnsent),
  )

  it.each([
    ['PHONE_NUMBER_NOT_AVAILABLE', { kind: 'invalid_recipient' }],
    ['PHONE_NUMBER_NOT_FOUND', { kind: 'invalid_recipient' }],
    ['ACCESS_TOKEN_INVALID', { kind: 'unavailable' }],
    ['BALANCE_NOT_ENOUGH', { kind: 'unavailable' }],
    ['FLOOD_WAIT_12', { kind: 'throttled', retryAfterMs: 12_000 }],
    ['SOMETHING_NEW', { kind: 'rejected', detail: 'telegram SOMETHING_NEW' }],
    ['about +447700900123', { kind: 'rejected', detail: 'telegram error' }],
  ])('%s to the question → no message is sent: %j', (error, expected) =>
    withAnswers([no(error)], async (send, methods) => {
      expect(await send()).toMatchObject(expected)
      expect(methods()).toEqual([check])
    }),
  )

  it('an answer to the question that is not understood → unavailable, because nothing was handed over', () =>
    withAnswers([{ status: 200, headers: {}, body: '<html>' } as never], async (send) => {
      expect(await send()).toMatchObject({ kind: 'unavailable' })
    }))

  it('a send that failed after a positive answer → its repeat is not billed again', () =>
    withAnswers([opened, no('FLOOD_WAIT_1'), yes({ request_id: 'r1' })], async (send, methods) => {
      expect(await send()).toMatchObject({ kind: 'throttled' })
      expect(await send()).toEqual({ kind: 'accepted', messageId: 'r1' })
      expect(methods()).toEqual([check, sendMessage, sendMessage])
    }))

  it('a request that has ended meanwhile → another one; a message that was sent already → accepted', async () => {
    const ended = [opened, no('FLOOD_WAIT_1'), no('REQUEST_ID_INVALID'), opened, opened]
    await withAnswers(ended, async (send, methods) => {
      await send()
      expect(await send()).toMatchObject({ kind: 'accepted' })
      expect(methods()).toEqual([check, sendMessage, sendMessage, check, sendMessage])
    })
    await withAnswers([opened, no('REQUEST_ID_INVALID')], async (send, methods) => {
      expect(await send()).toMatchObject({ kind: 'rejected' })
      expect(methods()).toEqual([check, sendMessage])
    })
    await withAnswers([opened, no('MESSAGE_ALREADY_SENT')], async (send) => {
      expect(await send()).toEqual({ kind: 'accepted', messageId: 'r1' })
    })
  })

  const isSent = yes({ request_id: 'r1', delivery_status: { status: 'sent' } })
  it.each([
    ['REQUEST_ID_INVALID', 'sent', 'accepted', isSent],
    ['ALREADY_USED', 'sent', 'accepted', isSent],
    ['ALREADY_USED', 'not sent', 'rejected', yes({ request_id: 'r1' })],
    ['ALREADY_USED', 'not known', 'unknown', no('REQUEST_ID_INVALID')],
    ['REQUEST_ID_INVALID', 'not known', 'unknown', no('REQUEST_ID_INVALID')],
  ])(
    'a 5xx to a send, then %s to its repeat: the status of its request is %s → %s',
    (error, _, kind, status) =>
      withAnswers([opened, json(503, {}), no(error), status], async (send, methods) => {
        expect(await send()).toMatchObject({ kind: 'unavailable' })
        expect(await send()).toMatchObject({ kind })
        expect(methods()).toEqual([check, sendMessage, sendMessage, askStatus])
      }),
  )

  it('a request that ended after a 5xx, without a message → another one', () =>
    withAnswers(
      [opened, json(503, {}), no('REQUEST_ID_INVALID'), yes({ request_id: 'r1' }), opened, opened],
      async (send, methods) => {
        await send()
        expect(await send()).toMatchObject({ kind: 'accepted' })
        expect(methods().slice(3)).toEqual([askStatus, check, sendMessage])
      },
    ))

  it('a lost answer → the state of its request decides', () =>
    withVendor(async (provider, farEnd) => {
      const sent = { noticeId: 'n-1', to: message.to, sentAt: Date.now() }
      const query = () => provider.query?.(sent, never)
      expect(await query()).toMatchObject({ kind: 'unknown' })
      await farEnd.behave('lose_answer')
      expect(await provider.send(message, never)).toMatchObject({ kind: 'unknown' })
      expect(await query()).toEqual({ kind: 'accepted', messageId: 'r1' })
      await farEnd.behave('refuse_talk')
      const other = await provider.send({ ...message, noticeId: 'n-2' }, never)
      expect(other).toMatchObject({ kind: 'unknown' })
      const asked = await provider.query?.({ ...sent, noticeId: 'n-2' }, never)
      expect(asked).toMatchObject({ kind: 'unavailable' })
    }))
})

describe('its reports', () => {
  const nowMs = 1_750_000_000_000
  const key = createHash('sha256').update(given.entry.token).digest()
  const sign = (body: string, seconds: string) =>
    createHmac('sha256', key).update(`${seconds}\n${body}`).digest('hex')
  function post(
    value: unknown,
    { ageMs = 0, signed = sign }: { ageMs?: number; signed?: typeof sign } = {},
  ) {
    const body = typeof value === 'string' ? value : JSON.stringify(value)
    const seconds = String((nowMs - ageMs) / 1_000)
    const signature = signed(body, seconds)
    const headers = { 'x-request-timestamp': seconds, 'x-request-signature': signature }
    return read(body, { headers, receivedAt: nowMs })
  }
  const report = (status: string, more = {}) => ({
    request_id: 'r1',
    phone_number: message.to,
    request_cost: 0.01,
    delivery_status: { status, updated_at: 1_750_000_000 },
    ...more,
  })
  const receiptsOf = (parsed: ReturnType<typeof read>) => (parsed.ok ? parsed.receipts : parsed)

  it.each([
    ['delivered', 'delivered'],
    ['read', 'delivered'],
    ['expired', 'failed'],
    ['revoked', 'failed'],
  ])('%s → %s', (status, outcome) => {
    expect(receiptsOf(post(report(status, { payload: 'n-1' })))).toMatchObject([
      { messageId: 'r1', noticeId: 'n-1', outcome, at: nowMs },
    ])
  })

  it('a refund is part of the receipt', () => {
    expect(receiptsOf(post(report('expired', { is_refunded: true })))).toMatchObject([
      { outcome: 'failed', detail: 'telegram expired', isRefunded: true },
    ])
  })

  it('no final state, or a code that a person entered → 200 and nothing; an unknown state → counted', () => {
    const { delivery_status: _, ...entered } = report('sent')
    for (const one of [
      report('sent'),
      { ...entered, verification_status: { status: 'code_valid' } },
    ])
      expect(post(one)).toEqual({
        ok: true,
        receipts: [],
        reply: { status: 200, contentType: 'text/plain', body: '' },
      })
    expect(receiptsOf(post(report('framed')))).toEqual([unreadable])
  })

  it('another token, another body, a report of yesterday or tomorrow → forged; no report → malformed', () => {
    const one = report('delivered')
    const dayMs = 86_400_000
    expect(post(one, { signed: (_, seconds) => sign('{}', seconds) })).toEqual(forged)
    expect(post(one, { signed: (body) => sign(body, '1') })).toEqual(forged)
    expect(post(one, { signed: () => '' })).toEqual(forged)
    expect(post(one, { ageMs: dayMs + 1_000 })).toEqual(forged)
    expect(post(one, { ageMs: -dayMs - 1_000 })).toEqual(forged)
    expect(post(one, { ageMs: dayMs }).ok).toBe(true)
    for (const body of ['', '[]', '{}', 'x']) expect(post(body)).toEqual(malformed)
  })
})
