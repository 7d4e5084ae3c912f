/** The steps of the script of the codes, in orders that no single request causes. */
import { expect, test } from 'vitest'
import { loadScript } from '../../src/base/redis-script.ts'
import { testRedis } from '../tools/redis.ts'
import { eventually } from '../tools/wait.ts'

const server = await testRedis()
const redis = await server.connect('code')
const script = loadScript('codes-N')

let count = 0
function owner() {
  count += 1
  const key = `${server.prefix}${count}`
  /** Several steps in one call, as in one turn of the event loop. */
  const take = (...steps: string[][]) =>
    script.run(
      redis,
      steps.map(() => key),
      steps.flatMap(([name = '', ...rest]) => [rest.length + 3, name, 'login', '', ...rest]),
    ) as Promise<unknown[]>
  const one = async (...step: string[]) => (await take(step))[0]
  return {
    key,
    take,
    one,
    remember: (id: string, digest = `d-${id}`, ttlMs = 60_000, onPass = '') =>
      one('remember', id, '3', digest, String(ttlMs), '0', onPass),
    settle: (id: string) => one('settle', id),
    forget: (id: string) => one('forget', id),
    guess: (request: string, ...digests: string[]) =>
      one('guess', request, 'stranger', '', '', '', ...digests),
    takeBack: (request: string) => one('takeBack', request, 'stranger'),
  }
}

test('a wrong guess that is taken back after the right one gives its try back, and the code stays used', async () => {
  const { remember, guess, takeBack, settle } = owner()
  await remember('n1')
  expect(await guess('wrong', 'x')).toBe(2)
  expect(await guess('right', 'd-n1')).toBe('n1')
  expect(await takeBack('wrong')).toBe(1)
  expect(await guess('again', 'd-n1')).toBe(-3)
  expect(await settle('n1')).toBe(0)
  // Only the take-back of the right guess makes the code valid again.
  expect(await takeBack('right')).toBe(1)
  expect(await guess('again', 'd-n1')).toBe('n1')
})

test('a guess is taken back once; one that never came changes nothing', async () => {
  const { remember, guess, takeBack } = owner()
  await remember('n1')
  await guess('one', 'x')
  expect(await takeBack('nothing')).toBe(0)
  expect(await takeBack('one')).toBe(1)
  expect(await takeBack('one')).toBe(0)
  expect(await guess('two', 'x')).toBe(2)
  expect(await guess('three', 'x')).toBe(1)
  expect(await takeBack('on')).toBe(0)
})

test('the last try that is taken back may be used: a right code passes with it', async () => {
  const { remember, guess, takeBack } = owner()
  await remember('n1')
  for (const request of ['a', 'b', 'c']) await guess(request, 'x')
  expect(await guess('d', 'd-n1')).toBe(-2)
  await takeBack('c')
  expect(await guess('e', 'd-n1')).toBe('n1')
})

test('forget removes the right code, at any place', async () => {
  const { remember, forget, settle, guess } = owner()
  expect(await remember('n1')).toBe(0)
  expect(await remember('n2')).toBe(1)
  expect(await remember('n3')).toBe(1)
  expect(await forget('n2')).toBe(1)
  expect(await forget('n2')).toBe(0)
  expect(await settle('n2')).toBe(0)
  expect(await settle('n3')).toBeGreaterThan(1)
  expect(await settle('n1')).toBe(0)
  expect(await guess('a', 'd-n3')).toBe('n3')
})

test('settle leaves newer codes pending, and a second settle changes nothing', async () => {
  const { remember, settle, guess } = owner()
  await remember('n1')
  await remember('n2')
  await remember('n3')
  const endsMs = await settle('n2')
  expect(endsMs).toBeGreaterThan(Date.now())
  expect(await settle('n2')).toBe(endsMs)
  expect(await guess('a', 'd-n3')).toBe(2)
  expect(await guess('b', 'd-n1')).toBe(1)
  expect(await settle('n3')).toBeGreaterThan(1)
  expect(await guess('c', 'd-n3')).toBe('n3')
})

test('each code has its own end, which is not the end of its key', async () => {
  const { take, settle, guess, key } = owner()
  // In one call, so that the first has not ended when the second comes.
  const both = [
    ['remember', 'n1', '3', 'd-n1', '1', '0'],
    ['remember', 'n2', '3', 'd-n2', '60000', '0'],
  ]
  expect(await take(...both)).toEqual([0, 1])
  expect(await server.client.pttl(key)).toBeGreaterThan(50_000)
  const startMs = Date.now()
  await eventually(() => Date.now() > startMs + 5)
  expect(await guess('a', 'd-n1')).toBe(-1)
  expect(await settle('n1')).toBe(0)
  expect(await settle('n2')).toBeGreaterThan(1)
  expect(await guess('b', 'd-n2')).toBe('n2')
})

test('clear removes the codes that end before the settled code of another key, or at its end with a lower id', async () => {
  const { take, one, settle, guess } = owner()
  // In one call, so that both end in the same millisecond.
  await take(
    ['remember', 'n1', '3', 'd-n1', '60000', '0', ''],
    ['remember', 'n3', '3', 'd-n3', '60000', '0', ''],
  )
  const endsMs = Number(await settle('n1'))
  expect(await one('clear', String(endsMs - 1), 'n9')).toBe(0)
  expect(await one('clear', String(endsMs), 'n1')).toBe(0)
  expect(await guess('a', 'd-n3')).toBe(2)
  expect(await one('clear', String(endsMs), 'n2')).toBe(1)
  expect(await guess('b', 'd-n1')).toBe(-1)
  expect(await settle('n3')).toBe(endsMs)
  expect(await one('clear', String(endsMs + 1), 'n2')).toBe(1)
  expect(await settle('n3')).toBe(-1)
})

test('any of the digests of a guess may be the right one', async () => {
  const { remember, guess } = owner()
  await remember('n1')
  expect(await guess('a', 'x', 'y')).toBe(2)
  expect(await guess('b', 'x', 'd-n1')).toBe('n1')
})

test('steps of one call run in order, each on the result of the step before', async () => {
  const { take } = owner()
  expect(
    await take(
      ['remember', 'n1', '2', 'd', '60000', '0'],
      ['guess', 'a', 'stranger', '', '', '', 'x'],
      ['guess', 'b', 'stranger', 'n2', '', '', 'd'],
      ['guess', 'c', 'stranger', 'n1', '', '', 'd'],
      ['guess', 'd', 'stranger', '', '', '', 'd'],
    ),
  ).toEqual([0, 1, -1, 'n1', -3])
})

test('a value in another format counts as no code', async () => {
  const { key, guess, remember } = owner()
  for (const value of ['', 'x', '1', '"x"', 'null', '{}']) {
    await server.client.set(key, value)
    expect(await guess('a', 'x')).toBe(-1)
  }
  await server.client.del(key)
  await server.client.rpush(key, 'x')
  expect(await guess('a', 'x')).toBe(-1)
  expect(await remember('n1')).toBe(0)
  expect(await guess('b', 'd-n1')).toBe('n1')
})
