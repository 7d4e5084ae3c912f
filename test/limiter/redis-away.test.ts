/**
 * The traps of a limiter whose Redis is killed, frozen, full or behind a lost connection.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { createLimiter, LimiterUnavailable } from '../../src/limiter/index.ts'
import { ownRedis } from '../tools/own-servers.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'

const u = { u: 'somebody' }

describe('traps: Redis away', () => {
  const policies = {
    p: [{ name: 'r', key: '{u}', sliding: '3 per 1h' }],
    login: [{ name: 'tries', key: '{u}', lockout: { limit: 3, window: '5m', lock: '15m' } }],
    one: [{ name: 'r0', key: '{u}', sliding: '10 per 1h' }],
    many: Array.from({ length: 120 }, (_, at) => {
      return { name: `r${at}`, key: '{u}', sliding: '10 per 1h' }
    }),
  }

  /** A limiter behind a connection that can lose answers, and one with a good connection. */
  async function limitersOfOneServer(options: object = {}, deadlineMs = 2_000) {
    const { url } = await testRedis()
    const proxy = await startTcpProxy(Number(new URL(url).port))
    const limiter = await limiterTo(proxy.through(url), options, deadlineMs)
    return { proxy, limiter, direct: await limiterTo(url, {}, 30_000) }
  }

  /** By default a decision has 250 ms, in which a busy machine may not answer. */
  async function limiterTo(url: string, options: object = {}, deadlineMs = 1_000) {
    const redis = new Redis(url, { retryStrategy: () => 50, ...options })
    redis.on('error', () => {})
    releaseLater(() => redis.disconnect())
    const limiter = closeLater(createLimiter({ policies, redis, deadlineMs }))
    await new Promise((ready) => redis.once('ready', ready))
    await limiter.acquire('p', { u: 'first, which brings the script' })
    return limiter
  }

  test('the connection carries no bytes any more, and new ones work → decisions again within seconds', async () => {
    const { proxy, limiter } = await limitersOfOneServer({ maxRetriesPerRequest: 0 }, 250)
    proxy.silence()
    await expect(limiter.acquire('p', u)).rejects.toThrow(LimiterUnavailable)
    expect(await eventually(() => limiter.acquire('p', u))).toMatchObject({ admitted: true })
  })

  test('the server has become a replica, and its address leads to the new master → decisions again within seconds', async () => {
    const [old, next] = await Promise.all([1, 2].map(() => ownRedis([], 'one-password')))
    if (!old || !next) throw new Error('there are two servers')
    const proxy = await startTcpProxy(old.port)
    const ofHost = await limiterTo(proxy.through(old.url))
    const admin = closeLater(new Redis(old.url), 'disconnect')
    proxy.pointAt(next.port)
    await admin.replicaof('127.0.0.1', 1)
    await expect(ofHost.acquire('p', u)).rejects.toThrow('READONLY')
    expect(await eventually(() => ofHost.acquire('p', u))).toMatchObject({ admitted: true })
  })

  test.each([
    ['ioredis defaults', {}],
    ['no retries', { maxRetriesPerRequest: 0, enableOfflineQueue: false }],
    ['no limit at all', { maxRetriesPerRequest: null }],
  ])(
    'trap 12: Redis killed, connection with %s: a definite answer within the deadline',
    async (_, options) => {
      const server = await ownRedis()
      const limiter = await limiterTo(server.url, options)
      await limiter.acquire('p', u)
      await server.kill()
      for (let asks = 0; asks < 3; asks++) {
        const askedAt = performance.now()
        await expect(limiter.acquire('p', u)).rejects.toThrow(LimiterUnavailable)
        // The deadline, plus the delay of a busy machine. Without a deadline, this connection would wait for ever.
        expect(performance.now() - askedAt).toBeLessThan(10_000)
      }
      await server.start()
      await eventually(() => limiter.acquire('p', { u: 'other' }))
    },
  )

  test('trap 12: Redis frozen: definite within the deadline, and what the frozen server then does is given back (I9)', async () => {
    const server = await ownRedis()
    const limiter = await limiterTo(server.url)
    server.freeze()
    const answers = await Promise.allSettled(
      ['a', 'b', 'c'].map((requestId) => limiter.acquire('p', u, { requestId })),
    )
    expect(answers.every(({ status }) => status === 'rejected')).toBe(true)
    server.thaw()
    await eventually(async () => (await limiter.peek('p', u))[0]?.used === 0)
  })

  test('calls without an id while Redis stands still: as many as begin a lock change nothing, and a wrong guess from before still counts', async () => {
    const server = await ownRedis()
    const limiter = await limiterTo(server.url)
    await limiter.acquire('login', u)
    server.freeze()
    const answers = await Promise.allSettled([
      ...Array.from({ length: 5 }, () => limiter.acquire('login', u)),
      limiter.acquire('login', u, { requestId: 'with an id' }),
      limiter.acquireWithin('p', u, 10),
    ])
    expect(answers.map(({ status }) => status)).toEqual(Array(7).fill('rejected'))
    server.thaw()
    await eventually(async () => {
      expect(await limiter.peek('login', u)).toMatchObject([{ used: 1, nextInMs: 0 }])
      expect(await limiter.peek('p', u)).toMatchObject([{ used: 0 }])
    })
    expect(await limiter.acquire('login', u)).toMatchObject({ remaining: [{ left: 1 }] })
  })

  test('answers to calls without an id are lost: their uses and their lock are undone', async () => {
    const { proxy, limiter, direct } = await limitersOfOneServer({ maxRetriesPerRequest: 0 }, 600)
    for (let tries = 0; tries < 2; tries++) await limiter.acquire('login', u)
    proxy.dropAnswers()
    const lost = await Promise.allSettled(
      Array.from({ length: 4 }, () => limiter.acquire('login', u)),
    )
    expect(lost.every(({ status }) => status === 'rejected')).toBe(true)
    expect(await direct.peek('login', u)).toMatchObject([{ lockedForMs: expect.any(Number) }])
    proxy.forward()
    proxy.reset()
    await eventually(async () => {
      expect(await direct.peek('login', u)).toMatchObject([{ used: 2, nextInMs: 0 }])
    })
    await eventually(() => limiter.acquire('login', u))
    expect(await direct.acquire('login', u)).toMatchObject({ admitted: false, newLock: {} })
  })

  test('a lock whose answer was lost stays if a repeat of the call got it', async () => {
    const { proxy, limiter, direct } = await limitersOfOneServer({ maxRetriesPerRequest: 0 }, 600)
    for (let tries = 0; tries < 3; tries++) await limiter.acquire('login', u)
    proxy.dropAnswers()
    await expect(limiter.acquire('login', u, { requestId: 'again' })).rejects.toThrow()
    expect(await direct.acquire('login', u, { requestId: 'again' })).toMatchObject({
      admitted: false,
    })
    expect(await direct.release('login', u, 'again')).toBe(false)
    proxy.forward()
    proxy.reset()
    await sleep(2_800)
    expect(await direct.peek('login', u)).toMatchObject([{ lockedForMs: expect.any(Number) }])
  })

  test('the connection sends a call without an id again by itself: taken once', async () => {
    const { proxy, limiter, direct } = await limitersOfOneServer({}, 30_000)
    proxy.dropAnswers()
    const asked = limiter.acquire('p', u)
    await eventually(async () => (await direct.peek('p', u))[0]?.used === 1)
    proxy.forward()
    proxy.reset()
    expect(await asked).toMatchObject({ admitted: true, remaining: [{ left: 2 }] })
    expect(await direct.peek('p', u)).toMatchObject([{ used: 1 }])
  })

  test('trap 11: the reply is lost and the caller asks again with the same request id: the first answer, taken once', async () => {
    const { proxy, limiter, direct } = await limitersOfOneServer({ maxRetriesPerRequest: 0 })
    proxy.dropAnswers()
    const requestId = randomUUID()
    await expect(limiter.acquire('p', u, { requestId })).rejects.toThrow(LimiterUnavailable)
    proxy.forward()
    proxy.reset()
    const again = await eventually(() => limiter.acquire('p', u, { requestId }))
    expect(again).toMatchObject({ admitted: true, remaining: [{ left: 2 }] })
    expect(await direct.peek('p', u)).toMatchObject([{ used: 1 }])
  })

  test('trap 11: the connection resends the command by itself: taken once', async () => {
    const { proxy, limiter, direct } = await limitersOfOneServer({}, 30_000)
    proxy.dropAnswers()
    const asked = limiter.acquire('p', u, { requestId: 'resent' })
    await eventually(async () => (await direct.peek('p', u))[0]?.used === 1)
    proxy.forward()
    proxy.reset()
    expect(await asked).toMatchObject({ admitted: true, remaining: [{ left: 2 }] })
    expect(await direct.peek('p', u)).toMatchObject([{ used: 1 }])
  })

  test('trap 11: the reply is lost and the caller does not ask again: the use is given back when Redis answers again (I10)', async () => {
    const { proxy, limiter, direct } = await limitersOfOneServer({ maxRetriesPerRequest: 0 })
    proxy.dropAnswers()
    await expect(limiter.acquire('p', u, { requestId: 'given up' })).rejects.toThrow(
      LimiterUnavailable,
    )
    expect(await direct.peek('p', u)).toMatchObject([{ used: 1 }])
    proxy.forward()
    proxy.reset()
    await eventually(async () => (await direct.peek('p', u))[0]?.used === 0)
  })

  test('trap 11: a use stays taken if one call with its request id got an answer, though others got none; policies of one and of many rules', async () => {
    const keep = async (policy: string) => {
      const { proxy, limiter, direct } = await limitersOfOneServer({ maxRetriesPerRequest: 0 })
      const by = (requestId: string) => ({ requestId })
      await limiter.acquire(policy, u, by('heard first'))
      await limiter.acquire(policy, u, by('released'))
      proxy.dropAnswers()
      await expect(limiter.release(policy, u, 'released')).rejects.toThrow(LimiterUnavailable)
      const ids = ['heard first', 'heard later', 'heard elsewhere', 'never heard']
      const unheard = await Promise.allSettled(ids.map((id) => limiter.acquire(policy, u, by(id))))
      expect(unheard.every(({ status }) => status === 'rejected')).toBe(true)
      expect(await direct.acquire(policy, u, by('heard elsewhere'))).toMatchObject({
        admitted: true,
      })
      proxy.forward()
      proxy.reset()
      await eventually(() => limiter.acquire(policy, u, by('heard later')))
      await limiter.acquire(policy, u, by('released'))
      // The limiter gives back at once, and again two seconds later: only after that is it sure that nothing is missing.
      await eventually(async () => (await direct.peek(policy, u, 'r0'))[0]?.used === 4)
      await sleep(2_800)
      expect(await direct.peek(policy, u, 'r0')).toMatchObject([{ used: 4 }])
      expect(await direct.release(policy, u, 'heard first')).toBe(true)
      expect(await direct.peek(policy, u, 'r0')).toMatchObject([{ used: 3 }])
    }
    await Promise.all([keep('one'), keep('many')])
  })

  test('trap 13: out of memory: LimiterUnavailable with the reason, nothing half taken, and refusals still work', async () => {
    const server = await ownRedis()
    const limiter = await limiterTo(server.url)
    for (let use = 0; use < 3; use++) await limiter.acquire('p', u)
    const admin = closeLater(new Redis(server.url), 'disconnect')
    await admin.config('SET', 'maxmemory', '1')
    const error = await limiter.acquire('p', { u: 'new' }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(LimiterUnavailable)
    expect(String(error)).toContain('OOM')
    expect(await limiter.acquire('p', u)).toMatchObject({ admitted: false })
    await admin.config('SET', 'maxmemory', '0')
    expect(await limiter.peek('p', { u: 'new' })).toMatchObject([{ used: 0 }])
  })
})
