/**
 * The promises of each kind of rule, step by step, on both engines. The differential test draws far more cases; these
 * tests name the promise that broke.
 */
import { describe, expect, test, vi } from 'vitest'
import type { Limiter, RawPolicies } from '../../src/limiter/index.ts'
import { createLimiter, InvalidPolicies } from '../../src/limiter/index.ts'
import { bothEngines, realLimiter } from './both-engines.ts'

const minute = 60_000
const hour = 60 * minute
const u = { u: 'somebody' }

type Rule = RawPolicies[string][number]

/** One policy on both engines. `take` returns what is left, or the wait and the rule that refuses. */
async function policyOf(...rules: Partial<Rule>[]) {
  const policies = {
    p: rules.map((rule, index) => ({ name: `rule${index}`, key: '{u}', ...rule })),
  } as RawPolicies
  const both = await bothEngines(policies)
  const take = async (permits = 1, requestId?: string, fields: object = u) => {
    const options = { permits, ...(requestId ? { requestId } : {}) }
    const answer = await both.ask((limiter) => limiter.acquire('p', fields as never, options))
    if (answer.admitted) return answer.remaining.map(({ left }) => left).join(' ')
    return `${answer.rule} ${answer.window}: ${answer.retryAfterMs}`
  }
  const nextInMs = async (permits = 1) => {
    const answer = await both.ask((limiter) => limiter.acquire('p', u, { permits }))
    return answer.admitted ? answer.nextInMs : Number.NaN
  }
  const used = async (fields: object = u) =>
    (await both.ask((limiter) => limiter.peek('p', fields as never))).map((one) => one.used)
  const peek = (fields: object = u) => both.ask((limiter) => limiter.peek('p', fields as never))
  const release = (requestId: string, names?: string[]) =>
    both.ask((limiter) => limiter.release('p', u, requestId, names))
  const reset = (name?: string) =>
    both.ask(async (limiter) => (await limiter.reset('p', u, name)) ?? null)
  return { ...both, take, nextInMs, used, peek, release, reset }
}

describe('sliding', () => {
  test('each use leaves on its own, a window after it was made, not a millisecond sooner', async () => {
    const { take, wait } = await policyOf({ sliding: '2 per 60s' })
    expect(await take()).toBe('1')
    await wait(10_000)
    expect(await take()).toBe('0')
    expect(await take()).toBe('rule0 60s: 50000')
    await wait(49_999)
    expect(await take()).toBe('rule0 60s: 1')
    await wait(1)
    expect(await take()).toBe('0')
    expect(await take()).toBe('rule0 60s: 10000')
  })

  test('several permits are one use of that many; the wait is until enough of them have left', async () => {
    const { take, wait } = await policyOf({ sliding: '5 per 60s' })
    expect(await take(2)).toBe('3')
    await wait(1_000)
    expect(await take(2)).toBe('1')
    await wait(1_000)
    expect(await take(3)).toBe('rule0 60s: 58000')
    expect(await take(4)).toBe('rule0 60s: 59000')
    expect(await take(5)).toBe('rule0 60s: 59000')
    expect(await take()).toBe('0')
    expect(await take(5)).toBe('rule0 60s: 60000')
    await wait(58_000)
    expect(await take(2)).toBe('0')
  })

  test('permits of a field: the wait of a look is for as many as the field names, or for one', async () => {
    const { take, peek, wait } = await policyOf({ sliding: '5 per 60s', permits: 'price' })
    const priced = (price: number) => ({ ...u, price })
    expect(await take(1, undefined, priced(1))).toBe('4')
    await wait(1_000)
    expect(await take(1, undefined, priced(3))).toBe('1')
    const nextInMs = async (fields: object = u) => (await peek(fields))[0]?.nextInMs
    expect(await nextInMs(priced(1))).toBe(0)
    expect(await nextInMs(priced(2))).toBe(59_000)
    expect(await nextInMs(priced(3))).toBe(60_000)
    expect([await nextInMs(), await nextInMs({ ...u, price: 'x' })]).toEqual([0, 0])
  })

  test('of several windows the one with the longest wait is named, whichever is written first', async () => {
    for (const sliding of [
      ['1 per 60s', '2 per 1h'],
      ['2 per 1h', '1 per 60s'],
    ]) {
      const { take, wait } = await policyOf({ sliding })
      expect(await take()).toBe(sliding[0] === '1 per 60s' ? '0 1' : '1 0')
      expect(await take()).toBe('rule0 60s: 60000')
      await wait(minute)
      await take()
      expect(await take()).toBe(`rule0 1h: ${hour - minute}`)
    }
  })

  test('a limit above 128 lets no more than itself through, and frees a window after', async () => {
    const { take, wait } = await policyOf({ sliding: '200 per 128s' })
    expect(await take(150)).toBe('50')
    await wait(500)
    expect(await take(51)).toMatch(/^rule0 128s: /)
    expect(await take(50)).toBe('0')
    expect(await take()).toMatch(/^rule0 128s: /)
    await wait(128_000 + 1_000)
    expect(await take(200)).toBe('0')
  })
})

describe('fixed', () => {
  test('the window begins with its first use and ends as a whole', async () => {
    const { take, wait } = await policyOf({ fixed: '3 per 60s' })
    expect(await take()).toBe('2')
    await wait(40_000)
    expect(await take(2)).toBe('0')
    expect(await take()).toBe('rule0 60s: 20000')
    await wait(19_999)
    expect(await take()).toBe('rule0 60s: 1')
    await wait(1)
    expect(await take(3)).toBe('0')
    expect(await take()).toBe('rule0 60s: 60000')
  })

  test('windows of one rule run apart', async () => {
    const { take, wait } = await policyOf({ fixed: ['2 per 60s', '3 per 5m'] })
    expect(await take(2)).toBe('0 1')
    await wait(minute)
    expect(await take()).toBe('1 0')
    expect(await take()).toBe(`rule0 5m: ${4 * minute}`)
    await wait(4 * minute)
    expect(await take()).toBe('1 2')
  })
})

describe('bucket', () => {
  test('a burst at once, then one after the other at the rate, not a millisecond sooner', async () => {
    const { take, wait } = await policyOf({ bucket: { rate: '3 per 1s', burst: 2 } })
    expect([await take(), await take()]).toEqual(['1', '0'])
    expect(await take()).toBe('rule0 3 per 1s: 334')
    await wait(333)
    expect(await take()).toBe('rule0 3 per 1s: 1')
    await wait(1)
    expect(await take()).toBe('0')
    expect(await take()).toBe('rule0 3 per 1s: 333')
    await wait(333)
    expect(await take()).toBe('0')
    expect(await take()).toBe('rule0 3 per 1s: 333')
    await wait(60_000)
    expect([await take(), await take()]).toEqual(['1', '0'])
  })

  test('who always takes the next permit as soon as there is one gets exactly the rate: nothing is lost between looks', async () => {
    const { take, wait, now } = await policyOf({ bucket: { rate: '7 per 1s', burst: 3 } })
    const startMs = now()
    for (let taken = 0; taken < 150; ) {
      const [, waitMs] = (await take()).split(': ')
      if (waitMs) await wait(Number(waitMs))
      else taken += 1
    }
    expect(now() - startMs).toBe(Math.ceil((147 * 1_000) / 7))
  })

  test('several permits wait until so many are back; more than the burst is an error', async () => {
    const { take, wait, engines } = await policyOf({ bucket: { rate: '10 per 1m', burst: 20 } })
    expect(await take(15)).toBe('5')
    expect(await take(6)).toBe('rule0 10 per 1m: 6000')
    expect(await take(20)).toBe('rule0 10 per 1m: 90000')
    await wait(6_000)
    expect(await take(6)).toBe('0')
    for (const limiter of Object.values(engines)) {
      await expect(limiter.acquire('p', u, { permits: 21 })).rejects.toThrow(RangeError)
    }
  })

  test('peek and nextInMs: used rounded up, the next permit, and when all are back', async () => {
    const { take, peek, nextInMs, wait } = await policyOf({
      bucket: { rate: '10 per 1m', burst: 2 },
    })
    await take()
    await wait(1_000)
    expect(await nextInMs()).toBe(5_000)
    expect(await peek()).toEqual([
      {
        ...{ rule: 'rule0', kind: 'bucket', window: '10 per 1m', limit: 2, used: 2, left: 0 },
        ...{ nextInMs: 5_000, resetsInMs: 11_000 },
      },
    ])
    await wait(5_000)
    expect(await peek()).toMatchObject([{ used: 1, left: 1, nextInMs: 0, resetsInMs: 6_000 }])
    await wait(5_999)
    expect(await peek()).toMatchObject([{ used: 1, left: 1, nextInMs: 0, resetsInMs: 1 }])
    await wait(1)
    expect(await peek()).toMatchObject([{ used: 0, left: 2, nextInMs: 0, resetsInMs: 0 }])
  })

  test('what is given back is there at once, to no more than a burst, and only until the bucket is full again', async () => {
    const { take, used, release, wait } = await policyOf({
      bucket: { rate: '10 per 1m', burst: 20 },
    })
    await take(15, 'a')
    await take(5, 'b')
    expect(await release('b')).toBe(true)
    expect(await release('b')).toBe(false)
    expect(await used()).toEqual([15])
    await wait(66_000) // six turns of the rate before all is back
    expect(await take(1, 'c')).toBe('15')
    await release('a')
    expect(await take(20, 'd')).toBe('0')
    await wait(120_000)
    expect(await take(20)).toBe('0')
    await release('d')
    expect(await used()).toEqual([20])
  })

  test('observe and challenge: counted as long as there is room', async () => {
    const bucket = { rate: '1 per 1m', burst: 1 }
    const { engines, ask, used } = await policyOf(
      { bucket, mode: 'observe' },
      { bucket, mode: 'challenge' },
    )
    const [limiter] = Object.values(engines)
    const take = (isSolved: boolean) => ask((one) => one.acquire('p', u, { isSolved }))
    expect(await take(false)).toMatchObject({ admitted: true })
    expect(await take(false)).toMatchObject({
      challenge: true,
      rule: 'rule1',
      retryAfterMs: minute,
    })
    expect(await take(true)).toMatchObject({
      admitted: true,
      remaining: [{ left: 0 }, { left: 0 }],
    })
    expect(await used()).toEqual([1, 1])
    expect(limiter?.windows('p')[0]).toMatchObject({ window: '1 per 1m', windowMs: minute })
  })
})

describe('lockout', () => {
  const lockout = { limit: 2, window: '1m', lock: '5m' }

  test('tries that are a window apart never lock; those within it do, for the whole lock', async () => {
    const { take, wait } = await policyOf({ lockout })
    for (let tries = 0; tries < 4; tries++) {
      expect(await take()).toBe('1')
      await wait(minute)
    }
    await take()
    await wait(59_999)
    expect(await take()).toBe('0')
    expect(await take()).toBe('rule0 1m: 300000')
    await wait(4 * minute)
    expect(await take()).toBe('rule0 1m: 60000')
    await wait(minute)
    expect(await take()).toBe('1')
  })

  test('below the limit there is no lock: peek and nextInMs report the window', async () => {
    const { take, nextInMs, peek, wait } = await policyOf({ lockout })
    await take()
    await wait(10_000)
    expect(await nextInMs()).toBe(50_000)
    const [state] = await peek()
    expect(state).toMatchObject({ used: 2, left: 0, nextInMs: 50_000 })
    expect(state).not.toHaveProperty('lockedForMs')
    await wait(50_000)
    expect(await take()).toBe('0')
  })

  test('without growth every lock is as long; with it the next is longer, up to the longest', async () => {
    const same = await policyOf({ lockout: { ...lockout, limit: 1 } })
    const grown = await policyOf({ lockout: { ...lockout, limit: 1, growth: 1.5, maxLock: '10m' } })
    const locks = async ({ take, wait }: typeof same) => {
      const lengths: number[] = []
      for (let lock = 0; lock < 4; lock++) {
        expect(await take()).toBe('0')
        const lengthMs = Number((await take()).split(': ')[1])
        lengths.push(lengthMs)
        await wait(lengthMs)
      }
      return lengths
    }
    expect(await locks(same)).toEqual([300_000, 300_000, 300_000, 300_000])
    expect(await locks(grown)).toEqual([300_000, 450_000, 600_000, 600_000])
  })

  test('the length of a grown lock is cut to a whole millisecond', async () => {
    const { take, wait } = await policyOf({
      lockout: { limit: 0, window: '7ms', lock: '1001ms', growth: 1.7, maxLock: '1h' },
    })
    for (const lengthMs of [1_001, 1_701, 2_892]) {
      expect(await take()).toBe(`rule0 7ms: ${lengthMs}`)
      await wait(lengthMs - 1)
      expect(await take()).toBe('rule0 7ms: 1')
      await wait(1)
    }
  })
})

describe('calendar', () => {
  test('the period follows the time zone, and all of it comes back at once', async () => {
    const calendar = { limit: 2, cron: '0 0 * * *', timezone: 'Asia/Shanghai' }
    const { take, at, wait } = await policyOf({ calendar })
    await at(Date.UTC(2026, 10, 22, 15, 0)) // 23:00 in Shanghai
    expect(await take()).toBe('1')
    await wait(30 * minute)
    expect(await take()).toBe('0')
    expect(await take()).toBe(`rule0 0 0 * * *: ${30 * minute}`)
    await wait(30 * minute - 1)
    expect(await take()).toBe('rule0 0 0 * * *: 1')
    await wait(1)
    expect(await take(2)).toBe('0')
    expect(await take()).toBe(`rule0 0 0 * * *: ${24 * hour}`)
  })
})

describe('rules together', () => {
  test('all or nothing: what one rule refuses leaves every other as it was', async () => {
    const { take, used } = await policyOf({ sliding: '5 per 1h' }, { fixed: '1 per 60s' })
    expect(await take()).toBe('4 0')
    for (let again = 0; again < 5; again++) expect(await take()).toBe('rule1 60s: 60000')
    expect(await used()).toEqual([1, 1])
  })

  test('of several refusing rules the one with the longest wait is named; of equal ones the first', async () => {
    const longest = await policyOf(
      { sliding: '1 per 60s' },
      { fixed: '1 per 1h' },
      { sliding: '1 per 5m' },
    )
    await longest.take()
    expect(await longest.take()).toBe(`rule1 1h: ${hour}`)
    const equal = await policyOf({ fixed: '1 per 60s' }, { sliding: '1 per 1m' })
    await equal.take()
    expect(await equal.take()).toBe('rule0 60s: 60000')
  })

  test('permits of a rule: each use of the call takes that many from it', async () => {
    const { take, used, wait } = await policyOf(
      { sliding: '5 per 60s', permits: 2 },
      { fixed: '9 per 60s', permits: 3 },
      { sliding: '10 per 60s' },
    )
    expect(await take()).toBe('3 6 9')
    expect(await used()).toEqual([2, 3, 1])
    await wait(1_000)
    expect(await take()).toBe('1 3 8')
    await wait(1_000)
    expect(await take()).toBe('rule0 60s: 58000')
    expect(await take(2)).toBe('rule0 60s: 59000')
  })

  test('observe: would have refused, refuses nothing, and takes nothing while it is full', async () => {
    const { take, used, nextInMs, wait } = await policyOf(
      { sliding: '1 per 1h', mode: 'observe' },
      { sliding: '3 per 60s' },
    )
    expect(await nextInMs()).toBe(0)
    expect(await take()).toBe('0 1')
    expect(await take()).toBe('0 0')
    expect(await used()).toEqual([1, 3])
    expect(await take()).toBe('rule1 60s: 60000')
    await wait(hour)
    expect(await take()).toBe('0 2')
  })

  test('observe: a lock that only would have held ends as any, and the try that began it is no use', async () => {
    const lockout = { limit: 1, window: '10m', lock: '5m' }
    const { take, used, wait } = await policyOf({ lockout, mode: 'observe' })
    for (let tries = 0; tries < 3; tries++) expect(await take()).toBe('0')
    expect(await used()).toEqual([1])
    await wait(5 * minute)
    expect(await used()).toEqual([0])
  })

  test('observe: what it would have refused is reported, with policy and rule, and nothing else is', async () => {
    const told: string[] = []
    const limiter = createLimiter({
      policies: {
        p: [
          { name: 'watched', key: '{u}', sliding: '1 per 1h', mode: 'observe' },
          { name: 'held', key: '{u}', sliding: '2 per 1h' },
        ],
      },
      onObserved: ({ policy, rule }) => told.push(`observed ${policy} ${rule}`),
      onRefused: ({ policy, rule }) => told.push(`refused ${policy} ${rule}`),
    })
    await limiter.acquire('p', u)
    expect(told).toEqual([])
    await limiter.acquire('p', u)
    expect(told).toEqual(['observed p watched'])
    await limiter.acquire('p', u)
    expect(told).toEqual(['observed p watched', 'refused p held'])
    limiter.close()
  })

  test('subjects, rules and policies count apart, also where their values would run together', async () => {
    const rule = { name: 'r', key: '{a}:{b}', sliding: '1 per 1h' }
    const { ask } = await bothEngines({ p: [rule], q: [rule, { ...rule, name: 's', key: 'x{a}' }] })
    const admitted = async (policy: string, a: string, b: string) =>
      (await ask((limiter) => limiter.acquire(policy, { a, b }))).admitted
    expect(await admitted('p', 'x', 'y')).toBe(true)
    expect(await admitted('p', 'x', 'y')).toBe(false)
    expect(await admitted('p', 'y', 'x')).toBe(true)
    expect(await admitted('p', 'x:y', 'z')).toBe(true)
    expect(await admitted('p', 'x', 'y:z')).toBe(true)
    expect(await admitted('p', '', 'x')).toBe(true)
    expect(await admitted('p', 'x', '')).toBe(true)
    expect(await admitted('q', 'x', 'y')).toBe(true)
  })
})

describe('when the same request would be admitted again', () => {
  test('at once while there is room for another like it, else when enough has left', async () => {
    const { nextInMs, wait } = await policyOf({ sliding: '3 per 60s' }, { fixed: '10 per 5m' })
    expect(await nextInMs()).toBe(0)
    await wait(1_000)
    expect(await nextInMs()).toBe(0)
    await wait(1_000)
    expect(await nextInMs()).toBe(58_000)
    await wait(58_000)
    expect(await nextInMs()).toBe(1_000)
  })

  test('for as many permits as were taken', async () => {
    const { nextInMs } = await policyOf({ sliding: '5 per 60s' })
    expect(await nextInMs(3)).toBe(60_000)
    expect(await nextInMs(1)).toBe(0)
  })
})

describe('requests by id', () => {
  test('the same id again is answered as before and takes nothing; a refusal is decided anew', async () => {
    const { take, used, wait } = await policyOf({ sliding: '2 per 60s' })
    expect(await take(1, 'a')).toBe('1')
    expect(await take(1, 'a')).toBe('1')
    expect(await used()).toEqual([1])
    await take(1, 'b')
    expect(await take(1, 'c')).toBe('rule0 60s: 60000')
    expect(await take(1, 'b')).toBe('0')
    await wait(minute)
    expect(await take(1, 'c')).toBe('1')
  })

  test('release gives back what that request took, once, and nothing of others', async () => {
    const { take, used, release } = await policyOf(
      { sliding: '9 per 60s', permits: 2 },
      { fixed: '9 per 60s' },
      { lockout: { limit: 9, window: '1m', lock: '5m' } },
    )
    await take(2, 'a')
    await take(1, 'b')
    expect(await used()).toEqual([6, 3, 3])
    expect(await release('nothing')).toBe(false)
    expect(await release('a')).toBe(true)
    expect(await used()).toEqual([2, 1, 1])
    expect(await release('a')).toBe(false)
    expect(await used()).toEqual([2, 1, 1])
    // A use that was given back may be taken again under the same id.
    await take(1, 'a')
    expect(await used()).toEqual([4, 2, 2])
  })

  test('taken and given back over many windows: all is left each time, also of a use that has left meanwhile', async () => {
    const { take, used, release, wait } = await policyOf(
      { sliding: '10 per 1s' },
      { fixed: '10 per 1s' },
      { sliding: '200 per 1s' },
      { bucket: { rate: '10 per 1s', burst: 10 } },
    )
    for (let call = 0; call < 30; call++) {
      await take(4, `call ${call}`)
      expect(await release(`call ${call}`)).toBe(true)
      expect(await used()).toEqual([0, 0, 0, 0])
      await wait(100)
    }
    await take(4, 'late')
    await wait(5_000)
    await release('late')
    expect(await take(10)).toBe('0 0 190 0')
  })

  test('release of named rules leaves the others', async () => {
    const { take, used, release } = await policyOf({ sliding: '9 per 60s' }, { fixed: '9 per 60s' })
    await take(2, 'a')
    expect(await release('a', ['rule1'])).toBe(true)
    expect(await used()).toEqual([2, 0])
  })

  test('release after the use has left, or after a reset, takes nothing from what came later', async () => {
    const { take, used, release, reset, wait } = await policyOf(
      { sliding: '3 per 60s' },
      { fixed: '3 per 60s' },
    )
    await take(1, 'a')
    await wait(minute)
    await take(1, 'b')
    await release('a')
    expect(await used()).toEqual([1, 1])
    await wait(1)
    await reset()
    await wait(1)
    await take(1, 'c')
    await release('b')
    expect(await used()).toEqual([1, 1])
  })

  test('release of an earlier use: later ones keep number and time, and one that has left takes nothing from them', async () => {
    const { take, used, release, reset, wait } = await policyOf({ sliding: '6 per 60s' })
    await reset()
    await wait(1)
    await take(3, 'a')
    await wait(1_000)
    await take(2, 'b')
    await wait(1_000)
    await take(1, 'c')
    await release('a')
    expect(await used()).toEqual([3])
    await wait(58_999)
    expect(await used()).toEqual([3])
    await wait(1)
    expect(await used()).toEqual([1])
    await take(2, 'd')
    await release('b')
    expect(await used()).toEqual([3])
    expect(await take(3)).toBe('0')
    expect(await take()).toBe('rule0 60s: 1000')
  })

  test('release of what a reset has forgotten takes nothing from what came in the same millisecond', async () => {
    const { take, used, release, reset } = await policyOf(
      { sliding: '3 per 60s' },
      { fixed: '3 per 60s' },
    )
    await take(1, 'a')
    await reset()
    await take(1)
    await release('a')
    expect(await used()).toEqual([1, 1])
  })

  test('a fixed window whose every use was given back begins anew with the next', async () => {
    const { take, release, wait } = await policyOf({ fixed: '1 per 60s' })
    await take(1, 'a')
    await wait(30_000)
    await release('a')
    await take(1, 'b')
    expect(await take()).toBe('rule0 60s: 60000')
  })
})

describe('peek, reset, policies', () => {
  test('peek returns what every window has and when it is free, and takes nothing', async () => {
    const { take, peek, wait } = await policyOf(
      { sliding: ['2 per 60s', '5 per 1h'] },
      { fixed: '4 per 5m', permits: 2 },
    )
    await take()
    await wait(10_000)
    await take()
    const expected = [
      {
        rule: 'rule0',
        kind: 'sliding',
        window: '60s',
        limit: 2,
        used: 2,
        left: 0,
        resetsInMs: 60_000,
        nextInMs: 50_000,
      },
      // `nextInMs`: the time at which the whole rule admits another use.
      { window: '1h', limit: 5, used: 2, left: 3, resetsInMs: hour, nextInMs: 50_000 },
      {
        rule: 'rule1',
        kind: 'fixed',
        window: '5m',
        limit: 4,
        used: 4,
        left: 0,
        resetsInMs: 290_000,
        nextInMs: 290_000,
      },
    ]
    expect(await peek()).toMatchObject(expected)
    expect(await peek()).toMatchObject(expected)
  })

  test('peek: nextInMs belongs to the rule also where its windows have separate values', async () => {
    const { take, peek } = await policyOf({ fixed: ['1 per 1h', '5 per 1m'] })
    await take()
    expect(await peek()).toMatchObject([
      { window: '1h', nextInMs: hour },
      { window: '1m', nextInMs: hour },
    ])
  })

  test('peek of a subject without uses: nothing used, all left, free now', async () => {
    const { peek } = await policyOf(
      { sliding: '2 per 60s' },
      { lockout: { limit: 1, window: '1m', lock: '1h' } },
    )
    expect(await peek()).toMatchObject([
      { used: 0, left: 2, resetsInMs: 0, nextInMs: 0 },
      { used: 0, left: 1, resetsInMs: 0, nextInMs: 0 },
    ])
    expect((await peek())[1]).not.toHaveProperty('lockedForMs')
  })

  test('peek: full rules in mode observe and challenge make no caller wait, and are no locks', async () => {
    const lockout = { limit: 1, window: '1m', lock: '1h' }
    const { take, peek } = await policyOf(
      { sliding: '2 per 60s', mode: 'observe' },
      { lockout, mode: 'observe' },
      { lockout, mode: 'challenge' },
    )
    await take()
    expect(await take()).toBe('rule2 1m: 3600000')
    expect((await peek()).map(({ nextInMs }) => nextInMs)).toEqual([0, 0, 0])
    expect((await peek()).filter(({ lockedForMs }) => lockedForMs)).toEqual([])
  })

  test('reset forgets this subject alone, and with a name that rule alone', async () => {
    const { take, used, reset } = await policyOf({ sliding: '9 per 60s' }, { fixed: '9 per 60s' })
    const other = { u: 'other' }
    await take(2)
    await take(2, undefined, other)
    await reset('rule1')
    expect(await used()).toEqual([2, 0])
    await take()
    await reset()
    expect(await used()).toEqual([0, 0])
    expect(await used(other)).toEqual([2, 2])
  })

  test('a lock of hours holds to its end', async () => {
    const { take, peek, wait } = await policyOf({ lockout: { limit: 1, window: '1m', lock: '3h' } })
    await take()
    expect(await take()).toBe('rule0 1m: 10800000')
    expect(await take()).toBe('rule0 1m: 10800000')
    await wait(hour)
    expect(await peek()).toMatchObject([{ left: 0, lockedForMs: 2 * hour }])
  })

  test('peek does not count what a clock hours ahead has written', async () => {
    const { take, used, at, now } = await policyOf({ sliding: '2 per 6h' })
    const start = now()
    await at(start + 3 * hour)
    await take()
    expect(await used()).toEqual([1])
    await at(start)
    expect(await used()).toEqual([0])
  })

  test('reset lifts a lock and forgets how long the next would be', async () => {
    const { take, reset } = await policyOf({
      lockout: { limit: 1, window: '1m', lock: '5m', growth: 2, maxLock: '1h' },
    })
    await take()
    expect(await take()).toBe('rule0 1m: 300000')
    await reset()
    expect(await take()).toBe('0')
    expect(await take()).toBe('rule0 1m: 300000')
  })

  const setTo =
    (sliding: string, name = 'r') =>
    (limiter: Limiter) =>
      limiter.setPolicies({ p: [{ name, key: '{u}', sliding }] })

  test('setPolicies: a new limit holds from the next call on, and what was used counts on under its name', async () => {
    const { engines, ask } = await bothEngines({
      p: [{ name: 'r', key: '{u}', sliding: '2 per 1h' }],
    })
    const each = (change: (limiter: Limiter) => void) => Object.values(engines).forEach(change)
    const take = () => ask((limiter) => limiter.acquire('p', u))
    await take()
    await take()
    expect((await take()).admitted).toBe(false)
    each(setTo('4 per 1h'))
    expect(await take()).toMatchObject({ remaining: [{ rule: 'r', window: '1h', left: 1 }] })
    each(setTo('1 per 1h'))
    expect((await take()).admitted).toBe(false)
    each(setTo('4 per 1h', 'renamed'))
    expect(await take()).toMatchObject({ remaining: [{ rule: 'renamed', left: 3 }] })
    expect(() =>
      each((limiter) => limiter.setPolicies({ p: [{ name: 'r', key: '{u}' } as never] })),
    ).toThrow(InvalidPolicies)
    expect(await take()).toMatchObject({ remaining: [{ rule: 'renamed', left: 2 }] })
  })

  test.each<[before: Partial<Rule>, after: Partial<Rule>]>([
    [{ sliding: '2 per 1m' }, { sliding: '2 per 1h' }],
    [{ fixed: '2 per 1m' }, { fixed: '2 per 1h' }],
    [{ bucket: { rate: '2 per 1m', burst: 2 } }, { bucket: { rate: '2 per 1h', burst: 2 } }],
    [
      { calendar: { limit: 2, cron: '* * * * *', timezone: 'UTC' } },
      { calendar: { limit: 2, cron: '0 * * * *', timezone: 'UTC' } },
    ],
    [
      { lockout: { limit: 2, window: '1m', lock: '1m' } },
      { lockout: { limit: 2, window: '1h', lock: '1h' } },
    ],
  ])(
    'a reload from %j to slower terms never admits more than counts that begin with it',
    async (before, after) => {
      const { engines, take, wait } = await policyOf(before)
      const { engines: fresh, ...later } = await bothEngines({ p: [] })
      const rules = { p: [{ name: 'rule0', key: '{u}', ...after }] } as RawPolicies
      await take()
      await take()
      const all = [...Object.values(engines), ...Object.values(fresh)]
      for (const limiter of all) limiter.setPolicies(rules)
      const admitted = all.map(() => 0)
      for (let asked = 0; asked < 130; asked++) {
        const answers = await Promise.all(all.map((limiter) => limiter.acquire('p', u)))
        answers.forEach((answer, of) => {
          if (answer.admitted) admitted[of] = (admitted[of] ?? 0) + 1
        })
        const [overRedis = 0, inProcess = 0, freshlyCounted = 0] = admitted
        if (asked === 0) expect(overRedis + inProcess).toBe(0)
        expect(inProcess).toBeLessThanOrEqual(overRedis)
        expect(overRedis).toBeLessThanOrEqual(freshlyCounted)
        await Promise.all([wait(minute), later.wait(minute)])
      }
      expect(admitted.every((count) => count >= 4)).toBe(true)
    },
  )

  test('a policy or rule that is unknown, a field that is missing, permits that can never be: an error, and nothing taken', async () => {
    const { engines, used } = await policyOf({ sliding: '3 per 60s' })
    for (const limiter of Object.values(engines)) {
      for (const permits of [0, -1, 1.5, 4, Number.NaN]) {
        await expect(limiter.acquire('p', u, { permits })).rejects.toThrow(RangeError)
      }
      await expect(limiter.acquire('nothing', u)).rejects.toThrow(/nothing/)
      await expect(limiter.acquire('p', {})).rejects.toThrow(/\bu\b/)
      await expect(limiter.peek('p', {})).rejects.toThrow(/\bu\b/)
      await expect(limiter.reset('p', {})).rejects.toThrow(/\bu\b/)
      const unknownRule = { name: 'UnknownRule', policy: 'p', rule: 'nothing' }
      await expect(limiter.peek('p', u, 'nothing')).rejects.toMatchObject(unknownRule)
      await expect(limiter.reset('p', u, 'nothing')).rejects.toMatchObject(unknownRule)
    }
    expect(await used()).toEqual([0])
  })

  test('per-client: each process has the limit for itself', async () => {
    const { client: redis, prefix: keyPrefix } = await bothEngines({})
    const policies = {
      p: [
        { name: 'own', key: '{u}', sliding: '1 per 1h', scope: 'per-client' },
        { name: 'all', key: '{u}', sliding: '3 per 1h' },
      ],
    } as RawPolicies
    const [one, other] = ['one', 'other'].map((clientId) =>
      createLimiter({ policies, redis, keyPrefix, clientId, deadlineMs: 2_000 }),
    ) as unknown as [Limiter, Limiter]
    expect(await one.acquire('p', u)).toMatchObject({ remaining: [{ left: 0 }, { left: 2 }] })
    expect(await other.acquire('p', u)).toMatchObject({ remaining: [{ left: 0 }, { left: 1 }] })
    expect(await one.acquire('p', u)).toMatchObject({ rule: 'own' })
    one.close()
    other.close()
  })

  test('acquireWithin: waits for what comes free in time, and returns at once where it does not', async () => {
    const limiter = createLimiter({
      policies: {
        p: [{ name: 'r', key: '{u}', sliding: '1 per 300ms' }],
        hourly: [{ name: 'r', key: '{u}', sliding: '1 per 1h' }],
      },
    })
    const startMs = performance.now()
    expect(await limiter.acquireWithin('p', u, 1_000)).toMatchObject({ admitted: true })
    expect(await limiter.acquireWithin('p', u, 50_000)).toMatchObject({ admitted: true })
    expect(performance.now() - startMs).toBeGreaterThan(290)
    await limiter.acquire('hourly', u)
    const refusedMs = performance.now()
    expect(await limiter.acquireWithin('hourly', u, 60_000)).toMatchObject({ admitted: false })
    expect(performance.now() - refusedMs).toBeLessThan(15_000)
    limiter.close()
  })
})

test('five kinds of rules in one policy: a call is one command to Redis, admitted or refused', async () => {
  const rules: Rule[] = [
    { name: 'a', key: '{u}', sliding: ['2 per 60s', '5 per 1h'] },
    { name: 'b', key: 'all', fixed: '9 per 60s' },
    { name: 'c', key: '{u}:c', calendar: { limit: 9, cron: '0 0 * * *', timezone: 'UTC' } },
    { name: 'd', key: '{u}:d', lockout: { limit: 9, window: '5m', lock: '15m' } },
    { name: 'e', key: '{u}:e', bucket: { rate: '9 per 1m', burst: 9 } },
  ]
  const { limiter, redis } = await realLimiter({ p: rules }, { rememberRefusalsMs: 0 })
  // The first call may have to send the script.
  await limiter.acquire('p', u)
  const sent = vi.spyOn(redis, 'sendCommand')
  expect(await limiter.acquire('p', u)).toMatchObject({ admitted: true })
  expect(sent).toHaveBeenCalledTimes(1)
  expect(await limiter.acquire('p', u)).toMatchObject({ admitted: false, rule: 'a' })
  expect(sent).toHaveBeenCalledTimes(2)
})
