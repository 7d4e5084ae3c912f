import type { Cluster } from 'ioredis'
import { beforeAll, describe, expect, test } from 'vitest'
import { createLimiter, LimiterUnavailable } from '../../src/limiter/index.ts'
import { scripts } from '../../src/limiter/scripts.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { ownCluster } from '../tools/redis-topologies.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const policies = {
  captcha: [
    { name: 'ip', key: '{ip}', sliding: '60 per 10m' },
    { name: 'to', key: '{to}', sliding: ['3 per 60s', '10 per 24h'] },
    { name: 'same', key: '{to}:{text}', fixed: '2 per 60s' },
  ],
  login: [
    { name: 'day', key: '{user}:{day}', sliding: '2 per 24h' },
    { name: 'tries', key: '{user}', lockout: { limit: 2, window: '5m', lock: '15m' } },
    { name: 'short', key: '{user}', lockout: { limit: 2, window: '1m', lock: '1m' } },
  ],
  sms: [
    { name: 'to', key: '{to}', sliding: '2 per 60s' },
    { name: 'tries', key: '{ip}', lockout: { limit: 20, window: '1h', lock: '1h' } },
  ],
}

describe('in a real cluster of three nodes (trap 19)', () => {
  let redis: Cluster
  beforeAll(async () => {
    const { url } = await ownCluster()
    redis = connectRedis(url, 'limiter', () => {}) as Cluster
    releaseLater(() => redis.disconnect())
    await eventually(() => redis.get('x').then(() => true))
  })

  const limiterOf = () => {
    const limiter = createLimiter({ policies, redis, deadlineMs: 5_000, rememberRefusalsMs: 0 })
    releaseLater(() => limiter.close())
    return limiter
  }

  test('rules of one policy lie in different slots, and still all pass or none', async () => {
    const limiter = limiterOf()
    for (let person = 0; person < 20; person++) {
      const fields = { ip: `10.0.0.${person}`, to: `+8613800${person}`, text: 'hello' }
      const take = (text: string) => limiter.acquire('captcha', { ...fields, text })
      expect(await take('a')).toMatchObject({ admitted: true })
      expect(await take('a')).toMatchObject({
        remaining: [
          { rule: 'ip', left: 58 },
          { rule: 'to', window: '60s', left: 1 },
          { rule: 'to', window: '24h', left: 8 },
          { rule: 'same', left: 0 },
        ],
      })
      expect(await take('a')).toMatchObject({ admitted: false, rule: 'same' })
      expect(await take('b')).toMatchObject({ admitted: true })
      expect(await take('c')).toMatchObject({ admitted: false, rule: 'to' })
      const used = (await limiter.peek('captcha', fields)).map((state) => state.used)
      expect(used.slice(0, 3)).toEqual([3, 3, 3])
    }
    const sizes = await Promise.all(redis.nodes('master').map((node) => node.dbsize()))
    expect(sizes.every((size) => size > 5)).toBe(true)
  })

  test('I3: 300 concurrent acquires of one subject: never more than the limit passes, and nothing stays taken by the others', async () => {
    const limiter = limiterOf()
    const ip = '10.1.1.1'
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, index) =>
        limiter.acquire('captcha', { ip, to: 'one', text: `${index}` }),
      ),
    )
    const admitted = answers.filter((answer) => answer.admitted).length
    expect(admitted).toBeLessThanOrEqual(3)
    expect(admitted).toBeGreaterThan(0)
    await eventually(async () => {
      const states = await limiter.peek('captcha', { ip, to: 'one', text: '' })
      return states[0]?.used === admitted && states[1]?.used === admitted
    })
  })

  test('a batch of many subjects goes to their slots; request ids and releases find their way', async () => {
    const limiter = limiterOf()
    const people = Array.from({ length: 500 }, (_, index) => ({
      ip: '10.2.2.2',
      to: `person${index % 50}`,
      text: 'x',
    }))
    const taken = await Promise.all(
      people
        .slice(0, 50)
        .map((fields, index) => limiter.acquire('captcha', fields, { requestId: `r${index}` })),
    )
    expect(taken.every((answer) => answer.admitted)).toBe(true)
    const resent = await limiter.acquire('captcha', people[7] as never, { requestId: 'r7' })
    expect(resent.admitted).toBe(true)
    const fields = people[7] as (typeof people)[0]
    expect((await limiter.peek('captcha', fields)).map(({ used }) => used)).toEqual([50, 1, 1, 1])
    expect(await limiter.release('captcha', fields, 'r7')).toBe(true)
    expect(await limiter.release('captcha', fields, 'r7')).toBe(false)
    expect((await limiter.peek('captcha', fields)).map(({ used }) => used)).toEqual([49, 0, 0, 0])
    await limiter.reset('captcha', fields)
    expect((await limiter.peek('captcha', fields)).map(({ used }) => used)).toEqual([0, 0, 0, 0])
  })

  test('a slot that fails after others have taken: an error, and those have given back', async () => {
    const limiter = limiterOf()
    const nodes = redis.nodes('master')
    const keysNow = async () => (await Promise.all(nodes.map((node) => node.keys('*')))).flat()
    for (let person = 0; person < 6; person++) {
      const fields = { ip: `10.4.4.${person}`, to: `broken${person}`, text: 'x' }
      const before = new Set(await keysNow())
      await limiter.acquire('captcha', fields)
      const mine = (await keysNow()).filter((key) => !before.has(key) && !key.includes('call:'))
      const lives = await Promise.all(mine.map((key) => redis.pttl(key)))
      // The shortest window is checked last. Its value becomes one that no script can read.
      const last = mine[lives.indexOf(Math.min(...lives))] as string
      await redis.del(last)
      await redis.rpush(last, 'x')
      await expect(limiter.acquire('captcha', fields)).rejects.toThrow(LimiterUnavailable)
      await eventually(async () => {
        const states = await limiter.peek('captcha', fields)
        expect(states.slice(0, 3).map(({ used }) => used)).toEqual([1, 1, 1])
      })
    }
  })

  test('no lock begins on what is about to be given back', async () => {
    const limiter = limiterOf()
    for (let person = 0; person < 5; person++) {
      const fields = { to: `to${person}`, ip: `10.5.5.${person}` }
      const asked = Array.from({ length: 100 }, () => limiter.acquire('sms', fields))
      expect((await Promise.all(asked)).filter(({ admitted }) => admitted)).toHaveLength(2)
      const [, tries] = await limiter.peek('sms', fields)
      expect(tries).toMatchObject({ used: 2 })
      expect(tries).not.toHaveProperty('lockedForMs')
    }
  })

  test('the window that holds longest is named and a lock begins, whichever slot refuses first', async () => {
    const limiter = limiterOf()
    for (let user = 0; user < 10; user++) {
      const fields = { user: `u${user}`, day: 'monday' }
      await limiter.acquire('login', fields)
      await limiter.acquire('login', fields)
      const refused = await limiter.acquire('login', fields)
      const newLock = { rule: 'tries', window: '5m', retryAfterMs: 900_000 }
      expect(refused).toMatchObject({ admitted: false, rule: 'day', window: '24h', newLock })
      const states = await limiter.peek('login', fields)
      expect(states[1]?.lockedForMs).toBeGreaterThan(890_000)
      expect(states[0]?.used).toBe(2)
    }
  })
})

test('a node that is away fails only its own subjects, not those that wait for the next tick', async () => {
  const answers = [Promise.withResolvers<unknown>(), Promise.withResolvers<unknown>()]
  const isAsked = Promise.withResolvers<void>()
  let calls = 0
  const callBuffer = () => {
    isAsked.resolve()
    return answers[calls++]?.promise
  }
  const limiter = createLimiter({
    policies: { sms: [{ name: 'to', key: '{to}', sliding: '2 per 60s' }] },
    redis: { isCluster: true, callBuffer } as unknown as Cluster,
  })
  releaseLater(() => limiter.close())
  const [first, second] = answers
  const away = limiter.peek('sms', { to: 'away' })
  await isAsked.promise
  const other = limiter.peek('sms', { to: 'other' })
  first?.reject(new Error('Connection is closed.'))
  second?.resolve([Date.now(), [null]])
  await expect(away).rejects.toThrow(LimiterUnavailable)
  expect(await other).toMatchObject([{ rule: 'to', used: 0 }])
})

test('uses that could not be given back yet, then a call without an id → its memory has another key', async () => {
  const requestKeys: string[] = []
  const callBuffer = async (_: string, sha: string, count: number, ...rest: string[]) => {
    if (sha === scripts.release.sha) throw new Error('Connection is closed.')
    if (sha === scripts.peek.sha) return [Date.now(), [null]]
    expect(sha).toBe(scripts.acquire.sha)
    requestKeys.push(String(rest[count - 1]))
    const isFirst = requestKeys.length % 2 === 1
    const value = Buffer.alloc(14)
    return isFirst ? [Date.now(), value] : [Date.now(), 60_000 * 1_024 + 1_022]
  }
  const limiter = createLimiter({
    policies: {
      sms: [
        { name: 'app', key: '{app}', sliding: '9 per 24h' },
        { name: 'to', key: '{to}', sliding: '2 per 60s' },
      ],
    },
    redis: { isCluster: true, callBuffer } as unknown as Cluster,
    rememberRefusalsMs: 0,
  })
  releaseLater(() => limiter.close())
  const refused = { admitted: false, rule: 'to' }
  for (const to of ['a', 'b']) {
    expect(await limiter.acquire('sms', { app: 'x', to })).toMatchObject(refused)
  }
  const ofApp = requestKeys.filter((_, at) => at % 2 === 0)
  expect(ofApp).toHaveLength(2)
  expect(ofApp[1]).not.toBe(ofApp[0])
})

test('a lock began in one slot, and the next slot gives no answer → an error, and the lock is undone', async () => {
  const acquired: string[][] = []
  const released: string[][] = []
  const callBuffer = async (_: string, sha: string, count: number, ...rest: string[]) => {
    const keys = rest.slice(0, count)
    if (sha === scripts.release.sha) released.push([...keys.slice(-1), ...rest.slice(-1)])
    if (sha === scripts.release.sha) return 1
    if (sha !== scripts.acquire.sha) throw new Error('Connection is closed.')
    acquired.push([...keys.slice(-1), ...rest.slice(-1)])
    const hold = 60_000 * 1_024 + 1_023
    return [Date.now(), -hold, hold]
  }
  const lockout = { limit: 2, window: '1m', lock: '1m' }
  const limiter = createLimiter({
    policies: {
      login: [
        { name: 'user', key: '{user}', lockout },
        { name: 'ip', key: '{ip}', lockout },
      ],
    },
    redis: { isCluster: true, callBuffer } as unknown as Cluster,
  })
  releaseLater(() => limiter.close())
  const asked = limiter.acquire('login', { user: 'ada', ip: '10.0.0.1' })
  await expect(asked).rejects.toThrow(LimiterUnavailable)
  expect(acquired).toHaveLength(1)
  await eventually(() => released.length > 0)
  expect(released).toEqual(acquired)
})
