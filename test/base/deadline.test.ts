import { expect, test } from 'vitest'
import { orLate } from '../../src/base/deadline.ts'
import { testRedis } from '../support/redis.ts'

const late = () => 'late'

test('orLate: work that takes longer → late, at the time', async () => {
  const startMs = performance.now()
  expect(await orLate(new Promise(() => {}), 50, late)).toBe('late')
  expect(performance.now() - startMs).toBeGreaterThan(45)
})

test('orLate: this process was busy for longer than the time, and the answer had come → the answer', async () => {
  const { client } = await testRedis()
  await client.ping()
  const answers: unknown[] = []
  for (let times = 0; times < 5; times++) {
    const asked = orLate<unknown>(client.ping(), 50, late)
    const busyUntilMs = performance.now() + 100
    while (performance.now() < busyUntilMs);
    answers.push(await asked)
  }
  expect(answers).toEqual(Array(5).fill('PONG'))
})
