import { expect, test } from 'vitest'
import { bothEngines } from './both-engines.ts'

const u = { u: 'a' }

test('challenge: a full rule asks for one, a caller that solved it passes and counts as far as there is room; what is enforced goes before it', async () => {
  const { ask, wait } = await bothEngines({
    p: [
      { name: 'soft', key: '{u}', sliding: '1 per 1h', mode: 'challenge' },
      { name: 'hard', key: '{u}', sliding: '2 per 60s' },
    ],
  })
  const acquire = (isSolved = false) => ask((limiter) => limiter.acquire('p', u, { isSolved }))
  await acquire()
  expect(await acquire()).toMatchObject({ admitted: false, rule: 'soft', challenge: true })
  expect(await acquire(true)).toMatchObject({ remaining: [{ left: 0 }, { left: 0 }] })
  const hard = await acquire()
  expect(hard).toMatchObject({ admitted: false, rule: 'hard' })
  expect(hard).not.toHaveProperty('challenge')
  await wait(60_000)
  expect(await acquire(true)).toMatchObject({ admitted: true })
})

test('refund: gives back what the request took from the rules with a refund, once; a release then gives back the rest', async () => {
  const { ask } = await bothEngines({
    p: [
      { name: 'unverified', key: '{u}', sliding: '5 per 24h', refund: 'passed' },
      { name: 'all', key: '{u}', sliding: '9 per 24h' },
    ],
  })
  const used = () => ask(async (limiter) => (await limiter.peek('p', u)).map((one) => one.used))
  await ask((limiter) => limiter.acquire('p', u, { requestId: 'first' }))
  await ask((limiter) => limiter.acquire('p', u, { requestId: 'second' }))
  await ask((limiter) => limiter.refund('p', u, 'second'))
  await ask((limiter) => limiter.refund('p', u, 'second'))
  expect(await used()).toEqual([1, 2])
  expect(await ask((limiter) => limiter.release('p', u, 'second'))).toBe(true)
  expect(await used()).toEqual([1, 1])
})

const lockout = { limit: 1, window: '1m', lock: '5m' }
const newLock = { rule: 'r', window: '1m', retryAfterMs: 300_000 }

test.each([
  ['no other rule refuses', [], { rule: 'r', newLock }],
  [
    'another rule refuses for a longer time',
    [{ name: 'day', key: '{u}', sliding: '1 per 24h' }],
    { rule: 'day', retryAfterMs: 86_400_000, newLock },
  ],
  [
    'a shorter lock begins too',
    [{ name: 'short', key: '{u}', lockout: { ...lockout, lock: '1s' } }],
    { rule: 'r', newLock },
  ],
  [
    'a longer lock begins that only observes',
    [{ name: 'seen', key: '{u}', lockout: { ...lockout, lock: '1h' }, mode: 'observe' as const }],
    { rule: 'r', newLock },
  ],
])(
  'a lockout is marked in the refusal that began the lock, and in no later one: %s',
  async (_, others, refusal) => {
    const { ask } = await bothEngines({ p: [...others, { name: 'r', key: '{u}', lockout }] })
    await ask((limiter) => limiter.acquire('p', u))
    expect(await ask((limiter) => limiter.acquire('p', u))).toMatchObject(refusal)
    expect(await ask((limiter) => limiter.acquire('p', u))).not.toHaveProperty('newLock')
  },
)

test('a lock that only observes is no lock in an answer', async () => {
  const { ask } = await bothEngines({
    p: [
      { name: 'seen', key: '{u}', lockout, mode: 'observe' },
      { name: 'r', key: '{u}', sliding: '1 per 1h' },
    ],
  })
  await ask((limiter) => limiter.acquire('p', u))
  const refused = await ask((limiter) => limiter.acquire('p', u))
  expect(refused).toMatchObject({ admitted: false, rule: 'r' })
  expect(refused).not.toHaveProperty('newLock')
})
