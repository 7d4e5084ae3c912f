/** Special cases of a bucket: changed terms, clocks that jump, huge numbers, damaged values. */
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  InvalidPolicies,
  type Limiter,
  LimiterUnavailable,
  parsePolicies,
  type RawRule,
} from '../../src/limiter/index.ts'
import { bothEngines, realLimiter } from './both-engines.ts'

const u = { u: 'somebody' }
const hour = 3_600_000
const day = 24 * hour
const minute = 60_000

const ruleOf = (rate: string, burst: number, more: Partial<RawRule> = {}) => ({
  p: [{ name: 'r', key: '{u}', bucket: { rate, burst }, ...more }],
})

async function bucketOf(rate: string, burst: number) {
  const both = await bothEngines(ruleOf(rate, burst))
  /** The remaining permits; a negative number is the wait. */
  const take = async (permits = 1, requestId?: string) => {
    const answer = await both.ask((one) => one.acquire('p', u, { permits, requestId }))
    return answer.admitted ? answer.remaining[0]?.left : -answer.retryAfterMs
  }
  const peek = async () => (await both.ask((one) => one.peek('p', u)))[0]
  const setPolicies = (policies: Parameters<Limiter['setPolicies']>[0]) => {
    for (const limiter of Object.values(both.engines)) limiter.setPolicies(policies)
  }
  return { ...both, take, peek, setPolicies, start: both.now() }
}

const problemsOf = (raw: unknown) => {
  const parsed = parsePolicies({ p: [{ name: 'r', key: '{u}', ...(raw as object) }] })
  return parsed.ok ? [] : parsed.problems.map((one) => `${one.path.join('.')}: ${one.message}`)
}

describe('the policy file', () => {
  test.each<[raw: object, problem: string]>([
    [{ bucket: { burst: 1 } }, 'p.0.bucket.rate: expected a rate such as "10 per 1m"'],
    ...['10', '10/m', '0 per 1m', '1.5 per 1s', '-1 per 1s', '1 per 0s'].map(
      (rate): [object, string] => [
        { bucket: { rate, burst: 1 } },
        `p.0.bucket.rate: "${rate}" is not a rate such as "10 per 1m"`,
      ],
    ),
    [{ bucket: { rate: '1 per 1s', burst: 1, size: 1 } }, 'p.0.bucket.size: unknown key'],
    [
      { bucket: { rate: '1 per 1s', burst: 4 }, permits: 5 },
      'p.0.permits: permits are above burst, so nothing would ever pass',
    ],
    [
      { bucket: { rate: '1 per 1s', burst: 4 }, sliding: '1 per 1s' },
      'p.0: a rule has exactly one of sliding, fixed, bucket, calendar and lockout',
    ],
    [
      { bucket: { rate: '1 per 24h', burst: 3_651 } },
      'p.0.bucket.burst: at this rate a burst would take more than ten years to come back',
    ],
    [
      { bucket: { rate: '1000000000 per 365d', burst: 1 } },
      'p.0.bucket.burst: too large to be counted exactly: give the rate a shorter duration',
    ],
  ])('%j', (raw, problem) => expect(problemsOf(raw)).toEqual([problem]))

  test('no rate, no burst, a burst of 0, of half a permit or of a text: a problem at its path', () => {
    for (const burst of [undefined, 0, 0.5, -1, '20', 2e9, Number.NaN]) {
      const [problem, ...others] = problemsOf({ bucket: { rate: '1 per 1s', burst } })
      expect([problem, others]).toEqual([expect.stringMatching(/^p\.0\.bucket\.burst: /), []])
    }
    expect(problemsOf({ bucket: '10 per 1m' })).toHaveLength(1)
    expect(problemsOf({ bucket: { rate: '1 per 24h', burst: 3_650 } })).toEqual([])
    expect(problemsOf({ bucket: { rate: '1000000000 per 1d', burst: 1_000 } })).toHaveLength(1)
    expect(problemsOf({ bucket: { rate: '1000000000 per 1s', burst: 1_000_000_000 } })).toEqual([])
  })
})

describe('sizes', () => {
  test('1 per 24h, burst 1: the next is a day later to the millisecond', async () => {
    const { take, wait } = await bucketOf('1 per 24h', 1)
    expect(await take()).toBe(0)
    expect(await take()).toBe(-day)
    await wait(day - 1)
    expect(await take()).toBe(-1)
    await wait(1)
    expect(await take()).toBe(0)
  })

  test('1000 per 1s: one each millisecond', async () => {
    const { take, wait } = await bucketOf('1000 per 1s', 5)
    expect(await take(5)).toBe(0)
    expect(await take()).toBe(-1)
    await wait(3)
    expect(await take(3)).toBe(0)
    expect(await take(4)).toBe(-4)
  })

  test('more than 2^32 permits before it is full again: none too many, and all that was given back', async () => {
    const half = 500_000_000
    const { take, wait, peek, ask } = await bucketOf('1000000000 per 1s', 2 * half)
    expect(await take(2 * half)).toBe(0)
    for (let turn = 1; turn <= 12; turn++) {
      await wait(499)
      expect(await take(half)).toBe(-1)
      await wait(1)
      expect(await take(half, `${turn}`)).toBe(0)
    }
    expect(await ask((one) => one.release('p', u, '12'))).toBe(true)
    expect(await peek()).toMatchObject({ used: half, resetsInMs: 500 })
  })

  test('the greatest numbers that are allowed: waits are exact', async () => {
    const { take, wait } = await bucketOf('99999989 per 1d', 3_000_000)
    expect(await take(2_999_999)).toBe(1)
    expect(await take(3_000_000)).toBe(-Math.ceil((2_999_999 * day) / 99_999_989))
    await wait(Math.ceil((2_999_999 * day) / 99_999_989) - 1)
    expect(await take(3_000_000)).toBe(-1)
    await wait(1)
    expect(await take(3_000_000)).toBe(0)
  })
})

describe('clocks', () => {
  test('back by ten seconds: what is left may be taken, the rest waits from now on, and nothing is won', async () => {
    const { take, at, start } = await bucketOf('1 per 1m', 2)
    expect(await take()).toBe(1)
    await at(start - 10_000)
    expect(await take()).toBe(0)
    expect(await take()).toBe(-minute)
    await at(start)
    expect(await take()).toBe(-50_000)
    await at(start + 50_000)
    expect(await take()).toBe(0)
  })

  test('back by ten seconds: nothing more is used than was taken', async () => {
    const { take, at, start } = await bucketOf('10 per 1m', 20)
    await take(5)
    await at(start - 10_000)
    expect(await take()).toBe(14)
  })

  test('back to before what returned: a burst and no more', async () => {
    const { take, at, start, ask } = await bucketOf('10 per 1m', 20)
    await take(20, 'a')
    await at(start + 66_000)
    await take(8)
    await ask((one) => one.release('p', u, 'a'))
    await at(start + 47_000)
    expect(await take(20)).toBe(0)
  })

  test('a clock 25 h ahead has written: not trusted, and no caller waits for it', async () => {
    for (const rate of ['1 per 1m', '1 per 24h']) {
      const { take, at, start, peek } = await bucketOf(rate, 3)
      await take(3)
      await at(start + 25 * hour)
      await take()
      await at(start)
      expect(await peek()).toMatchObject({ used: 0, resetsInMs: 0 })
      expect(await take()).toBe(2)
      expect(await take(2)).toBe(0)
      expect(await take()).toBeGreaterThanOrEqual(-day)
    }
  })
})

describe('a reload', () => {
  test('another burst, another rate: what is used stays used', async () => {
    const { take, peek, wait, setPolicies } = await bucketOf('10 per 1m', 20)
    await take(20)
    for (let busy = 0; busy < 30; busy++) {
      await wait(6_000)
      await take()
    }
    setPolicies(ruleOf('10 per 1m', 30))
    expect(await peek()).toMatchObject({ used: 20, left: 10, window: '10 per 1m' })
    setPolicies(ruleOf('5 per 1m', 20))
    expect(await take()).toBe(-12_000)
    setPolicies(ruleOf('60 per 1m', 20))
    expect(await take()).toBe(-1_000)
    await wait(1_000)
    expect(await take()).toBe(0)
  })

  test('a smaller burst: full as it is, and the wait is one of the new terms', async () => {
    const { take, peek, wait, setPolicies } = await bucketOf('10 per 1m', 1_000)
    await take(1_000)
    setPolicies(ruleOf('10 per 1m', 5))
    expect(await peek()).toMatchObject({ used: 5, left: 0, nextInMs: 66_000 })
    await wait(66_000)
    expect(await take()).toBe(0)
  })

  test('from a window to a bucket of the same name, and back: each counts for itself', async () => {
    const { take, setPolicies } = await bucketOf('1 per 1m', 2)
    await take(2)
    setPolicies({ p: [{ name: 'r', key: '{u}', sliding: '5 per 1h' }] })
    expect(await take()).toBe(4)
    setPolicies({ p: [{ name: 'r', key: '{u}', lockout: { limit: 3, window: '1h', lock: '1h' } }] })
    expect(await take()).toBe(2)
    setPolicies(ruleOf('1 per 1m', 2))
    expect(await take()).toBe(-minute)
    expect(() => setPolicies(ruleOf('1 per 1m', 0))).toThrow(InvalidPolicies)
    expect(await take()).toBe(-minute)
  })

  test('any terms after any others: both engines agree, and waiting for the given time admits', async () => {
    const { take, setPolicies, ask, client, ...both } = await bucketOf('1 per 1m', 2)
    const terms = fc.record({
      limit: fc.integer({ min: 1, max: 50 }),
      everyMs: fc.constantFrom(1, 7, 1_000, minute, day),
      burst: fc.constantFrom(1, 2, 5, 100),
      pauseMs: fc.constantFrom(0, 1, 500, 7_000, minute, hour),
      many: fc.integer({ min: 1, max: 100 }),
      isReleased: fc.boolean(),
    })
    /** Redis expires the key by the terms of the latest use, which are others here. */
    const wait = async (ms: number) => {
      for (const key of await client.keys('*')) await client.persist(key)
      await both.wait(ms)
    }
    const steps = fc.sample(terms, { numRuns: 150, seed: 7 })
    for (const [step, one] of steps.entries()) {
      setPolicies(ruleOf(`${one.limit} per ${one.everyMs}ms`, one.burst))
      const permits = Math.min(one.many, one.burst)
      const waitMs = -((await take(permits, `${step}`)) ?? 0)
      if (waitMs > 0) {
        const longestMs = ((one.burst + one.limit + permits) * one.everyMs) / one.limit
        expect(waitMs).toBeLessThanOrEqual(Math.ceil(longestMs))
        await wait(waitMs - 1)
        expect(await take(permits)).toBe(-1)
        await wait(1)
        expect(await take(permits)).toBeGreaterThanOrEqual(0)
      }
      if (one.isReleased) await ask((limiter) => limiter.release('p', u, `${step}`))
      await wait(one.pauseMs)
    }
  })
})

describe('in Redis', () => {
  const keyOf = async (client: { keys(pattern: string): Promise<string[]> }) =>
    (await client.keys('*')).filter((key) => !/req|call/.test(key))[0] as string

  test('24 bytes, after any use; a refusal writes nothing; the key ends when the bucket is full again', async () => {
    const { limiter, client } = await realLimiter(ruleOf('10 per 1m', 20))
    for (let use = 0; use < 20; use++) await limiter.acquire('p', u)
    const key = await keyOf(client)
    expect(await client.strlen(key)).toBe(24)
    const value = await client.getBuffer(key)
    expect(await limiter.acquire('p', u)).toMatchObject({ admitted: false })
    expect(await client.getBuffer(key)).toEqual(value)
    const [state] = await limiter.peek('p', u)
    expect(Math.abs((await client.pttl(key)) - (state?.resetsInMs ?? 0))).toBeLessThan(10_000)
    await client.pexpire(key, 1)
  })

  test('a damaged value: an answer within what the terms allow, or an error that reset() mends', async () => {
    const { limiter, client } = await realLimiter(ruleOf('10 per 1m', 20), {
      rememberRefusalsMs: 0,
    })
    await limiter.acquire('p', u)
    const key = await keyOf(client)
    const value = (await client.getBuffer(key)) as Buffer
    for (const bad of ['x', 'a'.repeat(23), 'a'.repeat(25), value.subarray(10, 23)]) {
      await client.set(key, bad)
      await expect(limiter.acquire('p', u)).rejects.toThrow(LimiterUnavailable)
      await limiter.reset('p', u)
      expect(await limiter.acquire('p', u)).toMatchObject({ admitted: true })
    }
    const longestMs = ((20 + 10 + 20) * minute) / 10 + 2 * hour
    for (let draw = 0; draw < 200; draw++) {
      // Some values have the current time, so that not all are too old or too new to count.
      const bad = randomBytes([14, 24, 34, 44][draw % 4] as number)
      if (draw % 3 === 0) value.copy(bad, 0, 0, 6)
      await client.set(key, bad)
      const [state] = await limiter.peek('p', u)
      expect(state?.used).toBeGreaterThanOrEqual(0)
      expect(state?.nextInMs).toBeLessThanOrEqual(longestMs)
      const answer = await limiter.acquire('p', u, { permits: 1 + (draw % 20) })
      if (!answer.admitted) expect(answer.retryAfterMs).toBeLessThanOrEqual(longestMs)
      else expect(await client.pttl(key)).toBeGreaterThan(0)
    }
  })
})
