import { getEventListeners } from 'node:events'
import { expect, test, vi } from 'vitest'
import { orLate, startDeadline } from '../../src/base/deadline.ts'
import { beBusy } from '../tools/be-busy.ts'
import { testRedis } from '../tools/redis.ts'

const late = () => 'late'

test('startDeadline: cleared, it leaves neither a timer nor a listener at the signal of the caller', () => {
  vi.useFakeTimers()
  const outer = new AbortController().signal
  const deadline = startDeadline(outer, 1_000)
  expect([getEventListeners(outer, 'abort').length, vi.getTimerCount()]).toEqual([1, 1])
  deadline.clear()
  expect([getEventListeners(outer, 'abort').length, vi.getTimerCount()]).toEqual([0, 0])
  vi.useRealTimers()
})

test('orLate: work that takes longer → late, at the time', async () => {
  const startMs = performance.now()
  expect(await orLate(new Promise(() => {}), 50, late)).toBe('late')
  expect(performance.now() - startMs).toBeGreaterThan(45)
})

test('orLate: an answer in any part of the time → no timer is left', async () => {
  vi.useFakeTimers()
  for (let answerMs = 0; answerMs < 50; answerMs += 5) {
    const timers = vi.getTimerCount()
    const answer = new Promise((resolve) => setTimeout(resolve, answerMs, 'answer'))
    const asked = orLate(answer, 50, late)
    // No turn of the event loop until the count, in which other code of this process could set a timer.
    vi.advanceTimersByTime(answerMs)
    expect([answerMs, await asked, vi.getTimerCount()]).toEqual([answerMs, 'answer', timers])
  }
  vi.useRealTimers()
})

test('orLate: this process was busy for longer than the time, and the server must be asked twice → the answer', async () => {
  const { client } = await testRedis()
  await client.ping()
  const asked = orLate<unknown>(
    client.ping().then(() => client.ping()),
    1_000,
    late,
  )
  beBusy(1_200)
  expect(await asked).toBe('PONG')
})

test('orLate: this process is busy again and again, and there is no answer → still late', async () => {
  let turns = 0
  const busy = setInterval(() => {
    turns++
    beBusy(20)
  }, 0)
  expect(await orLate(new Promise(() => {}), 50, late)).toBe('late')
  clearInterval(busy)
  expect(turns).toBeLessThan(20)
})
