import { expect, test, vi } from 'vitest'
import { createLimiter, type Limiter, type RawPolicies } from '../../src/limiter/index.ts'
import type { LimiterRedis } from '../../src/limiter/redis/client.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'
import { bothEngines, realLimiter } from './both-engines.ts'
import { virtualTime } from './virtual-time.ts'

const u = { u: 'a' }

test('release: with rules named, what was taken from those alone comes back', async () => {
  const { ask } = await bothEngines({
    p: [
      { name: 'tries', key: '{u}', lockout: { limit: 3, window: '5m', lock: '15m' } },
      { name: 'all', key: '{u}', sliding: '10 per 1h' },
      { name: 'day', key: '{u}', fixed: '10 per 24h' },
    ],
  })
  await ask((limiter) => limiter.acquire('p', u, { requestId: 'first' }))
  await ask((limiter) => limiter.acquire('p', u, { requestId: 'second' }))
  expect(await ask((limiter) => limiter.release('p', u, 'second', ['tries', 'day']))).toBe(true)
  const used = await ask((limiter) => limiter.peek('p', u))
  expect(used.map((window) => window.used)).toEqual([1, 2, 1])
})

test('the same request id with other fields is another use; with the same ones it is none', async () => {
  const { ask } = await bothEngines({
    p: [
      { name: 'each', key: '{u}', sliding: '2 per 1h' },
      { name: 'all', key: 'all', sliding: '10 per 1h' },
    ],
  })
  const used = async (of: typeof u) =>
    (await ask((limiter) => limiter.peek('p', of))).map((window) => window.used)
  for (const fields of [u, u, { u: 'b' }]) {
    await ask((limiter) => limiter.acquire('p', fields, { requestId: 'same' }))
  }
  expect([await used(u), await used({ u: 'b' })]).toEqual([
    [1, 2],
    [1, 2],
  ])
  expect(await ask((limiter) => limiter.release('p', { u: 'b' }, 'same'))).toBe(true)
  expect([await used(u), await used({ u: 'b' })]).toEqual([
    [1, 1],
    [0, 1],
  ])
  expect(await ask((limiter) => limiter.release('p', { u: 'b' }, 'same'))).toBe(false)
})

test('a policy without rules admits, has no windows, and has nothing to give back', async () => {
  const { ask } = await bothEngines({ none: [] })
  expect(await ask((limiter) => limiter.acquire('none', u, { requestId: 'r' }))).toMatchObject({
    admitted: true,
  })
  expect(await ask((limiter) => limiter.peek('none', u))).toEqual([])
  expect(await ask((limiter) => limiter.release('none', u, 'r'))).toBe(false)
  await ask((limiter) => limiter.reset('none', u))
})

test('what was taken before new policies came is given back after, with any change of its rules', async () => {
  const all = { name: 'all', key: '{u}', sliding: '10 per 1h', refund: 'passed' as const }
  const day = { name: 'day', key: '{u}', fixed: '10 per 24h' }
  const withField = { name: 'more', key: '{v}', sliding: '1 per 1h' }
  const { ask, engines } = await bothEngines({ p: [all, day], q: [all] })
  for (const requestId of ['first', 'second']) {
    await ask((limiter) => limiter.acquire('p', u, { requestId }))
  }
  await ask((limiter) => limiter.acquire('q', u, { requestId: 'third' }))
  for (const limiter of Object.values(engines)) limiter.setPolicies({ p: [withField, all] })
  const usedOfAll = () => ask((limiter) => limiter.peek('p', u, 'all'))
  expect(await ask((limiter) => limiter.refund('p', u, 'first'))).toBe(true)
  expect(await usedOfAll()).toMatchObject([{ used: 1 }])
  expect(await ask((limiter) => limiter.release('p', u, 'second'))).toBe(true)
  expect(await usedOfAll()).toMatchObject([{ used: 0 }])
  expect(await ask((limiter) => limiter.release('q', u, 'third'))).toBe(true)
  for (const limiter of Object.values(engines)) {
    await expect(limiter.release('p', u, 'unknown')).rejects.toMatchObject({ field: 'v' })
    await expect(limiter.release('none', u, 'x')).rejects.toMatchObject({ name: 'UnknownPolicy' })
    expect(await limiter.release('p', { ...u, v: 'b' }, 'unknown')).toBe(false)
  }
})

test('beside a per-client rule, another process knows the request: a repeat takes nothing there, and a release gives back all but that client’s uses', async () => {
  const own = { name: 'own', key: '{v}', sliding: '9 per 1h', scope: 'per-client' as const }
  const all = { name: 'all', key: '{u}', sliding: '9 per 1h', refund: 'passed' as const }
  const { client: redis, prefix: keyPrefix } = await testRedis()
  const { clock } = virtualTime([redis], Date.UTC(2026, 10, 21, 10))
  const processes = ['one', 'other'].map((clientId) =>
    createLimiter({ policies: { p: [own, all] }, redis, keyPrefix, clientId, clock }),
  ) as [Limiter, Limiter]
  releaseLater(() => {
    for (const limiter of processes) limiter.close()
  })
  const [one, other] = processes
  const fields = { ...u, v: 'a' }
  const used = () =>
    Promise.all(
      processes.map(async (limiter) => (await limiter.peek('p', fields)).map((each) => each.used)),
    )
  await one.acquire('p', fields, { requestId: 'first' })
  expect(await other.acquire('p', fields, { requestId: 'first' })).toMatchObject({ admitted: true })
  await one.acquire('p', { ...u, v: 'b' }, { requestId: 'first' })
  await other.acquire('p', fields, { requestId: 'second' })
  expect(await used()).toEqual([
    [1, 3],
    [1, 3],
  ])
  expect(await other.refund('p', fields, 'first')).toBe(true)
  // Both processes have a use of this millisecond.
  expect(await other.release('p', fields, 'first')).toBe(true)
  expect(await used()).toEqual([
    [1, 2],
    [1, 2],
  ])
  expect(await one.release('p', fields, 'first')).toBe(true)
  expect(await one.release('p', fields, 'first')).toBe(false)
  expect(await used()).toEqual([
    [0, 2],
    [1, 2],
  ])
})

test('what was taken is given back after any number of reloads while the request is remembered; later none of them is asked', async () => {
  const first = { p: [{ name: 'all', key: '{u}', sliding: '10 per 1h' }] }
  const second = { p: [...first.p, { name: 'more', key: '{v}', sliding: '9 per 1h' }] }
  const { ask, engines } = await bothEngines(first)
  const fields = { ...u, v: 'b' }
  const take = (requestId: string) =>
    ask((limiter) => limiter.acquire('p', fields, { requestId })).then(() => requestId)
  const reload = (...all: RawPolicies[]) => {
    for (const limiter of Object.values(engines)) for (const one of all) limiter.setPolicies(one)
  }
  const ofFirst = await take('first')
  reload(second, second)
  const ofSecond = await take('second')
  reload(first, { p: [] }, { p: [] })
  for (const id of [ofFirst, ofSecond]) {
    expect(await ask((limiter) => limiter.release('p', fields, id))).toBe(true)
    expect(await ask((limiter) => limiter.release('p', fields, id))).toBe(false)
  }

  const brief = createLimiter({ policies: second, rememberRequestsMs: 50 })
  brief.setPolicies(first)
  // The field `v` of the earlier policy is missing.
  await expect(brief.release('p', u, 'unknown')).rejects.toMatchObject({ field: 'v' })
  await eventually(async () => {
    brief.setPolicies(first)
    expect(await brief.release('p', u, 'unknown')).toBe(false)
  })
})

test('a policy that a reload added: an unknown id is false there, and later no call asks for earlier policies', async () => {
  const first = { p: [{ name: 'all', key: '{u}', sliding: '10 per 1h' }] }
  const { ask, engines, client } = await bothEngines(first)
  for (const limiter of Object.values(engines)) limiter.setPolicies({ ...first, q: first.p })
  expect(await ask((limiter) => limiter.release('q', u, 'unknown'))).toBe(false)

  const brief = createLimiter({ policies: first, redis: client, rememberRequestsMs: 50 })
  releaseLater(() => brief.close())
  brief.setPolicies({ ...first, q: first.p })
  const connection: LimiterRedis = client
  const calls = vi.spyOn(connection as Required<LimiterRedis>, 'evalshaBuffer')
  await eventually(async () => {
    calls.mockClear()
    expect(await brief.release('p', u, 'unknown')).toBe(false)
    expect(calls).toHaveBeenCalledTimes(1)
  })
})

test('two processes with different policies: what was taken under one is given back under the other, by rule, and a repeat takes nothing', async () => {
  const { client: redis, prefix: keyPrefix } = await testRedis()
  const all = { name: 'all', key: '{u}', sliding: '10 per 1h', refund: 'passed' as const }
  const mine = { name: 'mine', key: '{u}', fixed: '10 per 1h' }
  const other = { name: 'other', key: '{v}', sliding: '10 per 1h' }
  const limiterOf = (...p: RawPolicies[string]) => {
    const limiter = createLimiter({ policies: { p }, redis, keyPrefix, deadlineMs: 5_000 })
    releaseLater(() => limiter.close())
    return limiter
  }
  const [old, young] = [limiterOf(mine, all), limiterOf(other, all)]
  const fields = { ...u, v: 'b' }
  const used = async (limiter: Limiter) =>
    (await limiter.peek('p', fields)).map((window) => window.used)
  await old.acquire('p', fields, { requestId: 'first' })
  await young.acquire('p', fields, { requestId: 'second' })
  expect(await young.acquire('p', fields, { requestId: 'first' })).toMatchObject({ admitted: true })
  expect([await used(old), await used(young)]).toEqual([
    [1, 2],
    [1, 2],
  ])
  expect(await young.refund('p', fields, 'first')).toBe(true)
  expect(await old.release('p', fields, 'second')).toBe(true)
  expect([await used(old), await used(young)]).toEqual([
    [1, 0],
    [1, 0],
  ])
  expect(await old.release('p', fields, 'first')).toBe(true)
  expect([await used(old), await old.release('p', fields, 'first')]).toEqual([[0, 0], false])
})

test('release: when Redis gives no answer it throws, and gives back as soon as Redis answers again', async () => {
  const server = await testRedis()
  const proxy = await startTcpProxy(Number(new URL(server.url).port))
  const redis = connectRedis(proxy.through(server.url), 'limiter', () => {})
  releaseLater(() => redis.disconnect())
  const policies = { p: [{ name: 'all', key: '{u}', sliding: '10 per 1h' }] }
  const limiter = closeLater(createLimiter({ policies, redis, keyPrefix: server.prefix }))
  await eventually(() => limiter.acquire('p', u, { requestId: 'r' }))
  proxy.cut()
  await expect(limiter.release('p', u, 'r')).rejects.toMatchObject({ name: 'LimiterUnavailable' })
  proxy.forward()
  await eventually(async () => expect(await limiter.peek('p', u)).toMatchObject([{ used: 0 }]))
})

test.each(['the release', 'its repeat'])(
  'a server without scripts answers %s late, after the caller has taken a use again with that id: the use stays',
  async (late) => {
    const policies = { p: [{ name: 'all', key: '{u}', sliding: '10 per 1h' }] }
    const { limiter, redis } = await realLimiter(policies, { deadlineMs: 500 })
    const take = () => eventually(() => limiter.acquire('p', u, { requestId: 'r' }))
    await take()
    const answer = Promise.withResolvers<never>()
    const asked = Promise.withResolvers<void>()
    const calls = vi.spyOn(redis as unknown as Required<LimiterRedis>, 'evalshaBuffer')
    if (late !== 'the release') calls.mockRejectedValueOnce(new Error('away'))
    calls.mockImplementationOnce(() => {
      asked.resolve()
      return answer.promise
    })
    await expect(limiter.release('p', u, 'r')).rejects.toThrow('Redis')
    await asked.promise
    await take()
    answer.reject(new Error('NOSCRIPT No matching script'))
    await new Promise(setImmediate)
    expect(await limiter.peek('p', u)).toMatchObject([{ used: 1 }])
  },
)

test('calls without a request id leave the counts, and one key that they share, also if one began a lock', async () => {
  const { limiter, client } = await realLimiter({
    p: [
      { name: 'tries', key: '{u}', lockout: { limit: 3, window: '5m', lock: '15m' } },
      { name: 'all', key: 'all', sliding: '10 per 1h' },
    ],
  })
  for (let calls = 0; calls < 3; calls++) await limiter.acquire('p', u)
  expect(await client.dbsize()).toBe(3)
  expect(await limiter.acquire('p', u)).toMatchObject({ newLock: { rule: 'tries' } })
  expect(await client.dbsize()).toBe(3)
  await Promise.all(['b', 'c', 'd', 'e'].map((other) => limiter.acquire('p', { u: other })))
  expect(await client.dbsize()).toBe(10)
})
