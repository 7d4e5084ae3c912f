import { expect, test } from 'vitest'
import { bothEngines } from './both-engines.ts'

const u = { u: 'a' }

test('challenge: a full rule asks for one, whoever solved it passes and counts as far as there is room; what is enforced goes before it', async () => {
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

test('refund: gives back what the request took from the rules that say so, once; a release then gives back the rest', async () => {
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

test('a lockout tells in the refusal that began the lock, and in no later one', async () => {
  const { ask } = await bothEngines({
    p: [{ name: 'r', key: '{u}', lockout: { limit: 1, window: '1m', lock: '5m' } }],
  })
  await ask((limiter) => limiter.acquire('p', u))
  expect(await ask((limiter) => limiter.acquire('p', u))).toMatchObject({ isNewLock: true })
  const again = await ask((limiter) => limiter.acquire('p', u))
  expect(again).not.toHaveProperty('isNewLock')
})
