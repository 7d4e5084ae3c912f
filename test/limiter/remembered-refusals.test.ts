import { describe, expect, test, vi } from 'vitest'
import { createLimiter, type Limiter, type RawPolicies } from '../../src/limiter/index.ts'
import {
  type CompiledPolicy,
  compilePolicies,
  type PolicyWindow,
} from '../../src/limiter/policy/compile.ts'
import type { LimiterRedis } from '../../src/limiter/redis/client.ts'
import { createRefusals } from '../../src/limiter/redis/refusals.ts'
import type { RefusedAnswer } from '../../src/limiter/store.ts'
import { realLimiter } from './both-engines.ts'

const policies = { p: [{ name: 'r', key: '{u}', sliding: '1 per 1h' }] }
const u = { u: 'somebody' }

/** A refusal of a rule with one window. */
function refused(waitMs: number, mode?: 'challenge'): RefusedAnswer {
  const policy = compilePolicies({ p: [{ ...policies.p[0], mode }] }).get('p') as CompiledPolicy
  const [window] = policy.windows as [PolicyWindow]
  return { hold: { waitMs, window } }
}
const refusal = refused(500)

function memory(maxSubjects = 100) {
  let nowMs = 1_000
  const refusals = createRefusals({ maxAgeMs: 1_000, maxSubjects, now: () => nowMs })
  return {
    refusals,
    recall: (subject: string, permits: number, isSolved = false) =>
      refusals.find([{ subject, permits }], isSolved),
    at: (ms: number) => {
      nowMs = ms
    },
  }
}

describe('remembered refusals (trap 21)', () => {
  test('a refusal holds no longer than its wait from sending, and names no less than its wait from receiving', () => {
    const { refusals, recall, at } = memory()
    at(1_002)
    const asked = { subject: 's', permits: 1 }
    // Sent at 1,000, received at 1,002.
    refusals.remember(asked, { ...refusal, newLock: refusal.hold }, 1_000)
    at(1_499)
    // Only the remembered refusal began the lock.
    expect(recall('s', 1)).toEqual({ hold: { ...refusal.hold, waitMs: 3 } })
    at(1_500)
    expect(recall('s', 1)).toBeUndefined()
  })

  test('a refusal of an hour is asked again after a second, so a reset elsewhere is seen by then', () => {
    const { refusals, recall, at } = memory()
    refusals.remember({ subject: 's', permits: 1 }, refused(3_600_000), 1_000)
    at(1_999)
    expect(recall('s', 1)).toMatchObject({ hold: { waitMs: 3_599_001 } })
    at(2_000)
    expect(recall('s', 1)).toBeUndefined()
  })

  test('a refusal of three permits decides nothing about one', () => {
    const { refusals, recall } = memory()
    refusals.remember({ subject: 's', permits: 3 }, refusal, 1_000)
    expect(recall('s', 2)).toBeUndefined()
    expect(recall('s', 3)).toBeDefined()
  })

  test('a million subjects leave no more than the bound', () => {
    const { refusals, recall } = memory(100)
    for (let subject = 0; subject < 1_000_000; subject++) {
      refusals.remember({ subject: `s${subject}`, permits: 1 }, refusal, 1_000)
    }
    let held = 0
    for (let subject = 0; subject < 1_000_000; subject++) {
      if (recall(`s${subject}`, 1)) held++
    }
    expect(held).toBeLessThanOrEqual(100)
    expect(held).toBeGreaterThan(0)
  })

  test('repeated refusals do not reach Redis; a reset, a release and new policies drop them at once', async () => {
    const { limiter, redis } = await realLimiter(policies)
    const connection: LimiterRedis = redis
    const calls = vi.spyOn(connection as Required<LimiterRedis>, 'evalshaBuffer')
    const fill = async (requestId: string) => {
      await limiter.acquire('p', u, { requestId })
      await limiter.acquire('p', u)
    }
    await fill('first')
    calls.mockClear()
    for (let asks = 0; asks < 100; asks++) {
      expect(await limiter.acquire('p', u)).toMatchObject({ admitted: false })
    }
    expect(calls).not.toHaveBeenCalled()

    await limiter.reset('p', u)
    expect(await limiter.acquire('p', u)).toMatchObject({ admitted: true })
    await limiter.reset('p', u)
    await fill('second')
    await limiter.release('p', u, 'second')
    expect(await limiter.acquire('p', u)).toMatchObject({ admitted: true })
    await limiter.acquire('p', u)
    limiter.setPolicies({ p: [{ name: 'r', key: '{u}', sliding: '2 per 1h' }] })
    expect(await limiter.acquire('p', u)).toMatchObject({ admitted: true })
  })

  test('refusals are judged by the clock that a test gives, and a clock that gives no time fails', async () => {
    let now = Date.now() + 1_000
    const { limiter } = await realLimiter(
      { p: [{ name: 'r', key: '{u}', sliding: '1 per 100ms' }] },
      { clock: () => now },
    )
    await limiter.acquire('p', u)
    expect(await limiter.acquire('p', u)).toMatchObject({ retryAfterMs: 100 })
    now += 99
    expect(await limiter.acquire('p', u)).toMatchObject({ retryAfterMs: 1 })
    now += 1
    expect(await limiter.acquire('p', u)).toMatchObject({ admitted: true })
    now = Number.NaN
    await expect(limiter.acquire('p', u)).rejects.toMatchObject({ option: 'clock' })
    await expect(limiter.peek('p', u)).rejects.toMatchObject({ option: 'clock' })
  })

  test('of two full rules, the memory answers as Redis: the one that refuses, also if the one that asks for a challenge waits longer', async () => {
    const { limiter } = await realLimiter({
      p: [
        { name: 'hour', key: '{u}', sliding: '1 per 1h' },
        { name: 'day', key: '{ip}', sliding: '1 per 24h', mode: 'challenge' },
      ],
    })
    const from = (name: string, ip: string) => limiter.acquire('p', { u: name, ip })
    await from('ada', 'a')
    await from('bob', 'b')
    // Other callers meet one of the rules each.
    expect(await from('ada', 'c')).toMatchObject({ rule: 'hour' })
    expect(await from('eve', 'b')).toMatchObject({ rule: 'day', challenge: true })
    const both = limiter.recall('p', { u: 'ada', ip: 'b' })
    expect(both).toMatchObject({ rule: 'hour' })
    expect(both).not.toHaveProperty('challenge')
  })

  test('a refusal that asks for a challenge holds until one is solved', () => {
    const { refusals, recall } = memory()
    refusals.remember({ subject: 's', permits: 1 }, refused(500, 'challenge'), 1_000)
    expect(recall('s', 1)).toBeDefined()
    expect(recall('s', 1, true)).toBeUndefined()
  })

  test('a request id asks Redis, because only its caller knows whether it was admitted before; a new one is answered from memory', async () => {
    const { limiter, client } = await realLimiter(policies)
    await limiter.acquire('p', u, { requestId: 'first' })
    expect(await limiter.acquire('p', u)).toMatchObject({ admitted: false })
    expect(await limiter.acquire('p', u, { requestId: 'first' })).toMatchObject({ admitted: true })
    await client.flushdb()
    const asNew = { requestId: 'second', isNewRequest: true }
    expect(await limiter.acquire('p', u, asNew)).toMatchObject({ admitted: false })
    expect(await limiter.acquire('p', u, { requestId: 'second' })).toMatchObject({ admitted: true })
  })

  test('a reset forgets this subject and no other', async () => {
    const { limiter, client } = await realLimiter(policies)
    const other = { u: 'other' }
    for (const fields of [u, other]) {
      await limiter.acquire('p', fields)
      await limiter.acquire('p', fields)
    }
    await limiter.reset('p', u)
    await client.flushdb()
    expect(await limiter.acquire('p', u)).toMatchObject({ admitted: true })
    expect(await limiter.acquire('p', other)).toMatchObject({ admitted: false })
  })

  test.each([
    ['a reset', (limiter: Limiter) => limiter.reset('p', u)],
    ['a release', (limiter: Limiter) => limiter.release('p', u, 'first')],
    [
      'new rules',
      async (limiter: Limiter) =>
        limiter.setPolicies({ p: [{ name: 'r', key: '{u}', sliding: '2 per 1h' }] }),
    ],
  ])('a refusal that was on its way when %s came is not remembered', async (_, change) => {
    const { limiter } = await realLimiter(policies)
    await limiter.acquire('p', u, { requestId: 'first' })
    const asked = limiter.acquire('p', u)
    // Sent at the end of this turn of the event loop, and answered in a later turn.
    await new Promise(setImmediate)
    const [refused] = await Promise.all([asked, change(limiter)])
    expect(refused).toMatchObject({ admitted: false })
    expect(await limiter.acquire('p', u)).toMatchObject({ admitted: true })
  })

  test.each([
    ['a reset', (limiter: Limiter) => limiter.reset('p', u)],
    ['a release', (limiter: Limiter) => limiter.release('p', u, 'first')],
  ])(
    'a refusal that was asked during %s, and answered before it, is not remembered',
    async (_, change) => {
      const { limiter, redis } = await realLimiter(policies)
      const given: LimiterRedis = redis
      const connection = given as Required<LimiterRedis>
      await limiter.acquire('p', u, { requestId: 'first' })
      // The change is under way for as long as the refusal takes.
      const ask = connection.evalshaBuffer.bind(connection)
      let refusal: unknown
      vi.spyOn(connection, 'evalshaBuffer').mockImplementationOnce(async (...command) => {
        refusal = await limiter.acquire('p', u)
        return ask(...command)
      })
      await change(limiter)
      expect(refusal).toMatchObject({ admitted: false })
      expect(await limiter.acquire('p', u)).toMatchObject({ admitted: true })
    },
  )

  test('a reset by another process is seen within the time that refusals are remembered', async () => {
    let nowMs = Date.now()
    const { limiter, redis, prefix } = await realLimiter(policies, {
      rememberRefusalsMs: 200,
      clock: () => nowMs,
    })
    const operator = createLimiter({ policies, redis, keyPrefix: prefix })
    await limiter.acquire('p', u)
    await limiter.acquire('p', u)
    await operator.reset('p', u)
    nowMs += 199
    expect(await limiter.acquire('p', u)).toMatchObject({ admitted: false })
    nowMs += 1
    expect(await limiter.acquire('p', u)).toMatchObject({ admitted: true })
  })

  test('recall: the refusal that is remembered, without an event; nothing before it and after a reset', async () => {
    const events: string[] = []
    const { limiter } = await realLimiter(policies, {
      onAdmitted: ({ policy }) => events.push(`admitted ${policy}`),
      onRefused: ({ rule }) => events.push(`refused ${rule}`),
    })
    expect(limiter.recall('p', u)).toBeUndefined()
    await limiter.acquire('p', u)
    expect(limiter.recall('p', u)).toBeUndefined()
    await limiter.acquire('p', u)
    expect(limiter.recall('p', u)).toMatchObject({ admitted: false, rule: 'r', window: '1h' })
    expect(limiter.recall('p', { u: 'other' })).toBeUndefined()
    // The earlier request with this id may have been admitted.
    expect(limiter.recall('p', u, { requestId: 'earlier' })).toBeUndefined()
    await limiter.reset('p', u)
    expect(limiter.recall('p', u)).toBeUndefined()
    expect(events).toEqual(['admitted p', 'refused r'])
    expect(createLimiter({ policies }).recall('p', u)).toBeUndefined()
  })

  test('a silent call is decided like any, and raises no event', async () => {
    const events: string[] = []
    const told = {
      onAdmitted: () => events.push('admitted'),
      onObserved: () => events.push('observed'),
      onRefused: () => events.push('refused'),
    }
    const observing = { ...policies.p[0], name: 'seen', mode: 'observe' }
    const both = { p: [...policies.p, observing], q: [observing] } as RawPolicies
    for (const limiter of [
      (await realLimiter(both, told)).limiter,
      createLimiter({ policies: both, ...told }),
    ]) {
      for (const admitted of [true, false]) {
        expect(await limiter.acquire('p', u, { isSilent: true })).toMatchObject({ admitted })
        expect(await limiter.acquire('q', u, { isSilent: true })).toMatchObject({ admitted: true })
      }
    }
    expect(events).toEqual([])
  })
})
