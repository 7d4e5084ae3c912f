/**
 * Traps of a limiter over Redis, by number. The other traps are in the seed tests and in the files named after them.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { describe, expect, test, vi } from 'vitest'
import { createLimiter, type RawPolicies } from '../../src/limiter/index.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { ownRedis } from '../tools/own-servers.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'
import { bothEngines, realLimiter } from './both-engines.ts'

const hour = 3_600_000
const day = 24 * hour
const onePolicy = (rule: object): RawPolicies =>
  ({ p: [{ name: 'r', key: '{u}', ...rule }] }) as RawPolicies
const three = onePolicy({ sliding: '3 per 60s' })
const u = { u: 'somebody' }

describe('traps: numbers and time', () => {
  test('trap 1: an empty value counts as nothing used', async () => {
    const { limiter, client, prefix } = await realLimiter(three)
    await limiter.acquire('p', u)
    const [key] = (await client.keys(`${prefix}{*`)) as [string]
    await client.set(key, '')
    expect(await limiter.peek('p', u)).toMatchObject([{ used: 0 }])
    expect(await limiter.acquire('p', u)).toMatchObject({ remaining: [{ left: 2 }] })
    expect(await client.pttl(key)).toBeGreaterThan(0)
  })

  test.each([
    { sliding: '0 per 60s' },
    { sliding: ['5 per 1h', '0 per 60s'] },
    { fixed: '0 per 60s' },
    { calendar: { limit: 0, cron: '0 0 * * *', timezone: 'UTC' } },
    { lockout: { limit: 0, window: '60s', lock: '60s' } },
  ])('trap 1: a limit of 0 refuses from the first time on: %j', async (rule) => {
    const { ask, wait } = await bothEngines(onePolicy(rule))
    for (let again = 0; again < 3; again++) {
      expect(await ask((limiter) => limiter.acquire('p', u))).toMatchObject({ admitted: false })
      await wait(day)
    }
  })

  test('trap 2: five hits in one millisecond against a limit of three: three pass', async () => {
    const { ask } = await bothEngines(three)
    const passed = []
    for (let hit = 0; hit < 5; hit++) {
      passed.push((await ask((limiter) => limiter.acquire('p', u))).admitted)
    }
    expect(passed).toEqual([true, true, true, false, false])
  })

  test('subjects that differ only in lone surrogates are one subject, because they are the same in UTF-8', async () => {
    const { ask } = await bothEngines(onePolicy({ sliding: '1 per 60s' }))
    const acquire = (name: string) => ask((limiter) => limiter.acquire('p', { u: name }))
    expect(await acquire('a\ud800')).toMatchObject({ admitted: true })
    expect(await acquire('a\udfff')).toMatchObject({ admitted: false })
    expect(await acquire('a\u{10000}')).toMatchObject({ admitted: true })
  })

  test('trap 7: a clock that steps back 5 s keeps the counts, and the wait begins anew', async () => {
    const { ask, wait } = await bothEngines(onePolicy({ sliding: '1 per 60s' }))
    const acquire = () => ask((limiter) => limiter.acquire('p', u))
    await acquire()
    await wait(-5_000)
    expect(await acquire()).toMatchObject({ retryAfterMs: 60_000 })
    await wait(60_000)
    expect(await acquire()).toMatchObject({ admitted: true })
    await wait(5_000)
    expect(await acquire()).toMatchObject({ retryAfterMs: 55_000 })
  })

  test.each([{ sliding: '2 per 60s' }, { fixed: '2 per 60s' }])(
    'trap 7: a clock that steps back 5 s between two uses: both come back one window after the step: %j',
    async (rule) => {
      const { ask, wait } = await bothEngines(onePolicy(rule))
      const acquire = () => ask((limiter) => limiter.acquire('p', u))
      await acquire()
      await wait(-5_000)
      expect(await acquire()).toMatchObject({ admitted: true })
      expect(await acquire()).toMatchObject({ retryAfterMs: 60_000 })
      await wait(59_999)
      expect(await acquire()).toMatchObject({ retryAfterMs: 1 })
      await wait(1)
      expect(await acquire()).toMatchObject({ admitted: true })
      expect(await acquire()).toMatchObject({ admitted: true })
      expect(await acquire()).toMatchObject({ retryAfterMs: 60_000 })
    },
  )

  test.each([
    { sliding: '1 per 60s' },
    { fixed: '1 per 60s' },
    { sliding: '1 per 20d' },
    { lockout: { limit: 1, window: '1m', lock: '5m' } },
  ])(
    'trap 7: what a clock 25 h ahead wrote is ignored once the clock is right: %j',
    async (rule) => {
      const { ask, wait } = await bothEngines(onePolicy(rule))
      const acquire = () => ask((limiter) => limiter.acquire('p', u))
      await wait(25 * hour)
      await acquire()
      expect(await acquire()).toMatchObject({ admitted: false })
      await wait(-25 * hour)
      expect(await acquire()).toMatchObject({ admitted: true })
      expect(await acquire()).toMatchObject({ admitted: false })
    },
  )

  test('trap 8: either side of a multiple of 2³² ms the decisions are the same', async () => {
    const turn = 416 * 2 ** 32
    for (const rule of [{ sliding: ['2 per 60s', '3 per 10d'] }, { fixed: '2 per 60s' }]) {
      const { ask, wait } = await bothEngines(onePolicy(rule), turn - 30_000)
      const acquire = () => ask((limiter) => limiter.acquire('p', u))
      await acquire()
      await wait(29_999)
      await acquire()
      expect(await acquire()).toMatchObject({ retryAfterMs: 30_001 })
      await wait(2)
      expect(await acquire()).toMatchObject({ retryAfterMs: 29_999 })
      await wait(29_999)
      expect(await acquire()).toMatchObject({ admitted: true })
    }
  })

  test('trap 8: a window of 30 days holds for 30 days', async () => {
    const { ask, wait } = await bothEngines(onePolicy({ sliding: '2 per 30d' }))
    const acquire = () => ask((limiter) => limiter.acquire('p', u))
    await acquire()
    await wait(20)
    await acquire()
    await wait(29 * day)
    expect(await acquire()).toMatchObject({ retryAfterMs: day - 20 })
    await wait(day - 21)
    expect(await acquire()).toMatchObject({ retryAfterMs: 1 })
    await wait(1)
    expect(await acquire()).toMatchObject({ admitted: true })
  })

  test.each([
    ['Europe/Berlin', '2026-03-28T23:00:00Z', 23],
    ['Europe/Berlin', '2026-10-24T22:00:00Z', 25],
    ['Asia/Shanghai', '2026-10-24T16:00:00Z', 24],
  ])('trap 20: a day in %s from %s has %i hours', async (timezone, midnight, hours) => {
    const { ask, at, wait } = await bothEngines(
      onePolicy({ calendar: { limit: 1, cron: '0 0 * * *', timezone } }),
    )
    const acquire = () => ask((limiter) => limiter.acquire('p', u))
    await at(Date.parse(midnight))
    await acquire()
    expect(await acquire()).toMatchObject({ retryAfterMs: hours * hour })
    await wait(hours * hour - 1)
    expect(await acquire()).toMatchObject({ retryAfterMs: 1 })
    await wait(1)
    expect(await acquire()).toMatchObject({ admitted: true })
  })

  test('trap 20: a month ends when it ends, and a period that ended between computing and running is the next one', async () => {
    const monthly = onePolicy({ calendar: { limit: 1, cron: '0 0 1 * *', timezone: 'UTC' } })
    const { ask, at } = await bothEngines(monthly)
    const acquire = () => ask((limiter) => limiter.acquire('p', u))
    await at(Date.UTC(2028, 1, 29, 23, 59, 59, 999))
    expect(await acquire()).toMatchObject({ nextInMs: 1 })
    await at(Date.UTC(2028, 2, 1)) // the limiter still knows February only; Redis' clock corrects it
    expect(await acquire()).toMatchObject({ nextInMs: 31 * day })
  })

  test('trap 23: waits beyond 2³¹ ms neither fire at once nor overflow', async () => {
    const { limiter } = await realLimiter(onePolicy({ sliding: '1 per 60d' }))
    await limiter.acquire('p', u)
    const refusal = await limiter.acquireWithin('p', u, 1_000)
    if (refusal.admitted) expect.unreachable('the second of one in 60 days')
    expect(refusal.retryAfterMs).toBeGreaterThan(2 ** 31)
  })

  test('trap 23: a caller that waits for weeks asks once, and is answered when the limiter closes', async () => {
    const onRefused = vi.fn()
    const limiter = createLimiter({ policies: onePolicy({ sliding: '1 per 60d' }), onRefused })
    limiter.tryAcquire('p', u)
    const waiting = limiter.acquireWithin('p', u, 2 ** 33)
    // Time for a second decision, which must not happen.
    for (let turn = 0; turn < 10; turn++) await sleep(2)
    expect(onRefused).toHaveBeenCalledOnce()
    limiter.close()
    expect(await waiting).toMatchObject({ admitted: false })
  })
})

describe('traps: what Redis holds', () => {
  test('trap 5: refusals store nothing', async () => {
    const { limiter, client, prefix } = await realLimiter({
      p: [
        { name: 'a', key: '{u}', sliding: '3 per 60s' },
        { name: 'b', key: '{u}', fixed: '1 per 60s' },
      ],
    })
    await limiter.acquire('p', u)
    const snapshot = async () => {
      const keys = (await client.keys(`${prefix}{*`)).sort()
      return Promise.all(keys.map(async (key) => [key, await client.getBuffer(key)]))
    }
    const before = await snapshot()
    for (let asks = 0; asks < 50; asks++) {
      const answer = await limiter.acquire('p', u, { requestId: randomUUID() })
      expect(answer).toMatchObject({ rule: 'b' })
    }
    expect(await snapshot()).toEqual(before)
    await limiter.acquire('p', { u: 'unknown' }, { permits: 1 })
    expect(await snapshot()).toHaveLength(before.length + 2)
  })

  test('trap 6: every key has a time to live on every path, and one that lost it gets it back', async () => {
    const { limiter, client, prefix } = await realLimiter({
      sliding: [{ name: 'r', key: '{u}', sliding: ['2 per 60s', '500 per 1h'] }],
      fixed: [{ name: 'r', key: '{u}', fixed: '2 per 60s' }],
      calendar: [
        { name: 'r', key: '{u}', calendar: { limit: 2, cron: '0 0 1 1 *', timezone: 'UTC' } },
      ],
      lockout: [
        { name: 'r', key: '{u}', lockout: { limit: 1, window: '1m', lock: '5m', growth: 2 } },
      ],
    })
    const ttls = async () => {
      const keys = await client.keys(`${prefix}{*`)
      expect(keys.length).toBeGreaterThan(0)
      for (const key of keys) expect(await client.pttl(key), key).toBeGreaterThan(0)
      return keys
    }
    for (const policy of ['sliding', 'fixed', 'calendar', 'lockout']) {
      await limiter.acquire(policy, u, { requestId: 'first' })
      await ttls()
      await limiter.acquire(policy, u)
      await limiter.acquire(policy, u)
      await ttls()
      await limiter.release(policy, u, 'first')
      await limiter.reset(policy, { u: 'nobody' })
      for (const key of await ttls()) await client.persist(key)
      await limiter.reset(policy, u)
      await client.del(...(await client.keys(`${prefix}{*`)))
    }
    await limiter.acquire('sliding', u)
    for (const key of await client.keys(`${prefix}{*`)) await client.persist(key)
    await limiter.acquire('sliding', u)
    await ttls()
  })

  test('trap 9: a key of another type, or with a value that is not Postern’s, fails that check alone, and a reset repairs it', async () => {
    const { limiter, client, prefix } = await realLimiter(three)
    await limiter.acquire('p', u)
    const [key] = (await client.keys(`${prefix}{*`)) as [string]
    const damages = [
      () => client.rpush(key, 'x'),
      () => client.set(key, 'xyz'),
      () => client.set(key, 'a text'),
    ]
    for (const damage of damages) {
      await client.del(key)
      await damage()
      const [broken, other] = await Promise.allSettled([
        limiter.acquire('p', u),
        limiter.acquire('p', { u: 'other' }),
      ])
      expect(broken).toMatchObject({ status: 'rejected', reason: { name: 'LimiterUnavailable' } })
      expect(other).toMatchObject({ value: { admitted: true } })
      await limiter.reset('p', u)
      await limiter.reset('p', { u: 'other' })
      expect(await limiter.acquire('p', u)).toMatchObject({ remaining: [{ left: 2 }] })
    }
  })

  test('trap 10: scripts flushed between two batches: every call still works', async () => {
    const { limiter, client } = await realLimiter(three)
    await limiter.acquire('p', u, { requestId: 'a' })
    await client.script('FLUSH')
    const answers = await Promise.all([1, 2, 3].map(() => limiter.acquire('p', u)))
    expect(answers.map((answer) => answer.admitted)).toEqual([true, true, false])
    await client.script('FLUSH')
    expect(await limiter.peek('p', u)).toMatchObject([{ used: 3 }])
    await client.script('FLUSH')
    expect(await limiter.release('p', u, 'a')).toBe(true)
    await client.script('FLUSH')
    await limiter.reset('p', u)
    expect(await limiter.peek('p', u)).toMatchObject([{ used: 0 }])
  })

  test('traps 14 and 15: times of 13 digits and long waits pass through Lua as whole numbers', async () => {
    const { limiter, client, prefix } = await realLimiter({
      p: [{ name: 'r', key: '{u}', sliding: '1 per 3000d' }],
      grown: [
        {
          name: 'r',
          key: '{u}',
          lockout: { limit: 0, window: '7ms', lock: '1001ms', growth: 1.7 },
        },
      ],
    })
    const before = Date.now()
    await limiter.acquire('p', u)
    const [key] = (await client.keys(`${prefix}{*`)) as [string]
    const at = ((await client.getBuffer(key)) as Buffer).readUIntBE(0, 6)
    expect(at).toBeGreaterThanOrEqual(before - 60_000)
    expect(at).toBeLessThanOrEqual(Date.now() + 60_000)
    expect(await client.pttl(key)).toBeGreaterThan(3_000 * day - 60_000)
    const answer = await limiter.acquire('p', u)
    if (answer.admitted) expect.unreachable('the second of one in 3,000 days')
    expect(answer.retryAfterMs).toSatisfy(Number.isInteger)
    expect(answer.retryAfterMs).toBeGreaterThan(3_000 * day - 60_000)
    const lockMs = async () => {
      const locked = await limiter.acquire('grown', u)
      const [lockKey] = (await client.keys(`${prefix}{*`)).filter((one) => one !== key) as [string]
      expect(await client.pttl(lockKey)).toBeGreaterThan(0)
      return locked.admitted ? 0 : locked.retryAfterMs
    }
    expect(await lockMs()).toBe(1_001)
    // The first request after the lock begins the next lock: 1,001 × 1.7 is no whole number.
    const second = await eventually(async () => {
      const ms = await lockMs()
      return ms > 1_001 && ms
    })
    expect(second).toBe(1_701)
  })

  test('trap 18: a replica has the same values with the same times to live', async () => {
    // By default a primary waits 5 s for more replicas before it copies to the first.
    const server = await ownRedis(['--repl-diskless-sync-delay', '0'])
    const password = new URL(server.url).password
    const replica = await ownRedis([
      ...['--replicaof', '127.0.0.1', String(server.port), '--masterauth', password],
    ])
    const redis = connectRedis(server.url, 'limiter', () => {})
    const copy = new Redis(replica.url)
    releaseLater(() => [redis.disconnect(), copy.disconnect()])
    const limiter = createLimiter({ policies: three, redis, deadlineMs: 2_000 })
    await eventually(() => limiter.acquire('p', u, { requestId: 'a' }))
    const master = closeLater(new Redis(server.url), 'disconnect')
    const keys = (await master.keys('*')).sort()
    expect(keys).toHaveLength(2)
    await eventually(async () => (await copy.dbsize()) === 2)
    for (const key of keys) {
      expect(await copy.getBuffer(key)).toEqual(await master.getBuffer(key))
      expect(await copy.pexpiretime(key)).toBe(await master.pexpiretime(key))
    }
  })
})
