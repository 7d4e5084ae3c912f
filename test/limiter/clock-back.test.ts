/** The clock of Redis steps back: after a fail-over, or when a machine resumes. A wait is never longer than its window or lock. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Decision, parsePolicies } from '../../src/limiter/index.ts'
import { bothEngines } from './both-engines.ts'
import { randomRules } from './random-policies.ts'

const minute = 60_000
const hour = 60 * minute
const u = { u: 'one' }
const waitOf = (decision: Decision) => (decision.admitted ? 0 : decision.retryAfterMs)

async function ruleOf(rule: object) {
  const engines = await bothEngines({ p: [{ name: 'r', key: '{u}', ...rule }] as never })
  return { ...engines, take: () => engines.ask((limiter) => limiter.acquire('p', u)) }
}

describe('back by 20 minutes', () => {
  test.each([
    [{ sliding: '1 per 90s' }, 90_000],
    [{ sliding: ['1 per 90s', '7 per 10m'] }, 90_000],
    [{ fixed: '1 per 90s' }, 90_000],
    [{ bucket: { rate: '1 per 90s', burst: 1 } }, 90_000],
    [{ calendar: { limit: 1, cron: '*/5 * * * *', timezone: 'UTC' } }, 5 * minute],
  ])('%j: the wait is at most the window, and ends after its time', async (rule, windowMs) => {
    const { take, wait } = await ruleOf(rule)
    expect(await take()).toMatchObject({ admitted: true })
    await wait(-20 * minute)
    const waitMs = waitOf(await take())
    expect(waitMs).toBeGreaterThan(0)
    expect(waitMs).toBeLessThanOrEqual(windowMs)
    await wait(waitMs - 1)
    expect(await take()).toMatchObject({ retryAfterMs: 1 })
    await wait(1)
    expect(await take()).toMatchObject({ admitted: true })
  })

  test('a large sliding window: at most the window and the step to which its times are rounded', async () => {
    const { take, wait } = await ruleOf({ sliding: '150 per 128s' })
    for (let uses = 0; uses < 150; uses++) await take()
    await wait(-20 * minute)
    const waitMs = waitOf(await take())
    expect(waitMs).toBeLessThanOrEqual(129_000)
    await wait(waitMs)
    expect(await take()).toMatchObject({ admitted: true })
  })

  test('a lock is at most as long as it was when it began, and the next one grows as usual', async () => {
    const lockout = { limit: 1, window: '1m', lock: '3m', growth: 2, maxLock: '50m' }
    const { take, wait } = await ruleOf({ lockout })
    await take()
    expect(await take()).toMatchObject({ retryAfterMs: 3 * minute })
    await wait(-20 * minute)
    expect(await take()).toMatchObject({ retryAfterMs: 3 * minute })
    await wait(3 * minute)
    expect(await take()).toMatchObject({ admitted: true })
    expect(await take()).toMatchObject({ retryAfterMs: 6 * minute, newLock: { rule: 'r' } })
    await wait(-20 * minute)
    expect(await take()).toMatchObject({ retryAfterMs: 6 * minute })
  })

  test.each([
    { sliding: '2 per 1h' },
    { fixed: '2 per 1h' },
    { bucket: { rate: '1 per 1h', burst: 2 } },
  ])(
    '%j: a release gives back a use that was ahead of the clock, once, before it was corrected or after',
    async (rule) => {
      const { ask, wait } = await ruleOf(rule)
      const take = (requestId: string) => ask((limiter) => limiter.acquire('p', u, { requestId }))
      const release = (requestId: string) => ask((limiter) => limiter.release('p', u, requestId))
      const used = async () => (await ask((limiter) => limiter.peek('p', u)))[0]?.used
      await take('a')
      await take('b')
      await wait(-20 * minute)
      expect(await release('a')).toBe(true)
      expect(await used()).toBe(1)
      expect(await take('c')).toMatchObject({ admitted: true })
      expect(await take('d')).toMatchObject({ admitted: false })
      expect(await release('b')).toBe(true)
      expect(await release('b')).toBe(false)
      expect(await used()).toBe(1)
      expect(await release('c')).toBe(true)
      expect(await used()).toBe(0)
    },
  )

  test('a lockout: earlier tries count from now on, and no other try is admitted', async () => {
    const { take, wait } = await ruleOf({ lockout: { limit: 2, window: '2m', lock: '5m' } })
    await take()
    await wait(-20 * minute)
    expect(await take()).toMatchObject({ remaining: [{ left: 0 }] })
    expect(await take()).toMatchObject({ retryAfterMs: 5 * minute })
  })

  test('what the clock wrote hours ahead is forgotten at first sight, and does not come back when that time comes', async () => {
    const { take, wait } = await ruleOf({ sliding: '2 per 1h' })
    await wait(3 * hour)
    await take()
    await wait(-3 * hour)
    await take()
    await wait(2 * hour + 30 * minute)
    expect(await take()).toMatchObject({ remaining: [{ left: 1 }] })
  })

  test('uses at several times ahead count as uses of now; those before stay as they are', async () => {
    const { take, wait } = await ruleOf({ sliding: '4 per 30m' })
    await take()
    await wait(15 * minute)
    await take()
    await wait(minute)
    await take()
    await wait(-10 * minute)
    expect(await take()).toMatchObject({ remaining: [{ left: 0 }] })
    expect(await take()).toMatchObject({ retryAfterMs: 24 * minute })
    await wait(24 * minute)
    expect(await take()).toMatchObject({ remaining: [{ left: 0 }] })
    expect(await take()).toMatchObject({ retryAfterMs: 6 * minute })
  })
})

/** A wait of a limit of 0 never ends, and one for a calendar month is no wait of a test. */
const rulesOfWaits = randomRules.filter(
  (rules) => !/"0 per|"limit":0|calendar/.test(JSON.stringify(rules)),
)

test('60 random policies with steps back of up to 50 minutes: both engines decide alike, no wait is longer than the longest window or lock, and after it the request is admitted', async () => {
  const policies = fc.sample(rulesOfWaits, { numRuns: 60, seed: 7 })
  const raw = Object.fromEntries(policies.map((rules, at) => [`p${at}`, rules]))
  const parsed = parsePolicies(raw)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
  const { ask, wait } = await bothEngines(raw, undefined, { keepsExpired: true })
  const steps = fc.sample(fc.integer({ min: 0, max: 50 * minute }), { numRuns: 12, seed: 11 })
  const times = fc.sample(fc.integer({ min: 0, max: 40_000 }), { numRuns: 120, seed: 13 })
  for (const [name, rules] of Object.entries(parsed.policies)) {
    const longestMs = Math.max(
      ...rules.flatMap(({ windows, own }) => [
        ...windows.map(({ windowMs }) => windowMs * (1 + 1 / 128) + 1),
        own && 'maxLockMs' in own ? own.maxLockMs : 0,
        own && 'refill' in own ? (own.everyMs * 160) / own.refill + own.everyMs : 0,
      ]),
    )
    const take = () => ask((limiter) => limiter.acquire(name, { subject: 'a' }, { isSolved: true }))
    for (const [round, stepMs] of steps.entries()) {
      for (let call = 0; call < 4; call++) {
        await take()
        await wait(times[(round * 4 + call) % times.length] ?? 0)
      }
      await wait(-stepMs)
      const waitMs = waitOf(await take())
      expect(waitMs, name).toBeLessThanOrEqual(longestMs)
      await wait(waitMs)
      if (waitMs > 0)
        expect(await take(), `${name} ${JSON.stringify(raw[name])}`).toMatchObject({
          admitted: true,
        })
    }
  }
})
