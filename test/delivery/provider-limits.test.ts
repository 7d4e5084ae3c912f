import { expect, test } from 'vitest'
import {
  createSendPermits,
  type ProviderLimits,
  providerPolicies,
} from '../../src/delivery/provider-limits.ts'
import { createLimiter } from '../../src/limiter/index.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const server = await testRedis()
const redis = await server.connect('limiter')

let count = 0
/** Opens a provider with no uses, or with the uses of `other`, as another worker does. */
function provider(entry: ProviderLimits, other?: { keyPrefix: string }) {
  if (!other) count += 1
  const keyPrefix = other?.keyPrefix ?? `${server.prefix}${count}:`
  const limiter = closeLater(createLimiter({ policies: {}, redis, keyPrefix, deadlineMs: 2_000 }))
  const permits = createSendPermits({ limiter, redis, keyPrefix }, { phone: entry })
  const { acquireSendPermit, setLimits } = permits
  const permit = (to: string, isUrgent: boolean, calls?: number) =>
    acquireSendPermit('phone', to, isUrgent, calls)
  return {
    take: async (to = 'one', isUrgent = false) => {
      const one = await permit(to, isUrgent)
      return one.granted ? 'granted' : `${one.reason}`
    },
    permit,
    keyPrefix,
    setLimits,
    used: async (to = 'one') =>
      (await limiter.peek('phone', { name: 'phone', to, calls: 1 })).map((state) => state.used),
  }
}

test('providerPolicies: one policy for each provider that has limits, the pace for all, the quota by recipient', () => {
  expect(
    providerPolicies({
      free: {},
      fast: { pace: '50 per 1s' },
      capped: { pace: '5 per 1s', quotas: ['1 per 60s', '10 per 24h'] },
    }),
  ).toEqual({
    fast: [{ name: 'pace', key: '{name}', sliding: '50 per 1s', permits: 'calls' }],
    capped: [
      { name: 'pace', key: '{name}', sliding: '5 per 1s', permits: 'calls' },
      { name: 'quota', key: '{to}', sliding: ['1 per 60s', '10 per 24h'] },
    ],
  })
})

test('without limits every permit is granted, and may be given back', async () => {
  const { permit } = provider({})
  for (let times = 0; times < 10; times++) {
    const one = await permit('one', false)
    expect(one.granted).toBe(true)
    if (one.granted) await one.release()
  }
})

test('pace: over all recipients together, and each that waits gets a later time than the one before', async () => {
  const { permit, take } = provider({ pace: '2 per 20s' })
  expect(await take('one')).toBe('granted')
  expect(await take('two')).toBe('granted')
  const waits: number[] = []
  for (let times = 0; times < 3; times++) {
    const one = await permit('three', false)
    expect(one).toMatchObject({ granted: false, reason: 'pace' })
    waits.push(one.granted ? 0 : one.retryInMs)
  }
  const [first = 0, second = 0, third = 0] = waits
  expect(first).toBeGreaterThan(10_000)
  expect(Math.floor(first)).toBeLessThanOrEqual(20_000)
  // 10 s apart, as `pace` allows, minus the time between the questions.
  expect(second - first).toBeGreaterThan(5_000)
  expect(Math.floor(second - first)).toBeLessThanOrEqual(10_000)
  expect(third - second).toBeGreaterThan(5_000)
})

test('pace: codes have a separate line, so they come back before the bulk notices that wait', async () => {
  const { permit, take } = provider({ pace: '1 per 20s' })
  await take()
  for (let times = 0; times < 5; times++) await permit('bulk', false)
  const code = await permit('code', true)
  expect(code.granted ? Number.NaN : Math.floor(code.retryInMs)).toBeLessThanOrEqual(20_000)
})

test('pace: while a code waits, no worker gives a freed permit to bulk, and the code gets it', async () => {
  const pace = '3 per 1h'
  const one = provider({ pace })
  const workers = [one, provider({ pace }, one), provider({ pace }, one)]
  const first = await Promise.all([1, 2, 3].map(() => one.permit('first', false)))
  expect(await one.take('code', true)).toBe('pace')
  for (const permit of first) if (permit.granted) await permit.release()
  const bulk = workers.flatMap((worker) => [1, 2, 3].map(() => worker.take('bulk')))
  expect(await Promise.all(bulk)).toEqual(Array(9).fill('pace'))
  expect(await one.used()).toEqual([0])
  expect(await Promise.all(workers.map(({ take }) => take('code', true)))).toEqual(
    Array(3).fill('granted'),
  )
})

test('pace: bulk gets permits again after the return time of a code that does not come back, and at once by a new pace', async () => {
  const pace = '1 per 100ms'
  const one = provider({ pace })
  await eventually(async () => {
    await one.take()
    expect(await one.take('code', true)).toBe('pace')
  })
  await eventually(async () => expect(await one.take()).toBe('granted'))

  const slow = provider({ pace: '1 per 1h' })
  await slow.take()
  expect(await slow.take('code', true)).toBe('pace')
  slow.setLimits({ phone: { pace: '2 per 1h' } })
  expect(await slow.take()).toBe('granted')
})

test('pace: a flood of codes makes none wait more than 30 s beyond the next permit', async () => {
  const { permit, take } = provider({ pace: '1 per 20s' })
  await take()
  for (let times = 0; times < 10; times++) {
    const code = await permit('code', true)
    // Sums of the clock have an error in their last digits.
    expect(code.granted ? Number.NaN : Math.floor(code.retryInMs)).toBeLessThanOrEqual(50_000)
  }
})

test('quota: of one recipient, for as long as its window; others are not held, and nothing of the pace is used', async () => {
  const { permit, take, used } = provider({ pace: '9 per 1h', quotas: ['1 per 60s'] })
  expect(await take('one')).toBe('granted')
  const held = await permit('one', true)
  expect(held).toMatchObject({ granted: false, reason: 'quota' })
  expect(held.granted ? 0 : held.retryInMs).toBeGreaterThan(55_000)
  expect(await take('two')).toBe('granted')
  expect(await used('one')).toEqual([2, 1])
})

test('a message that must wait for the pace costs none of its recipient’s quota', async () => {
  const { take, used } = provider({ pace: '1 per 1h', quotas: ['5 per 1h'] })
  await take('one')
  expect(await take('two')).toBe('pace')
  expect(await used('two')).toEqual([1, 0])
})

test('a permit that is given back is free for the next, once, also where two have the same recipient', async () => {
  const { permit, used } = provider({ pace: '3 per 1h', quotas: ['3 per 1h'] })
  const [first, second] = [await permit('one', false), await permit('one', false)]
  expect(await used()).toEqual([2, 2])
  if (first.granted) await first.release()
  expect(await used()).toEqual([1, 1])
  if (first.granted) await first.release()
  expect(await used()).toEqual([1, 1])
  expect(second.granted).toBe(true)
})

test('a permit whose recipient is given back still counts for the pace', async () => {
  const { permit, used } = provider({ pace: '3 per 1h', quotas: ['3 per 1h'] })
  const one = await permit('one', false)
  if (one.granted) await one.release('quota')
  expect(await used()).toEqual([1, 0])
})

test('a long text takes a call of the pace for each part, at most the whole pace', async () => {
  const { permit, used } = provider({ pace: '5 per 60s', quotas: ['9 per 24h'] })
  const [long, second] = [await permit('one', false, 3), await permit('one', false, 3)]
  expect([long.granted, second.granted]).toEqual([true, false])
  expect(await used()).toEqual([3, 1])
  if (long.granted) await long.release()
  expect((await permit('one', false, 40)).granted).toBe(true)
  expect(await used()).toEqual([5, 1])
})

test('Redis out of reach: held for a second, never granted', async () => {
  const away = await server.connect('limiter')
  const limiter = createLimiter({
    policies: {},
    redis: away,
    keyPrefix: `${server.prefix}away:`,
    deadlineMs: 200,
  })
  releaseLater(() => limiter.close())
  const deps = { limiter, redis: away, keyPrefix: server.prefix }
  const { acquireSendPermit } = createSendPermits(deps, { phone: { pace: '9 per 1s' } })
  away.disconnect()
  expect(await acquireSendPermit('phone', 'one', false)).toEqual({
    granted: false,
    reason: 'limiter',
    retryInMs: 1_000,
  })
})

test('pace and quota: 3,000 bulk notices wait, each a minute at most, so they soon follow another limit', async () => {
  const { permit, take } = provider({ pace: '7 per 1h', quotas: ['1 per 24h'] })
  expect(await take('one')).toBe('granted')
  const ofQuota = await permit('one', false)
  expect(ofQuota.granted ? 0 : ofQuota.retryInMs).toBeLessThanOrEqual(60_000)
  for (const to of ['2', '3', '4', '5', '6', '7']) await take(to)
  const waits = await Promise.all(Array.from({ length: 3_000 }, () => permit('more', false)))
  const longest = Math.max(...waits.map((one) => (one.granted ? 0 : one.retryInMs)))
  expect(longest).toBeLessThanOrEqual(60_000)
  // They do not come back together.
  expect(longest).toBeGreaterThan(30_000)
  const code = await permit('code', true)
  expect(code.granted ? 0 : code.retryInMs).toBeLessThanOrEqual(60_000)
})

test('pace: the code of another worker that returns sooner never shortens the time for which bulk gives way', async () => {
  const pace = '1 per 30s'
  const one = provider({ pace })
  const other = provider({ pace }, one)
  await one.take()
  for (let times = 0; times < 3; times++) expect(await one.take('code', true)).toBe('pace')
  const before = await one.permit('bulk', false)
  expect(await other.take('code', true)).toBe('pace')
  const key = `${one.keyPrefix}codes-wait:phone:${pace}`
  expect(before.granted).toBe(false)
  // The third code of the first worker returns 30 s after the first code of the other one.
  expect(await redis.pttl(key)).toBeGreaterThan(45_000)
})
