import { describe, expect, test } from 'vitest'
import { bothEngines, realLimiter } from './both-engines.ts'

const policies = {
  login: [{ name: 'tries', key: '{subject}', lockout: { limit: 3, window: '5m', lock: '15m' } }],
}
const subject = { subject: 'user-1' }

describe('S4: three tries in five minutes, then a lock', () => {
  test('trap 24: of 50 parallel tries exactly three are let through', async () => {
    const { limiter } = await realLimiter(policies)
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => limiter.acquire('login', subject)),
    )
    expect(answers.filter((answer) => answer.admitted)).toHaveLength(3)
    expect(answers.at(-1)).toMatchObject({ kind: 'lockout', rule: 'tries' })
  })

  test('the fourth try locks for 15 minutes; tries during the lock neither count nor move its end; then counting starts afresh (trap 24)', async () => {
    const { ask, wait } = await bothEngines(policies)
    const acquire = () => ask((limiter) => limiter.acquire('login', subject))
    for (const left of [2, 1, 0]) expect(await acquire()).toMatchObject({ remaining: [{ left }] })
    expect(await acquire()).toMatchObject({ kind: 'lockout', retryAfterMs: 900_000 })
    await wait(600_000) // the window of five minutes ended long ago
    expect(await acquire()).toMatchObject({ kind: 'lockout', retryAfterMs: 300_000 })
    await wait(299_999)
    expect(await acquire()).toMatchObject({ retryAfterMs: 1 })
    await wait(1)
    expect(await acquire()).toMatchObject({ remaining: [{ left: 2 }] })
  })

  test('a success clears it, an operator sees and lifts a lock', async () => {
    const { ask, wait } = await bothEngines(policies)
    const acquire = () => ask((limiter) => limiter.acquire('login', subject))
    await acquire()
    await acquire()
    await ask((limiter) => limiter.reset('login', subject))
    for (let tries = 0; tries < 4; tries++) await acquire()
    await wait(60_000)
    expect(await ask((limiter) => limiter.peek('login', subject))).toEqual([
      {
        rule: 'tries',
        kind: 'lockout',
        window: '5m',
        limit: 3,
        used: 3,
        left: 0,
        resetsInMs: 840_000,
        nextInMs: 840_000,
        lockedForMs: 840_000,
      },
    ])
    await ask((limiter) => limiter.reset('login', subject))
    expect(await acquire()).toMatchObject({ remaining: [{ left: 2 }] })
  })

  test('a lock begins whenever this rule refuses, also when another rule of the policy holds longer', async () => {
    const { ask, wait } = await bothEngines({
      login: [...policies.login, { name: 'day', key: '{subject}', sliding: '3 per 24h' }],
    })
    const acquire = () => ask((limiter) => limiter.acquire('login', subject))
    for (let tries = 0; tries < 3; tries++) await acquire()
    expect(await acquire()).toMatchObject({ rule: 'day' })
    await wait(10_000)
    const [tries] = await ask((limiter) => limiter.peek('login', subject))
    expect(tries?.lockedForMs).toBe(890_000)
  })

  test('with growth each lock is longer, until as long again as the last one has passed without one', async () => {
    const { ask, wait } = await bothEngines({
      login: [
        {
          name: 'tries',
          key: '{subject}',
          lockout: { limit: 1, window: '1m', lock: '5m', growth: 2, maxLock: '15m' },
        },
      ],
    })
    const acquire = () => ask((limiter) => limiter.acquire('login', subject))
    const lockNow = async () => {
      expect(await acquire()).toMatchObject({ admitted: true })
      const refusal = await acquire()
      return refusal.admitted ? 0 : refusal.retryAfterMs
    }
    for (const minutes of [5, 10, 15, 15]) {
      expect(await lockNow()).toBe(minutes * 60_000)
      await wait(minutes * 60_000)
    }
    await wait(15 * 60_000)
    expect(await lockNow()).toBe(5 * 60_000)
  })

  test('a key of subject and address keeps a stranger from locking the owner out', async () => {
    const { ask } = await bothEngines({
      login: [
        { name: 'tries', key: '{subject}:{ip}', lockout: { limit: 3, window: '5m', lock: '15m' } },
      ],
    })
    for (let tries = 0; tries < 5; tries++) {
      await ask((limiter) => limiter.acquire('login', { ...subject, ip: '203.0.113.9' }))
    }
    const owner = { ...subject, ip: '198.51.100.1' }
    expect(await ask((limiter) => limiter.acquire('login', owner))).toMatchObject({
      admitted: true,
    })
  })
})
