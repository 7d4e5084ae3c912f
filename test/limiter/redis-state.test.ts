/** Values in Redis: separate for each rule, independent of the order of rules, and by Redis' clock. */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { describe, expect, test, vi } from 'vitest'
import { createLimiter, type RawPolicies } from '../../src/limiter/index.ts'
import { createKeys } from '../../src/limiter/redis/keys.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { realLimiter } from './both-engines.ts'

const u = { u: 'somebody' }
const sliding = (name: string, window: string) => ({ name, key: '{u}', sliding: window })

describe('what the limiter keeps in Redis', () => {
  test('no two of 20,000 rules share state for the same subject', async () => {
    const names = Array.from({ length: 20_000 }, (_, index) => `rule${index}`)
    const keysOf = createKeys('', '')
    const keys = names.map((name) => keysOf.valueKey(`1:p${name.length}:${name}somebody`))
    expect(new Set(keys).size).toBe(names.length)

    const many = names.slice(0, 300).map((name) => sliding(name, '1 per 1h'))
    const { limiter, client, prefix } = await realLimiter({ p: many, q: many })
    expect(await limiter.acquire('p', u)).toMatchObject({ admitted: true })
    expect(await limiter.acquire('q', u)).toMatchObject({ admitted: true })
    expect(await client.keys(`${prefix}{*`)).toHaveLength(600)
  })

  test('a user with the rights that the README names can use every function', async () => {
    const { url, client } = await testRedis()
    const readme = readFileSync(new URL('../../src/limiter/README.md', import.meta.url), 'utf8')
    const [rights = ''] = /~postern:\*( \+\w+)+/.exec(readme) ?? []
    const name = `limiter-${randomUUID()}`
    await client.acl('SETUSER', name, 'on', '>secret', ...rights.split(' '), '+select')
    releaseLater(() => client.acl('DELUSER', name))
    const redis = closeLater(new Redis(url, { username: name, password: 'secret' }), 'disconnect')
    const lockout = { limit: 1, window: '60s', lock: '60s' }
    const limiter = createLimiter({
      policies: { p: [sliding('r', '2 per 1h'), { name: 'l', key: '{u}', lockout }] },
      redis,
      deadlineMs: 5_000,
    })
    releaseLater(() => limiter.close())
    for (let calls = 0; calls < 2; calls++) await limiter.acquire('p', u, { requestId: 'a' })
    expect(await limiter.acquire('p', u)).toMatchObject({ newLock: { rule: 'l' } })
    expect(await limiter.release('p', u, 'a')).toBe(true)
    expect(await limiter.peek('p', u, 'r')).toMatchObject([{ used: 0 }])
    await limiter.reset('p', u)
    expect(await limiter.acquire('p', u)).toMatchObject({ admitted: true })
  })

  test('a connection with auto-pipelining serves as well, also when Redis has lost the scripts', async () => {
    const { url, client } = await testRedis()
    const redis = new Redis(url, { enableAutoPipelining: true })
    const policies = { p: [sliding('auto', '2 per 1h')] }
    const limiter = createLimiter({ policies, redis, deadlineMs: 5_000 })
    try {
      expect(await limiter.acquire('p', u)).toMatchObject({ admitted: true })
      await client.script('FLUSH')
      expect(await limiter.acquire('p', u)).toMatchObject({ admitted: true })
      expect(await limiter.acquire('p', u)).toMatchObject({ admitted: false })
    } finally {
      redis.disconnect()
    }
  })

  test('100 peeks of one tick are one call, so are 100 resets; a foreign value fails alone', async () => {
    const policies = {
      p: [sliding('a', '9 per 1h')],
      q: [sliding('b', '9 per 1h'), sliding('c', '9 per 2h')],
    }
    const { limiter, client, redis, prefix } = await realLimiter(policies)
    await limiter.acquire('p', { u: 'n0' })
    const [key = ''] = await client.keys(`${prefix}{*`)
    await client.set(key, 'a text')
    const subjects = Array.from(
      { length: 100 },
      (_, at) => [at % 2 ? 'q' : 'p', { u: `n${at}` }] as const,
    )
    for (const [policy, fields] of subjects.slice(50)) await limiter.acquire(policy, fields)
    const sent = vi.spyOn(redis, 'sendCommand')
    const uses = async () => {
      const peeks = subjects.map(([policy, fields]) => limiter.peek(policy, fields))
      const states = await Promise.allSettled(peeks)
      return states.map((one) =>
        one.status === 'fulfilled' ? one.value.map(({ used }) => used) : one.reason.name,
      )
    }

    const [broken, ...others] = await uses()
    expect(broken).toBe('LimiterUnavailable')
    expect(others).toEqual(
      subjects.slice(1).map(([policy], at) => {
        const used = at + 1 < 50 ? 0 : 1
        return policy === 'p' ? [used] : [used, used]
      }),
    )
    // A script that Redis does not know yet is sent twice.
    expect(sent.mock.calls.length).toBeLessThanOrEqual(2)

    sent.mockClear()
    await Promise.all(
      subjects.slice(0, 60).map(([policy, fields]) => limiter.reset(policy, fields)),
    )
    expect(sent.mock.calls.length).toBeLessThanOrEqual(2)
    expect((await uses()).flat().reduce((sum, used) => sum + used, 0)).toBe(60)
  })

  test('a foreign value of four bytes, shorter than any lockout: a peek throws LimiterUnavailable', async () => {
    const lockout = { limit: 1, window: '60s', lock: '60s' }
    const { limiter, client, prefix } = await realLimiter({
      p: [{ name: 'a', key: '{u}', lockout }],
    })
    await limiter.acquire('p', u)
    const [key = ''] = await client.keys(`${prefix}{*`)
    await client.set(key, 'four')
    await expect(limiter.peek('p', u)).rejects.toMatchObject({ name: 'LimiterUnavailable' })
  })

  test('what cannot work is an error at once: numbers as texts, deadlines that are none, an insurance without the policy', async () => {
    const { url } = await testRedis()
    const policies = { p: [sliding('a', '2 per 1h')] }
    const redis = new Redis(url, { lazyConnect: true })
    const texts = new Redis(url, { lazyConnect: true, stringNumbers: true })
    const make = (options: object) => () => createLimiter({ policies, redis, ...options })
    expect(make({ redis: texts })).toThrow('remove stringNumbers')
    expect(make({ redis: null })).toThrow('must be an ioredis Redis or Cluster')
    for (const deadlineMs of [0, -5, Number.NaN, 2 ** 31])
      expect(make({ deadlineMs })).toThrow('deadlineMs')
    const other = createLimiter({ policies: { q: [] } })
    expect(make({ whenUnavailable: other })).toThrow('must be a limiter with the policy p')
    expect(make({ whenUnavailable: true })).toThrow('must be a limiter with the policy p')
  })

  test('rules in another order after a reload, and another before them, keep their counts', async () => {
    const a = sliding('a', '5 per 1h')
    const b = { name: 'b', key: '{u}', fixed: '4 per 1h' }
    const c = { name: 'c', key: '{u}', lockout: { limit: 3, window: '1h', lock: '1h' } }
    const { limiter } = await realLimiter({ p: [a, b, c] })
    await limiter.acquire('p', u)
    await limiter.acquire('p', u)
    limiter.setPolicies({ p: [sliding('new', '9 per 1h'), c, b, a] })
    const states = await limiter.peek('p', u)
    expect(states.map(({ rule, used }) => [rule, used])).toEqual([
      ['new', 0],
      ['c', 2],
      ['b', 2],
      ['a', 2],
    ])
    expect(await limiter.acquire('p', u)).toMatchObject({
      remaining: [{ left: 8 }, { left: 0 }, { left: 1 }, { left: 2 }],
    })
    expect(await limiter.acquire('p', u)).toMatchObject({ admitted: false, rule: 'c' })
  })

  test('calls of one tick are decided each by what it asks for: permits, fields, a solved challenge, an id in two policies', async () => {
    const { limiter } = await realLimiter({
      p: [sliding('a', '10 per 1h')],
      included: [{ include: 'p' }],
      field: [{ ...sliding('f', '10 per 1h'), permits: 'cost' }],
      challenged: [{ ...sliding('c', '2 per 1h'), mode: 'challenge' }],
    })
    const two = { permits: 2 }
    await Promise.all([
      limiter.acquire('p', u),
      limiter.acquire('p', u, { permits: 3 }),
      limiter.acquire('p', u, two),
      limiter.acquire('field', { ...u, cost: 2 }),
      limiter.acquire('field', { ...u, cost: 3 }),
      limiter.acquire('challenged', u, two),
    ])
    expect(await limiter.peek('p', u)).toMatchObject([{ used: 6 }])
    expect(await limiter.peek('field', u)).toMatchObject([{ used: 5 }])
    const answers = await Promise.all([
      limiter.acquire('challenged', u, two),
      limiter.acquire('challenged', u, { ...two, isSolved: true }),
      limiter.acquire('p', u, { requestId: 'x' }),
      limiter.acquire('included', u, { requestId: 'x' }),
    ])
    expect(answers.map(({ admitted }) => admitted)).toEqual([false, true, true, true])
    expect(await limiter.peek('p', u)).toMatchObject([{ used: 8 }])
  })

  test('a release passes over a key of another type, and gives the others back once', async () => {
    const { limiter, client } = await realLimiter({
      p: [sliding('a', '5 per 1h'), sliding('b', '5 per 1h')],
    })
    await limiter.acquire('p', u, { requestId: 'first' })
    await limiter.acquire('p', u)
    const values = (await client.keys('*')).filter((one) => !/req|call/.test(one))
    await client.del(values[0] as string)
    await client.rpush(values[0] as string, 'x')
    expect(await limiter.release('p', u, 'first')).toBe(true)
    expect(await limiter.release('p', u, 'first')).toBe(false)
    const used = (await limiter.peek('p', u)).map((state) => state.used)
    expect(used.sort()).toEqual([0, 1])
  })

  test('numbers of uses begin anew after 2^32, and limits hold across it', async () => {
    const { limiter, client } = await realLimiter({ p: [sliding('a', '5 per 1h')] })
    await limiter.acquire('p', u, { requestId: 'first', permits: 2 })
    const [key] = (await client.keys('*')).filter((one) => !/req|call/.test(one)) as [string]
    const value = (await client.getBuffer(key)) as Buffer
    // As if the subject had 2^32 - 3 earlier uses.
    for (const place of [value.length - 8, value.length - 4]) {
      value.writeUInt32BE((value.readUInt32BE(place) + 2 ** 32 - 3) % 2 ** 32, place)
    }
    await client.set(key, value, 'KEEPTTL')
    for (const left of [2, 1, 0]) {
      expect(await limiter.acquire('p', u)).toMatchObject({ remaining: [{ left }] })
    }
    expect(await limiter.acquire('p', u)).toMatchObject({ admitted: false })
    expect(await limiter.release('p', u, 'first')).toBe(true)
    expect(await limiter.peek('p', u)).toMatchObject([{ used: 3 }])
    expect(await limiter.acquire('p', u, { permits: 3 })).toMatchObject({ admitted: false })
    expect(await limiter.acquire('p', u, { permits: 2 })).toMatchObject({
      remaining: [{ left: 0 }],
    })
  })

  test('I3: 1,000 concurrent acquires against limits of 3 and 5: three pass, and each took once', async () => {
    const { limiter } = await realLimiter({
      p: [sliding('a', '5 per 1h'), { name: 'b', key: '{u}', fixed: '3 per 1h' }],
    })
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) =>
        limiter.acquire('p', u, index % 2 ? { requestId: `${index}` } : {}),
      ),
    )
    expect(answers.filter(({ admitted }) => admitted)).toHaveLength(3)
    expect((await limiter.peek('p', u)).map(({ used }) => used)).toEqual([3, 3])
  })

  test.each([-10, 0, 10])('I17: a node clock %i minutes off decides the same', async (minutes) => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + minutes * 60_000 })
    const policies: RawPolicies = {
      p: [
        sliding('a', '2 per 60s'),
        { name: 'b', key: '{u}', fixed: '3 per 5m' },
        { name: 'c', key: '{u}', calendar: { limit: 4, cron: '0 0 1 1 *', timezone: 'UTC' } },
      ],
    }
    const { limiter } = await realLimiter(policies, { rememberRefusalsMs: 0 })
    await limiter.acquire('p', u)
    const second = await limiter.acquire('p', u)
    expect(second).toMatchObject({ remaining: [{ left: 0 }, { left: 1 }, { left: 2 }] })
    const third = await limiter.acquire('p', u)
    expect(third).toMatchObject({ admitted: false, rule: 'a' })
    const waitMs = third.admitted ? 0 : third.retryAfterMs
    expect(waitMs).toBeGreaterThan(50_000)
    expect(waitMs).toBeLessThanOrEqual(60_000)
  })
})
