import { describe, expect, test, vi } from 'vitest'
import { createTurns } from '../../src/base/turns.ts'
import { releaseLater } from '../tools/release.ts'

/** Work that lasts until the test ends it, and a list of the begun work. */
function open(options: Partial<Parameters<typeof createTurns>[0]> = {}) {
  const inTurn = createTurns({ maxUnderWay: 2, maxWaiting: 3, maxWaitMs: 5_000, ...options })
  const begun: string[] = []
  const ends: (() => void)[] = []
  const work = (app: string, name: string, caller = 'a') =>
    inTurn(
      { app, caller },
      async () => {
        begun.push(name)
        await new Promise<void>((resolve) => ends.push(resolve))
        return name
      },
      () => 'refused',
    )
  const tick = () => new Promise((resolve) => setImmediate(resolve))
  return {
    begun,
    work,
    async endOne() {
      await tick()
      ends.shift()?.()
      await tick()
    },
  }
}

test('a limited number at a time; another app waits behind one request of a flood and not behind all', async () => {
  const { begun, work, endOne } = open()
  const flood = Array.from({ length: 7 }, (_, at) => work('flood', `flood-${at}`))
  const others = [work('shop', 'shop-0'), work('shop', 'shop-1'), work('bank', 'bank-0')]
  await new Promise((resolve) => setImmediate(resolve))
  expect(begun).toEqual(['flood-0', 'flood-1'])
  for (let count = 0; count < 10; count++) await endOne()
  expect(begun.slice(2)).toEqual(['flood-2', 'shop-0', 'bank-0', 'flood-3', 'shop-1', 'flood-4'])
  expect((await Promise.all(flood)).filter((result) => result === 'refused')).toHaveLength(2)
  expect(await Promise.all(others)).toEqual(['shop-0', 'shop-1', 'bank-0'])
})

test('callers of one app take turns: a flood of one delays its own requests', async () => {
  const { begun, work, endOne } = open({ maxUnderWay: 1, maxWaiting: 10 })
  const flood = Array.from({ length: 5 }, (_, at) => work('shop', `flood-${at}`, 'flood'))
  const others = [
    work('shop', 'ada-0', 'ada'),
    work('shop', 'ada-1', 'ada'),
    work('shop', 'bob-0', 'bob'),
    work('bank', 'bank-0', 'flood'),
  ]
  for (let count = 0; count < 9; count++) await endOne()
  expect(begun).toEqual([
    ...['flood-0', 'flood-1', 'bank-0', 'ada-0', 'bob-0'],
    ...['flood-2', 'ada-1', 'flood-3', 'flood-4'],
  ])
  expect(await Promise.all([...flood, ...others])).not.toContain('refused')
})

test('a full room: a caller with fewer takes the place of the newest of the caller with most, and of no other', async () => {
  const { begun, work, endOne } = open({ maxUnderWay: 1, maxWaiting: 4 })
  const flood = Array.from({ length: 5 }, (_, at) => work('shop', `flood-${at}`, 'flood'))
  const late = work('shop', 'flood-5', 'flood')
  const ada = [work('shop', 'ada-0', 'ada'), work('shop', 'ada-1', 'ada')]
  // Two each, so neither has more than a third request would have.
  const third = work('shop', 'ada-2', 'ada')
  expect(await late).toBe('refused')
  expect(await third).toBe('refused')
  for (let count = 0; count < 5; count++) await endOne()
  expect(begun).toEqual(['flood-0', 'flood-1', 'ada-0', 'flood-2', 'ada-1'])
  expect(await Promise.all(ada)).toEqual(['ada-0', 'ada-1'])
  expect(await Promise.all(flood)).toEqual([
    ...['flood-0', 'flood-1', 'flood-2', 'refused', 'refused'],
  ])
})

test('a full room: the place is one of the caller with most, also if another has waited longer', async () => {
  const { begun, work, endOne } = open({ maxUnderWay: 1, maxWaiting: 4 })
  const ada = [work('shop', 'ada-0', 'ada'), work('shop', 'ada-1', 'ada')]
  const flood = Array.from({ length: 3 }, (_, at) => work('shop', `flood-${at}`, 'flood'))
  const bob = work('shop', 'bob-0', 'bob')
  for (let count = 0; count < 5; count++) await endOne()
  expect(begun).toEqual(['ada-0', 'ada-1', 'flood-0', 'bob-0', 'flood-1'])
  expect(await Promise.all([...ada, ...flood, bob])).toEqual([
    ...['ada-0', 'ada-1', 'flood-0', 'flood-1', 'refused', 'bob-0'],
  ])
})

test('whether a request would be refused is known before it asks: by app, caller and the time before', async () => {
  const inTurn = createTurns({ maxUnderWay: 1, maxWaiting: 2, maxExpectedMs: 500 })
  const ends: (() => void)[] = []
  const ask = (app: string, caller: string) =>
    void inTurn(
      { app, caller },
      () => new Promise<void>((resolve) => ends.push(resolve)),
      () => {},
    )
  const asked = [
    ['shop', 'a', 0],
    ['shop', 'b', 0],
    ['bank', 'a', 0],
    ['bank', 'a', 501],
  ] as const
  const refused = () =>
    asked
      .filter(([app, caller, waitedMs]) => inTurn.wouldRefuse({ app, caller, waitedMs }))
      .map(([app, caller, waitedMs]) => `${app} ${caller} ${waitedMs}`)
  expect(refused()).toEqual([])
  ask('shop', 'a')
  expect(refused()).toEqual(['bank a 501'])
  expect(inTurn.hasWaiting()).toBe(false)
  ask('shop', 'a')
  expect(inTurn.hasWaiting()).toBe(true)
  ask('shop', 'a')
  // Another caller would take the place of the newest request.
  expect(refused()).toEqual(['shop a 0', 'bank a 501'])
  ask('shop', 'b')
  expect(refused()).toEqual(['shop a 0', 'shop b 0', 'bank a 501'])
  for (let count = 0; count < 3; count++) {
    await new Promise((resolve) => setImmediate(resolve))
    ends[count]?.()
  }
  await new Promise((resolve) => setImmediate(resolve))
  expect(refused()).toEqual([])
})

test('a full room of another app takes no place', async () => {
  const { work, endOne } = open({ maxUnderWay: 1, maxWaiting: 1 })
  const first = [work('shop', 'shop-0'), work('shop', 'shop-1')]
  const other = work('bank', 'bank-0')
  expect(await work('shop', 'shop-2', 'b')).toBe('refused')
  for (let count = 0; count < 3; count++) await endOne()
  expect(await Promise.all([...first, other])).toEqual(['shop-0', 'shop-1', 'bank-0'])
})

test('a request without a turn in time is refused, and its work never starts', async () => {
  const { begun, work, endOne } = open({ maxUnderWay: 1, maxWaitMs: 20 })
  const first = work('shop', 'first')
  expect(await work('shop', 'late')).toBe('refused')
  await endOne()
  expect(await first).toBe('first')
  const next = work('shop', 'next')
  await endOne()
  expect(await next).toBe('next')
  expect(begun).toEqual(['first', 'next'])
})

test('work that fails ends its turn', async () => {
  const inTurn = createTurns({ maxUnderWay: 1, maxWaiting: 1, maxWaitMs: 20 })
  const fail = () =>
    inTurn(
      { app: 'shop', caller: 'a' },
      () => Promise.reject(new Error('broken')),
      () => 'refused',
    )
  await expect(fail()).rejects.toThrow('broken')
  await expect(fail()).rejects.toThrow('broken')
})

describe('more requests than can be answered in time', () => {
  /** Each work takes 10 ms of a fake clock, one at a time: a hundred a second. */
  function openSlow(options: { maxStandingMs?: number } = {}) {
    vi.useFakeTimers()
    releaseLater(() => vi.useRealTimers())
    const inTurn = createTurns({
      ...{ maxUnderWay: 1, maxWaitMs: 1_000, maxExpectedMs: 500 },
      ...options,
    })
    const tookMs: Record<string, number[]> = {}
    const refusedAfterMs: Record<string, number[]> = {}
    const ask = async (app: string, caller: string, waitedMs = 0) => {
      const startMs = performance.now()
      const note = (list: Record<string, number[]>) => {
        list[caller] ??= []
        list[caller].push(performance.now() - startMs + waitedMs)
      }
      await inTurn(
        { app, caller, waitedMs },
        async () => {
          await new Promise((resolve) => setTimeout(resolve, 10))
          note(tookMs)
        },
        () => note(refusedAfterMs),
      )
    }
    return { ask, tookMs, refusedAfterMs }
  }

  /** Ten seconds of twice the possible number, from one caller. */
  async function flood(options: { maxStandingMs?: number }) {
    const { ask, tookMs, refusedAfterMs } = openSlow(options)
    for (let count = 0; count < 2_000; count++) {
      void ask('shop', 'a')
      await vi.advanceTimersByTimeAsync(5)
    }
    await vi.advanceTimersByTimeAsync(5_000)
    const [answered = [], refused = []] = [tookMs.a, refusedAfterMs.a]
    expect(answered.length + refused.length).toBe(2_000)
    expect(answered.length).toBeGreaterThan(1_000)
    return { ask, answered, refused }
  }

  test('the rest is refused at once, as many as possible are answered, and the others in time', async () => {
    const { answered, refused } = await flood({})
    expect(Math.max(...answered)).toBeLessThan(600)
    expect(Math.max(...refused)).toBe(0)
  })

  test('requests wait without a break for longer than a burst lasts → later ones wait less, and as many are answered', async () => {
    const { ask, answered } = await flood({ maxStandingMs: 100 })
    expect(Math.max(...answered.slice(0, 100))).toBeGreaterThan(200)
    expect(Math.max(...answered.slice(200))).toBeLessThan(130)
    // Nothing waits any more, so the next burst may wait as the first one.
    const before = answered.length
    for (let count = 0; count < 40; count++) void ask('shop', 'a')
    await vi.advanceTimersByTimeAsync(1_000)
    expect(answered.length - before).toBe(40)
  })

  test('a caller of few and an app of few lose nothing beside them', async () => {
    const { ask, tookMs, refusedAfterMs } = openSlow()
    for (let count = 0; count < 2_000; count++) {
      void ask('shop', 'flood')
      if (count % 20 === 0) {
        void ask('shop', 'ada')
        void ask('bank', 'bob')
      }
      await vi.advanceTimersByTimeAsync(5)
    }
    await vi.advanceTimersByTimeAsync(5_000)
    for (const caller of ['ada', 'bob']) {
      expect(refusedAfterMs[caller]).toBeUndefined()
      expect(Math.max(...(tookMs[caller] ?? []))).toBeLessThan(60)
    }
  })

  test('the time that a request has waited before counts', async () => {
    const { ask, refusedAfterMs } = openSlow()
    for (let count = 0; count < 40; count++) void ask('shop', 'a')
    await vi.advanceTimersByTimeAsync(100)
    void ask('shop', 'a', 150)
    void ask('shop', 'a', 250)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(refusedAfterMs).toEqual({ a: [250] })
  })
})

test('slow turns long ago: a request waits again, because their rate is no longer known', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  releaseLater(() => void vi.useRealTimers())
  const { work, endOne } = open({ maxUnderWay: 1, maxExpectedMs: 500 })
  const first = ['a', 'b', 'c'].map((name) => work('x', name))
  await endOne()
  vi.advanceTimersByTime(900)
  await endOne()
  expect(await work('x', 'too early')).toBe('refused')
  await endOne()
  expect(await Promise.all(first)).toEqual(['a', 'b', 'c'])
  vi.advanceTimersByTime(60_000)
  const later = ['d', 'e'].map((name) => work('x', name))
  await endOne()
  await endOne()
  expect(await Promise.all(later)).toEqual(['d', 'e'])
})

test('all waiting requests have left, and none came for an hour: the hour is no gap between two turns', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
  releaseLater(() => void vi.useRealTimers())
  const { work, endOne } = open({ maxUnderWay: 1, maxWaitMs: 1_000, maxExpectedMs: 500 })
  const first = ['a', 'b', 'c'].map((name) => work('x', name))
  await endOne()
  vi.advanceTimersByTime(1_000)
  expect(await first[2]).toBe('refused')
  await endOne()
  vi.advanceTimersByTime(3_600_000)
  const later = ['d', 'e', 'f'].map((name) => work('x', name))
  await endOne()
  later.push(work('x', 'g'))
  for (let count = 0; count < 3; count++) await endOne()
  expect(await Promise.all(later)).toEqual(['d', 'e', 'f', 'g'])
})
