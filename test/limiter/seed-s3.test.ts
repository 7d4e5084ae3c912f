import { describe, expect, test } from 'vitest'
import { createLimiter, RateLimitedError, withRateLimit } from '../../src/limiter/index.ts'
import { bothEngines, realLimiter } from './both-engines.ts'

const beforeMidnight = Date.UTC(2026, 10, 21, 15, 59, 30) // 23:59:30 in Shanghai

describe('S3: three ways a quota comes back, several limits on one action', () => {
  test('fixed point: a calendar rule gives all of it back at midnight in Shanghai', async () => {
    const { ask, wait } = await bothEngines(
      {
        daily: [
          {
            name: 'app',
            key: '{app}',
            calendar: { limit: 2, cron: '0 0 * * *', timezone: 'Asia/Shanghai' },
          },
        ],
      },
      beforeMidnight,
    )
    const acquire = () => ask((limiter) => limiter.acquire('daily', { app: 'shop' }))
    expect(await acquire()).toMatchObject({ admitted: true })
    await wait(10_000)
    expect(await acquire()).toMatchObject({ admitted: true, nextInMs: 20_000 })
    expect(await acquire()).toMatchObject({ window: '0 0 * * *', retryAfterMs: 20_000 })
    await wait(19_999)
    expect(await acquire()).toMatchObject({ retryAfterMs: 1 })
    await wait(1)
    expect(await acquire()).toMatchObject({ remaining: [{ left: 1 }] })
  })

  test('fixed delay and range differ: all at once after the first use, or each use on its own', async () => {
    const { ask, wait } = await bothEngines({
      fixed: [{ name: 'r', key: '{u}', fixed: '2 per 60s' }],
      range: [{ name: 'r', key: '{u}', sliding: '2 per 60s' }],
    })
    const both = () =>
      ask(async (limiter) => [
        (await limiter.acquire('fixed', { u: 1 })).admitted,
        (await limiter.acquire('range', { u: 1 })).admitted,
      ])
    expect(await both()).toEqual([true, true])
    await wait(40_000)
    expect(await both()).toEqual([true, true])
    await wait(20_000)
    expect(await both()).toEqual([true, true])
    expect(await both()).toEqual([true, false])
    await wait(40_000)
    expect(await both()).toEqual([false, true])
  })

  test('trap 16: the third of three limits refuses: it is named, the first two are unchanged', async () => {
    const rule = (name: string, limit: number) => ({ name, key: '{u}', sliding: `${limit} per 1h` })
    const { ask } = await bothEngines({ action: [rule('a', 9), rule('b', 5), rule('c', 1)] })
    await ask((limiter) => limiter.acquire('action', { u: 1 }))
    for (let again = 0; again < 20; again++) {
      expect(await ask((limiter) => limiter.acquire('action', { u: 1 }))).toMatchObject({
        rule: 'c',
      })
    }
    const states = await ask((limiter) => limiter.peek('action', { u: 1 }))
    expect(states.map(({ rule, used }) => [rule, used])).toEqual([
      ['a', 1],
      ['b', 1],
      ['c', 1],
    ])
  })

  test('cost does not grow with the frequency: a limit of 100,000 is one key of at most 1.3 kB, and never lets more than it through', async () => {
    const { limiter, client, prefix } = await realLimiter({
      api: [{ name: 'r', key: '{u}', sliding: '100000 per 1h' }],
    })
    let admitted = 0
    for (let round = 0; round < 120; round++) {
      const answer = await limiter.acquire('api', { u: 1 }, { permits: 1_000 })
      if (answer.admitted) admitted += 1_000
    }
    expect(admitted).toBe(100_000)
    const keys = await client.keys(`${prefix}{*`)
    expect(keys).toHaveLength(1)
    expect(await client.strlen(keys[0] as string)).toBeLessThanOrEqual(4 + 10 * 130)
  })

  test('the declaration on a function keeps business code clean; the error carries rule, window and wait', async () => {
    const limiter = createLimiter({
      policies: { mail: [{ name: 'to', key: '{to}', sliding: '1 per 60s' }] },
    })
    const sent: string[] = []
    const send = withRateLimit(
      limiter,
      'mail',
      (to: string) => ({ to }),
      (to) => sent.push(to),
    )
    expect(await send('a@example.org')).toBe(1)
    const error = await send('a@example.org').catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(RateLimitedError)
    expect(error).toMatchObject({ rule: 'to', window: '60s' })
    expect(await send('b@example.org')).toBe(2)
  })
})
