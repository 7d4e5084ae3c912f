import { describe, expect, test } from 'vitest'
import { createLimiter, type RawPolicies } from '../../src/limiter/index.ts'
import { bothEngines, realLimiter } from './both-engines.ts'

const policies = {
  provider: [{ name: 'pace', key: '{name}', sliding: '5 per 1s' }],
  hourly: [{ name: 'pace', key: '{name}', sliding: '5 per 1h' }],
} satisfies RawPolicies
const fields = { name: 'twilio' }

describe('S5: rate limiter of the captcha service: permits, scope, waiting', () => {
  test('permits are taken together or not at all; the wait is until enough of them are free', async () => {
    const { ask, wait } = await bothEngines(policies)
    const acquire = (permits: number) =>
      ask((limiter) => limiter.acquire('provider', fields, { permits }))
    expect(await acquire(2)).toMatchObject({ remaining: [{ left: 3 }] })
    await wait(400)
    expect(await acquire(2)).toMatchObject({ remaining: [{ left: 1 }] })
    expect(await acquire(3)).toMatchObject({ retryAfterMs: 600 })
    expect(await acquire(4)).toMatchObject({ retryAfterMs: 1_000 })
    expect(await acquire(1)).toMatchObject({ remaining: [{ left: 0 }] })
  })

  test('asking for more permits than the rate is an error, also when waiting', async () => {
    const { limiter } = await realLimiter(policies)
    await expect(limiter.acquire('provider', fields, { permits: 6 })).rejects.toThrow(RangeError)
    await expect(limiter.acquireWithin('provider', fields, 100, { permits: 6 })).rejects.toThrow(
      RangeError,
    )
  })

  test('acquireWithin waits for permits up to the time-out, and answers at once when waiting cannot help', async () => {
    const { limiter } = await realLimiter(policies)
    await limiter.acquire('hourly', fields, { permits: 5 })
    const startedAt = performance.now()
    const refused = await limiter.acquireWithin('hourly', fields, 60_000)
    expect(refused.admitted).toBe(false)
    expect(performance.now() - startedAt).toBeLessThan(30_000)
    const takenAt = performance.now()
    await limiter.acquire('provider', fields, { permits: 5 })
    const admitted = await limiter.acquireWithin('provider', fields, 50_000)
    expect(admitted.admitted).toBe(true)
    expect(performance.now() - takenAt).toBeGreaterThanOrEqual(1_000)
    expect(performance.now() - takenAt).toBeLessThan(30_000)
  })

  test('scope: overall is shared by all clients, per-client is each one’s own', async () => {
    const rule = { name: 'pace', key: '{name}', sliding: '2 per 1h' as const }
    const both = { overall: [rule], own: [{ ...rule, scope: 'per-client' as const }] }
    const { limiter: first, redis, prefix } = await realLimiter(both)
    const second = createLimiter({ policies: both, redis, keyPrefix: prefix })
    const admissions = async (policy: string) => {
      let admitted = 0
      for (const limiter of [first, second, first, second, first, second]) {
        if ((await limiter.acquire(policy, fields)).admitted) admitted++
      }
      return admitted
    }
    expect(await admissions('overall')).toBe(2)
    expect(await admissions('own')).toBe(4)
  })

  test('changed rules take effect on reload without losing counts, over the border to large limits and back', async () => {
    const { ask, engines, wait } = await bothEngines(policies)
    const setLimit = (window: string) => {
      const next = { provider: [{ name: 'pace', key: '{name}', sliding: window }] }
      for (const limiter of Object.values(engines)) limiter.setPolicies(next)
    }
    const acquire = (permits = 1) =>
      ask((limiter) => limiter.acquire('provider', fields, { permits }))
    await acquire(3)
    setLimit('10 per 1s')
    expect(await acquire()).toMatchObject({ remaining: [{ left: 6 }] })
    setLimit('1000 per 1s')
    expect(await acquire(500)).toMatchObject({ remaining: [{ left: 496 }] })
    setLimit('10 per 1s')
    expect(await acquire()).toMatchObject({ admitted: false })
    await wait(1_010)
    expect(await acquire()).toMatchObject({ admitted: true })
    setLimit('10 per 30d')
    expect(await acquire(2)).toMatchObject({ remaining: [{ left: 7 }] })
  })

  const day = '200 per 24h'
  const pace = (sliding: string | string[]) => ({ name: 'pace', key: '{name}', sliding })
  const fixed = (windows: string | string[]) => ({ name: 'pace', key: '{name}', fixed: windows })
  test.each([
    ['a rule beside it stays', [pace(day)], [pace(day), { ...pace('5 per 1m'), name: 'few' }], 3],
    ['another large window stays', [pace(['5 per 1m', day])], [pace([day, '900 per 7d'])], 3],
    ['larger windows stays', [pace('100 per 24h')], [pace(['100 per 24h', '900 per 7d'])], 3],
    ['a smaller window begins anew', [pace(day)], [pace(['5 per 1m', day])], 0],
    ['no other window begins anew', [pace([day, '900 per 7d'])], [pace(day)], 0],
    ['129 begins anew', [pace(['5 per 1m', '128 per 24h'])], [pace(['5 per 1m', day])], 0],
    ['a longer one begins anew', [fixed(day)], [fixed([day, '900 per 7d'])], 0],
  ])(
    'the count of a day, after a reload to %s, as docs/limiter.md has it',
    async (_, before, after, used) => {
      const { ask, engines } = await bothEngines({ provider: before })
      await ask((limiter) => limiter.acquire('provider', fields, { permits: 3 }))
      for (const limiter of Object.values(engines)) limiter.setPolicies({ provider: after })
      const states = await ask((limiter) => limiter.peek('provider', fields, 'pace'))
      expect(states.find(({ window }) => window === '24h')).toMatchObject({ used })
    },
  )

  test('pacing: with waiting callers the rate is kept and no caller is lost', async () => {
    const { limiter } = await realLimiter({
      provider: [{ name: 'pace', key: '{name}', sliding: '5 per 200ms' }],
    })
    const at: number[] = []
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        const answer = await limiter.acquireWithin('provider', fields, 10_000)
        expect(answer.admitted).toBe(true)
        at.push(performance.now())
      }),
    )
    expect((at.at(-1) as number) - (at[0] as number)).toBeGreaterThanOrEqual(590)
  })
})
