import { expect, test } from 'vitest'
import { eventTypes } from '../../src/base/event-types.ts'
import type { NewNotice } from '../../src/notice/insert.ts'
import { maskedRecipient } from '../../src/notice/outbox.ts'
import { createReceipts } from '../../src/notice/receipts.ts'
import type { NoticeOutcome } from '../../src/notice/record.ts'
import { createNoticeStore } from '../../src/notice/store.ts'
import { maskRecipient } from '../../src/recipient/channels.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { testMetrics } from '../tools/metrics.ts'
import { newNotice } from '../tools/notices.ts'

const { url, pool } = await testDatabase()
const metrics = testMetrics()

async function eventsOf(id: string) {
  const { rows } = await pool.query(
    `SELECT app, type, data, tries FROM event WHERE data ->> 'id' = $1`,
    [id],
  )
  return rows
}

function openStore(wantedEvents: readonly (typeof eventTypes)[number][]) {
  const database = databaseAt(url, 2)
  const store = createNoticeStore(database, { claimTtlMs: 10_000, wantedEvents })
  const receipts = createReceipts(database, metrics, wantedEvents)
  return {
    receipts,
    async end(
      outcome: Omit<NoticeOutcome, 'id' | 'claims' | 'attempts'>,
      over?: Partial<NewNotice>,
    ) {
      const notice = newNotice({ app: 'shop', ...over })
      await store.insert(notice)
      const { claims } = (await store.claim({ id: notice.id, claims: 0 })) ?? { claims: 0 }
      const isWritten = await store.record({ id: notice.id, claims, attempts: [], ...outcome })
      expect(isWritten).toBe(true)
      return notice.id
    },
    record: store.record,
  }
}

const sent = { state: 'sent', provider: 'far', providerMessageId: 'm-1' } as const

test('a move writes its event with all that a receiver may know, and the recipient masked', async () => {
  const { end } = openStore(eventTypes)
  const id = await end(sent)
  expect(await eventsOf(id)).toEqual([
    {
      app: 'shop',
      type: 'notice.sent',
      tries: 0,
      data: {
        id,
        channel: 'sms',
        to: '+8613****8000',
        kind: 'captcha',
        scene: 'login',
        template: 'captcha',
        state: 'sent',
        provider: 'far',
        providerMessageId: 'm-1',
      },
    },
  ])
  const over = {
    kind: 'notice',
    channel: 'email',
    recipient: 'ada@example.test',
    scene: null,
  } as const
  const failed = await end({ state: 'failed', error: 'rejected', provider: 'far' }, over)
  expect(await eventsOf(failed)).toMatchObject([
    {
      type: 'notice.failed',
      data: { to: 'a***@example.test', kind: 'notice', error: 'rejected', state: 'failed' },
    },
  ])
  expect((await eventsOf(failed))[0].data).not.toHaveProperty('scene')
})

test('only wanted types are written, and a notice that will be tried again writes none', async () => {
  const { end, record } = openStore(['notice.failed', 'notice.expired', 'captcha.passed'])
  expect(await eventsOf(await end(sent))).toEqual([])
  expect(await eventsOf(await end({ state: 'pending', retryInMs: 1 }))).toEqual([])
  expect(await eventsOf(await end({ state: 'failed', error: 'x' }))).toHaveLength(1)
  const expired = await end({ state: 'expired', error: 'too_late' })
  expect(await eventsOf(expired)).toMatchObject([{ type: 'notice.expired' }])
  // An outcome after a lost claim changes nothing and makes no event.
  expect(await record({ id: expired, claims: 1, attempts: [], ...sent })).toBe(false)
  expect(await eventsOf(expired)).toHaveLength(1)
  const none = openStore(['captcha.passed', 'captcha.locked'])
  expect(await eventsOf(await none.end({ state: 'failed' }))).toEqual([])
})

test('a receipt writes one event for its move', async () => {
  const { end, receipts } = openStore(['notice.delivered', 'notice.failed'])
  const [delivered, failed] = [await end(sent), await end(sent)]
  const word = { noticeId: delivered, outcome: 'delivered' } as const
  await receipts.take('far', [word, word])
  await receipts.take('far', [word])
  await receipts.take('far', [{ noticeId: failed, outcome: 'failed', detail: 'away' }])
  expect(await eventsOf(delivered)).toMatchObject([
    { type: 'notice.delivered', app: 'shop', data: { state: 'delivered', to: '+8613****8000' } },
  ])
  expect(await eventsOf(failed)).toMatchObject([
    { type: 'notice.failed', data: { error: 'not_delivered (away)' } },
  ])
})

test('a recipient is masked by SQL as by the function', async () => {
  for (const [channel, recipient] of [
    ['sms', '+8613800138000'],
    ['sms', '+4915112345678'],
    ['sms', '+12345678901'],
    ['sms', '+29047123'],
    ['sms', '+1234567'],
    ['email', 'ada@example.test'],
    ['email', 'a@b.test'],
    ['email', '"a@b"@c.test'],
  ] as const) {
    const { rows } = await pool.query(
      `SELECT ${maskedRecipient} AS masked FROM (SELECT $1::text AS channel, $2::text AS recipient) n`,
      [channel, recipient],
    )
    expect(rows[0].masked).toBe(maskRecipient(channel, recipient))
  }
})

test.each([
  ['sms', '+8613800138000', '+8613****8000'],
  ['sms', '+12345678901', '+123****8901'],
  ['sms', '+123456789', '+1****6789'],
  ['sms', '+1234567', '+1****67'],
  ['sms', '+12345', '+1****'],
  ['email', 'ada@example.test', 'a***@example.test'],
  ['email', 'a@b.test', 'a***@b.test'],
])('maskRecipient: %s %s is shown as %s', (channel, to, masked) => {
  expect(maskRecipient(channel, to)).toBe(masked)
})
