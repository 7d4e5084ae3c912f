import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { repeat } from '../../src/base/repeat.ts'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

test('the first pass begins within its time, the next after the pause that the pass asked for, more or less a quarter', async () => {
  for (const random of [0, 0.999_999]) {
    vi.spyOn(Math, 'random').mockReturnValue(random)
    const beganAtMs: number[] = []
    const start = Date.now()
    const repetition = repeat(async () => {
      beganAtMs.push(Date.now() - start)
      return 1_000
    }, 400)
    await vi.advanceTimersByTimeAsync(2_000)
    await repetition.stop()
    const [first = Number.NaN, second = Number.NaN] = beganAtMs
    expect(first).toBeCloseTo(400 * random, -1)
    expect(second - first).toBeCloseTo(1_000 * (0.75 + random / 2), -1)
  }
})

test('a pass that takes longer than its pause is never beside another', async () => {
  let underWay = 0
  let most = 0
  let passes = 0
  const repetition = repeat(async () => {
    most = Math.max(most, ++underWay)
    passes += 1
    await new Promise((resolve) => setTimeout(resolve, 500))
    underWay -= 1
    return 10
  }, 0)
  await vi.advanceTimersByTimeAsync(5_000)
  await Promise.all([repetition.stop(), vi.advanceTimersByTimeAsync(500)])
  expect(passes).toBeGreaterThan(5)
  expect(most).toBe(1)
})

test('stop aborts the signal, waits for the pass under way, and no other begins', async () => {
  let passes = 0
  let isEnded = false
  const repetition = repeat(async (signal) => {
    passes += 1
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    await new Promise((resolve) => setTimeout(resolve, 100))
    isEnded = true
    return 0
  }, 0)
  await vi.advanceTimersByTimeAsync(1)
  const stopped = repetition.stop().then(() => isEnded)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(await stopped).toBe(true)
  expect(passes).toBe(1)
})

test('stopped before its first pass, none begins', async () => {
  let passes = 0
  const repetition = repeat(async () => {
    passes += 1
    return 0
  }, 100)
  await repetition.stop()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(passes).toBe(0)
})
