import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { createLimiter, type Fields, InvalidOption } from '../../src/limiter/index.ts'

const policies = { p: [{ name: 'r', key: '{u}', sliding: '1 per 1h' }] }

test('in process: of 10,000 subjects no more than maxSubjects are remembered, and most of that many', async () => {
  const limiter = createLimiter({ policies, maxSubjects: 100, clock: () => 1_000 })
  for (let u = 0; u < 10_000; u++) limiter.tryAcquire('p', { u })
  let remembered = 0
  for (let u = 0; u < 10_000; u++) {
    const [window] = await limiter.peek('p', { u })
    remembered += window?.used ?? 0
  }
  expect(remembered).toBeGreaterThanOrEqual(45)
  expect(remembered).toBeLessThanOrEqual(100)
})

test('in process: the counts of a removed rule are freed with it', () => {
  const used = () => {
    globalThis.gc?.()
    return process.memoryUsage().heapUsed
  }
  setFlagsFromString('--expose-gc')
  globalThis.gc ??= runInNewContext('gc')
  const policiesOf = (version: number) => ({
    p: [{ name: `r${version}`, key: '{u}', sliding: '9 per 1h' }],
  })
  const limiter = createLimiter({ policies: policiesOf(0), maxSubjects: 5_000 })
  const fill = (version: number) => {
    limiter.setPolicies(policiesOf(version))
    for (let u = 0; u < 5_000; u++) limiter.tryAcquire('p', { u })
    return used()
  }
  const [before = 0] = [1, 2].map(fill).slice(-1)
  const after = [3, 4, 5, 6, 7, 8, 9, 10].map(fill).at(-1) ?? 0
  // The counts of eight rules would be 8 MB or more.
  expect(after - before).toBeLessThan(4e6)
})

test('in process: a subject that goes on taking outlives a flood of others', () => {
  const open = { p: [{ name: 'r', key: '{u}', sliding: '1000 per 1h' }] }
  const limiter = createLimiter({ policies: open, maxSubjects: 100, clock: () => 1_000 })
  for (let u = 0; u < 600; u++) {
    limiter.tryAcquire('p', { u })
    if (u % 5 === 0) limiter.tryAcquire('p', { u: 'busy' })
  }
  const answer = limiter.tryAcquire('p', { u: 'busy' })
  expect(answer.admitted && answer.remaining[0]?.left).toBe(1_000 - 121)
})

test('in process: room is made also where every subject was used again', async () => {
  const limiter = createLimiter({
    policies: { p: [{ name: 'r', key: '{u}', sliding: '9 per 1h' }] },
    maxSubjects: 20,
    clock: () => 1_000,
  })
  for (let u = 0; u < 40; u++) limiter.tryAcquire('p', { u: u % 20 })
  limiter.tryAcquire('p', { u: 'new' })
  const used = async (u: number | string) => (await limiter.peek('p', { u }))[0]?.used
  expect(await Promise.all([0, 1, 2, 19, 'new'].map(used))).toEqual([0, 0, 2, 2, 1])
})

test('in process: a request id is remembered for its time, and counts anew after it', async () => {
  let nowMs = 1_000
  const limiter = createLimiter({
    policies: { p: [{ name: 'r', key: '{u}', sliding: '9 per 1h' }] },
    rememberRequestsMs: 5_000,
    clock: () => nowMs,
  })
  async function usedAfter(ms: number) {
    nowMs += ms
    await limiter.acquire('p', { u: 'a' }, { requestId: 'r' })
    return (await limiter.peek('p', { u: 'a' }))[0]?.used
  }
  expect([await usedAfter(0), await usedAfter(4_999), await usedAfter(1)]).toEqual([1, 1, 2])
})

test('permits of a field: a use takes the value of the field; what is no whole number above 0 is the caller’s mistake', () => {
  const limiter = createLimiter({
    policies: { p: [{ name: 'spend', key: '{app}', sliding: '100 per 24h', permits: 'price' }] },
  })
  const left = (price: number) => {
    const answer = limiter.tryAcquire('p', { app: 'shop', price })
    return answer.admitted && answer.remaining[0]?.left
  }
  expect([left(60), left(45), left(40), left(1)]).toEqual([40, false, 0, false])
  expect(() => left(0.5)).toThrow('price must be a whole number above 0')
  // Waiting would not help.
  expect(() => left(101)).toThrow('rule spend never has more than 100 permits at once')
  expect(() => limiter.tryAcquire('p', { app: 'shop' })).toThrow('the field price is missing')
})

test('in process: a lock that is tried goes on through a flood of others', () => {
  const login = { p: [{ name: 'r', key: '{u}', lockout: { limit: 1, window: '1h', lock: '1h' } }] }
  const limiter = createLimiter({ policies: login, maxSubjects: 100, clock: () => 1_000 })
  for (let tries = 0; tries < 2; tries++) limiter.tryAcquire('p', { u: 'ada' })
  for (let u = 0; u < 600; u++) {
    limiter.tryAcquire('p', { u })
    if (u % 20 === 0) expect(limiter.tryAcquire('p', { u: 'ada' }).admitted).toBe(false)
  }
})

test('in process: long texts are as quick as others, in fields and in request ids', () => {
  const limiter = createLimiter({ policies })
  const long = 'x'.repeat(20_000)
  const secondsFor = (prefix: string) => {
    const startedAt = process.cpuUsage()
    for (let number = 0; number < 3_000; number++) {
      const options = { requestId: `${prefix}${number}` }
      limiter.tryAcquire('p', { u: `${prefix}${number}` }, options)
    }
    return process.cpuUsage(startedAt).user / 1e6
  }
  // A list would take half a minute.
  expect(secondsFor(long)).toBeLessThan(5)
})

test('close: a waiting caller gets the last refusal, and nothing keeps the process', async () => {
  const limiter = createLimiter({ policies })
  limiter.tryAcquire('p', { u: 'a' })
  const waiting = limiter.acquireWithin('p', { u: 'a' }, 7_200_000)
  limiter.close()
  expect(await waiting).toMatchObject({ admitted: false, rule: 'r' })
})

test('mistakes of callers are errors: no fields, a field of another type, a time-out that is no number', async () => {
  const limiter = createLimiter({ policies })
  const ask = (fields: unknown) => () => limiter.tryAcquire('p', fields as Fields)
  expect(ask(undefined)).toThrow('the field u is missing')
  expect(ask({ u: ['a', 'b'] })).toThrow('the field u must be a text or a number')
  expect(ask({ u: Number.NaN })).toThrow('the field u must be a text or a number')
  await expect(limiter.acquireWithin('p', { u: 1 }, Number.NaN)).rejects.toThrow(InvalidOption)
})

test('a clock may have fractions; what is no time at all is an error, not taken for no limit', () => {
  let now = 1_000.5
  const limiter = createLimiter({ policies, clock: () => now })
  expect(limiter.tryAcquire('p', { u: 1 })).toMatchObject({ admitted: true })
  now += 0.7
  const refusal = limiter.tryAcquire('p', { u: 1 })
  if (refusal.admitted) expect.unreachable('the second of one')
  expect(refusal).toMatchObject({ rule: 'r', retryAfterMs: expect.toSatisfy(Number.isInteger) })
  for (now of [Number.NaN, Number.POSITIVE_INFINITY, -1]) {
    expect(() => limiter.tryAcquire('p', { u: 1 })).toThrow(InvalidOption)
  }
})

test('a memory of requests that is no time is an error at creation', () => {
  for (const rememberRequestsMs of [
    0,
    -1,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    '5m' as never,
  ]) {
    expect(() => createLimiter({ policies, rememberRequestsMs })).toThrow(InvalidOption)
  }
})

test('a calendar that never fires again goes on with its last period', () => {
  const cron = '2027-01-01T00:00:00'
  const clock = () => Date.UTC(2027, 5)
  const limiter = createLimiter({
    policies: { p: [{ name: 'r', key: 'all', calendar: { limit: 1, cron, timezone: 'UTC' } }] },
    clock,
  })
  expect(limiter.tryAcquire('p', {})).toMatchObject({ admitted: true })
  expect(limiter.tryAcquire('p', {})).toMatchObject({ admitted: false, rule: 'r', window: cron })
})
