import { createHash, createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { unreadable } from '../../src/base/receipt.ts'
import type { Message } from '../../src/providers/provider.ts'
import telegram, * as given from './cases/telegram.ts'
import { withProvider } from './conformance.ts'
import { startHttpFarEnd } from './far-ends/http.ts'
import { no, yes } from './far-ends/telegram.ts'
import { testConformance } from './test-conformance.ts'

const { entry } = given
const message = { ...given.conformance.message, noticeId: 'n-1' } as const
const never = new AbortController().signal
const deps = { timeoutMs: 20_000, concurrency: 1, clock: Date.now }

testConformance(given)

/** A provider whose far end gives these answers, one after the other; the last one again and again. */
async function withAnswers(
  answers: readonly ReturnType<typeof yes>[],
  run: (
    send: (more?: Partial<Message>) => Promise<unknown>,
    methods: () => string[],
  ) => Promise<void>,
) {
  const farEnd = await startHttpFarEnd(
    () => answers[Math.min(farEnd.requests.length, answers.length) - 1] as ReturnType<typeof yes>,
  )
  const settings = telegram.settings.parse(given.conformance.settings(farEnd.port))
  const provider = telegram.create('gateway', settings, deps)
  try {
    await run(
      (more) => provider.send({ ...message, ...more }, never),
      () => farEnd.requests.map(({ path }) => path.slice(1)),
    )
  } finally {
    await provider.close()
    await farEnd.close()
  }
}

const [check, sendMessage] = ['checkSendAbility', 'sendVerificationMessage']
const opened = yes({ request_id: 'r1', request_cost: 0.01 })

describe('telegram', () => {
  it('asks whether the number can get it, then sends its code by that request', () =>
    withProvider(given, async (provider, farEnd) => {
      expect(await provider.send(message, never)).toEqual({ kind: 'accepted', messageId: 'r1' })
      expect(farEnd.requests.map(({ path, body }) => [path, JSON.parse(body)])).toEqual([
        [`/${check}`, { phone_number: message.to }],
        [
          `/${sendMessage}`,
          {
            phone_number: message.to,
            request_id: 'r1',
            code: '738291',
            payload: 'n-1',
            sender_username: 'acmecodes',
          },
        ],
      ])
    }))

  it.each([
    [299_500, 299],
    [12_000, 30],
    [7_200_000, 3_600],
  ])('a code that lives for %i ms → ttl %i', (leftMs, ttl) =>
    withProvider(given, async (provider, farEnd) => {
      await provider.send({ ...message, endsAtMs: performance.now() + leftMs }, never)
      expect(JSON.parse(farEnd.requests[1]?.body ?? '').ttl).toBe(ttl)
    }),
  )

  it.each(['123', '123456789', 'A1B2C3', ''])('the code %j → rejected without a call', (code) =>
    withProvider(given, async (provider, farEnd) => {
      const result = await provider.send({ ...message, variables: { code } }, never)
      expect(result.kind).toBe('rejected')
      expect(farEnd.requests).toEqual([])
    }),
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
    const ended = [
      opened,
      no('FLOOD_WAIT_1'),
      no('REQUEST_ID_INVALID'),
      opened,
      yes({ request_id: 'r1' }),
    ]
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

  it('a lost answer → the state of its request decides', () =>
    withProvider(given, async (provider, farEnd) => {
      const sent = { noticeId: 'n-1', to: message.to, sentAt: Date.now() }
      const query = () => provider.query?.(sent, never)
      expect(await query()).toMatchObject({ kind: 'unknown' })
      await farEnd.behave('lose_answer')
      expect(await provider.send(message, never)).toMatchObject({ kind: 'unknown' })
      expect(await query()).toEqual({ kind: 'accepted', messageId: 'r1' })
      await farEnd.behave('refuse_talk')
      expect(await provider.send({ ...message, noticeId: 'n-2' }, never)).toMatchObject({
        kind: 'unknown',
      })
      expect(await provider.query?.({ ...sent, noticeId: 'n-2' }, never)).toMatchObject({
        kind: 'unavailable',
      })
    }))
})

describe('its reports', () => {
  const nowMs = 1_750_000_000_000
  const key = createHash('sha256').update(entry.token).digest()
  const sign = (body: string, seconds: string) =>
    createHmac('sha256', key).update(`${seconds}\n${body}`).digest('hex')
  function post(
    value: unknown,
    {
      ageMs = 0,
      signature,
    }: { ageMs?: number; signature?: (body: string, seconds: string) => string } = {},
  ) {
    const body = typeof value === 'string' ? value : JSON.stringify(value)
    const seconds = String((nowMs - ageMs) / 1_000)
    return telegram.createReceiptReader?.(telegram.settings.parse(entry)).parse({
      headers: {
        'x-request-timestamp': seconds,
        'x-request-signature': (signature ?? sign)(body, seconds),
      },
      query: {},
      rawBody: Buffer.from(body),
      receivedAt: nowMs,
    })
  }
  const report = (status: string, more = {}) => ({
    request_id: 'r1',
    phone_number: message.to,
    request_cost: 0.01,
    delivery_status: { status, updated_at: 1_750_000_000 },
    ...more,
  })
  const receiptsOf = (parsed: ReturnType<typeof post>) => (parsed?.ok ? parsed.receipts : parsed)

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
    const forged = { ok: false, reason: 'forged' }
    const one = report('delivered')
    const dayMs = 86_400_000
    expect(post(one, { signature: (_, seconds) => sign('{}', seconds) })).toEqual(forged)
    expect(post(one, { signature: (body) => sign(body, '1') })).toEqual(forged)
    expect(post(one, { signature: () => '' })).toEqual(forged)
    expect(post(one, { ageMs: dayMs + 1_000 })).toEqual(forged)
    expect(post(one, { ageMs: -dayMs - 1_000 })).toEqual(forged)
    expect(post(one, { ageMs: dayMs })?.ok).toBe(true)
    for (const body of ['', '[]', '{}', 'x'])
      expect(post(body)).toEqual({ ok: false, reason: 'malformed' })
  })
})
