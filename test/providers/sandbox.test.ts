import { beforeAll, beforeEach, describe, expect, it, test, vi } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import type { Receipt } from '../../src/base/receipt.ts'
import type { RedisClient } from '../../src/base/redis-script.ts'
import { Unavailable } from '../../src/base/unavailable.ts'
import type { Message } from '../../src/providers/provider.ts'
import { findFault, type SandboxDeps, sandbox } from '../../src/providers/sandbox/index.ts'
import {
  createSandboxOutbox,
  maxAgeMs,
  maxItems,
  type SandboxOutbox,
} from '../../src/providers/sandbox/outbox.ts'
import { type TestRedis, testRedis } from '../tools/redis.ts'
import { eventually } from '../tools/wait.ts'

const message: Omit<Message, 'noticeId'> = {
  channel: 'email',
  to: 'ada@example.test',
  template: 'captcha',
  locale: 'en',
  variables: { code: '738291' },
  subject: 'Your number',
  text: 'Your number is 738291.',
  html: '<p>738291</p>',
}
const never = new AbortController().signal

describe('sandbox', () => {
  let redis: TestRedis
  let connection: RedisClient
  let outbox: SandboxOutbox

  beforeAll(async () => {
    redis = await testRedis()
    connection = await redis.connect()
  })
  beforeEach(async () => {
    outbox = createSandboxOutbox(connection, redis.prefix)
    await outbox.clear()
  })

  function create(entry: Record<string, unknown> = {}, deps: Partial<SandboxDeps> = {}) {
    const settings = sandbox.settings.parse(entry)
    const all: SandboxDeps = {
      ...{ timeoutMs: 200, concurrency: 100, clock: Date.now, outbox },
      ...deps,
    }
    return sandbox.create('phone', settings, all)
  }

  it('switched off → unavailable until it is switched on, where it is switchable', async () => {
    const [switchable, other] = [create({ switchable: true }), create()]
    const send = (provider = switchable) => provider.send({ ...message, noticeId: 'n-1' }, never)
    await outbox.switchOff('phone')
    expect(await send()).toEqual({ kind: 'unavailable', detail: 'switched off' })
    expect(await outbox.list()).toEqual([])
    expect(await send(other)).toMatchObject({ kind: 'accepted' })
    await outbox.switchOn('phone')
    expect(await send()).toMatchObject({ kind: 'accepted' })
  })

  it('keeps what the user would have seen, newest first', async () => {
    const provider = create()
    const first = await provider.send({ ...message, noticeId: 'n-1' }, never)
    const { subject, html, ...plain } = message
    await provider.send({ ...plain, noticeId: 'n-2', channel: 'sms', to: '+447700900123' }, never)
    const items = await outbox.list()
    expect(items).toEqual([
      {
        id: expect.any(String),
        noticeId: 'n-2',
        channel: 'sms',
        to: '+447700900123',
        text: message.text,
        provider: 'phone',
        sentAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      },
      expect.objectContaining({ noticeId: 'n-1', channel: 'email', subject, html }),
    ])
    expect(first).toEqual({ kind: 'accepted', messageId: items[1]?.id })
    expect(await outbox.list({ to: message.to })).toHaveLength(1)
    expect(await outbox.list({ limit: 1 })).toHaveLength(1)
    await outbox.clear()
    expect(await outbox.list()).toEqual([])
  })

  it('keeps at most 1,000 messages, each for an hour, and then not even the key', async () => {
    const item = { ...message, noticeId: 'n', provider: 'phone', sentAt: new Date().toISOString() }
    await Promise.all(
      Array.from({ length: maxItems + 5 }, (_, index) =>
        outbox.append({ ...item, id: `${index}` }),
      ),
    )
    const items = await outbox.list({ limit: 2_000 })
    expect(items).toHaveLength(maxItems)
    const key = `${redis.prefix}sandbox:outbox`
    expect(await redis.client.pttl(key)).toBeGreaterThan(maxAgeMs - 60_000)
    const later = createSandboxOutbox(connection, redis.prefix, () => Date.now() + maxAgeMs + 1_000)
    expect(await later.list()).toEqual([])
    await later.append({ ...item, id: 'new' })
    expect(await redis.client.xlen(key)).toBe(0)
  })

  it('says unknown when Redis does not answer, and never throws', async () => {
    const broken = { append: () => Promise.reject(new Error('away')), find: () => Promise.reject() }
    const provider = create({}, { outbox: { ...outbox, ...broken } as unknown as SandboxOutbox })
    const sent = { noticeId: 'n', to: message.to, sentAt: 0 }
    expect((await provider.send({ ...message, noticeId: 'n' }, never)).kind).toBe('unknown')
    expect((await provider.query?.(sent, never))?.kind).toBe('unknown')
  })

  it.each([
    ['rejected', 0],
    ['invalid_recipient', 0],
    ['postponed', 0],
    ['unavailable', 0],
    ['throttled', 0],
    ['hang', 0],
    ['lost_answer', 1],
  ])('with the fault %s leaves %i messages', async (result, count) => {
    const provider = create({ faults: [{ to: message.to, result, retryAfter: '2s' }] })
    const noticeId = newId()
    const expected = { hang: 'unavailable', lost_answer: 'unknown' }[result] ?? result
    const outcome = await provider.send({ ...message, noticeId }, never)
    expect(outcome.kind).toBe(expected)
    if (outcome.kind === 'throttled') expect(outcome.retryAfterMs).toBe(2_000)
    expect(await outbox.list()).toHaveLength(count)
    const found = await provider.query?.({ noticeId, to: message.to, sentAt: 0 }, never)
    expect(found?.kind).toBe(count ? 'accepted' : 'unavailable')
    const other = { ...message, noticeId, to: 'other@example.test' }
    expect((await provider.send(other, never)).kind).toBe('accepted')
  })

  it('stops waiting at the signal and when closed (F15)', async () => {
    const provider = create({ faults: [{ delay: '1h' }] }, { timeoutMs: 60_000 })
    const startedAt = performance.now()
    const aborted = await provider.send({ ...message, noticeId: 'n-1' }, AbortSignal.timeout(20))
    expect(aborted.kind).toBe('unavailable')
    const underWay = provider.send({ ...message, noticeId: 'n-2' }, never)
    await provider.close()
    expect((await underWay).kind).toBe('unavailable')
    expect((await provider.send({ ...message, noticeId: 'n-3' }, never)).kind).toBe('unavailable')
    expect(performance.now() - startedAt).toBeLessThan(30_000)
    expect(await outbox.list()).toEqual([])
  })

  it('can be told not to answer queries', () => {
    expect(create({ query: false }).query).toBeUndefined()
  })

  it('sends late and double receipts (I12)', async () => {
    const receipts: Receipt[] = []
    const onReceipt = async (_name: string, receipt: Receipt) => void receipts.push(receipt)
    const provider = create(
      {
        receipts: { delay: '1s', copies: 2 },
        faults: [{ to: '*@lost.test', receipts: { outcome: 'failed' } }],
      },
      { onReceipt },
    )
    const result = await provider.send({ ...message, noticeId: 'n-1' }, never)
    expect(receipts).toEqual([])
    await provider.send({ ...message, noticeId: 'n-2', to: 'ada@lost.test' }, never)
    await eventually(() => receipts.length === 3)
    const { messageId } = result as { messageId: string }
    const delivered = { noticeId: 'n-1', messageId, outcome: 'delivered', at: expect.any(Number) }
    expect(receipts.filter(({ noticeId }) => noticeId === 'n-1')).toEqual([delivered, delivered])
    expect(receipts.find(({ noticeId }) => noticeId === 'n-2')?.outcome).toBe('failed')
    await provider.close()
  })

  it('picks faults by exact recipient, beginning, end and share, the first that fits', () => {
    const { faults } = sandbox.settings.parse({
      faults: [
        { to: ['+15005550001', '*@slow.test'], delay: '1s' },
        { to: '+1500*', result: 'rejected' },
        { share: 0.5, result: 'unavailable' },
      ],
    }) as { faults: Parameters<typeof findFault>[0] }
    expect(findFault(faults, '+15005550001')?.delay).toBe(1_000)
    expect(findFault(faults, 'ada@slow.test')?.delay).toBe(1_000)
    expect(findFault(faults, '+15005550002')?.result).toBe('rejected')
    const random = vi.spyOn(Math, 'random').mockReturnValue(0.4)
    expect(findFault(faults, '+447700900123')?.result).toBe('unavailable')
    random.mockReturnValue(0.5)
    expect(findFault(faults, '+447700900123')).toBeUndefined()
    random.mockRestore()
  })

  it.each([
    { colour: 'blue' },
    { faults: [{ result: 'explode' }] },
    { faults: [{ delay: '1 week' }] },
    { faults: [{ share: 2 }] },
    { receipts: { copies: 11 } },
  ])('refuses the settings %j', (entry) => {
    expect(sandbox.settings.safeParse(entry).success).toBe(false)
  })
})

test('Redis gives no answer: reading and emptying report it, as everything that needs it does', async () => {
  const away = async () => Promise.reject(new Error('Connection is closed.'))
  const outbox = createSandboxOutbox({ xrevrange: away, del: away } as unknown as RedisClient, 'x:')
  await expect(outbox.list()).rejects.toBeInstanceOf(Unavailable)
  await expect(outbox.clear()).rejects.toBeInstanceOf(Unavailable)
})
