import { expect, test } from 'vitest'
import { createLimiter } from '../../src/limiter/index.ts'

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

test('permits of a field: a use takes what the field says; what is no whole number above 0 is the caller’s mistake', () => {
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
