/** A code has its tries once per lane: a lane that uses up its tries leaves the other one alone. */
import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { type CodeOwner, createCodeStore } from '../../src/captcha/code-store.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater } from '../tools/release.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'

const redis = await testRedis()
const open = (connection: Awaited<ReturnType<typeof redis.connect>>) => {
  const secrets = createSecrets('the first secret, of thirty-two bytes or more')
  const options = { keyPrefix: redis.prefix, ttlMs: 300_000, triesPerCode: 3 }
  const store = closeLater(createCodeStore(connection, secrets, options))
  return store
}
const store = open(await redis.connect('code'))

let count = 0
const newOwner = (): CodeOwner => {
  count += 1
  return { app: `app-${count}`, scene: 'login', channel: 'sms', to: '+8613800138000' }
}
const known = (owner: CodeOwner, code: string, id?: string, by = store) =>
  by.guess(owner, code, id, undefined, undefined, 'known')

test('strangers use up their tries → the code ends for them, and passes in a known browser', async () => {
  const [owner, id] = [newOwner(), newId()]
  await store.remember(owner, id, '0042')
  expect(await known(owner, '0000')).toEqual({ result: 'mismatch', triesLeft: 2 })
  for (const triesLeft of [2, 1]) {
    expect(await store.guess(owner, '0000')).toEqual({ result: 'mismatch', triesLeft })
  }
  expect(await store.guess(owner, '0000')).toEqual({
    result: 'mismatch',
    triesLeft: 0,
    noticeId: id,
  })
  expect(await store.guess(owner, '0042')).toEqual({ result: 'gone', reason: 'tries' })
  expect(await store.look(owner)).toMatchObject({ triesLeft: 0, knownTriesLeft: 2 })
  expect(await known(owner, '0000')).toEqual({ result: 'mismatch', triesLeft: 1 })
  expect(await known(owner, '0042')).toEqual({ result: 'passed', noticeId: id })
  expect(await store.guess(owner, '0042')).toEqual({ result: 'gone', reason: 'used' })
})

test('known browsers use up their tries → a stranger may still pass', async () => {
  const [owner, id] = [newOwner(), newId()]
  await store.remember(owner, id, '0042')
  for (const triesLeft of [2, 1, 0]) {
    expect(await known(owner, '0000')).toMatchObject({ result: 'mismatch', triesLeft })
  }
  expect(await known(owner, '0042')).toEqual({ result: 'gone', reason: 'tries' })
  expect(await store.look(owner)).toMatchObject({ triesLeft: 3, knownTriesLeft: 0 })
  expect(await store.guess(owner, '0042')).toEqual({ result: 'passed', noticeId: id })
})

test('a message is sent while a lane has tries left, and not after', async () => {
  const [owner, id] = [newOwner(), newId()]
  await store.remember(owner, id, '0042')
  for (let tries = 0; tries < 3; tries++) await store.guess(owner, '0000')
  expect(await store.settle(owner, id)).toBe('current')
  for (let tries = 0; tries < 3; tries++) await known(owner, '0000')
  expect(await store.settle(owner, id)).toBe('gone')
})

test('several notices with one code: one budget per lane', async () => {
  const [owner, codeId, noticeId] = [newOwner(), newId(), newId()]
  const home = { ...owner, addresses: { sms: owner.to } }
  const digits = { noticeId, owner, code: '1111', isFirst: true, mayRepeat: false }
  await store.add(codeId, home, digits)
  await store.settle(home, noticeId, codeId)
  for (let tries = 0; tries < 3; tries++) await store.guess(home, '0000', codeId)
  const live = await store.look(home, codeId)
  expect(live).toMatchObject({ triesLeft: 0, knownTriesLeft: 3, shared: { codeId } })
  expect(await store.guess(home, '1111', codeId)).toEqual({ result: 'gone', reason: 'tries' })
  const next = { ...digits, noticeId: newId(), code: '2222', isFirst: false }
  expect(await store.add(codeId, home, next)).toBe('gone')
  expect(await store.add(codeId, home, { ...next, lane: 'known' })).toBe('pending')
  expect(await known(home, '1111', codeId)).toMatchObject({ result: 'passed', noticeId })
})

test('a guess in a known browser whose answer is lost is given back to its lane (I23)', async () => {
  const proxy = await startTcpProxy(Number(new URL(redis.url).port))
  const client = closeLater(
    connectRedis(proxy.through(redis.url), 'code', () => {}),
    'disconnect',
  )
  await eventually(() => client.ping())
  const away = open(client as never)
  const [owner, id] = [newOwner(), newId()]
  await store.remember(owner, id, '0042')
  await store.guess(owner, '0000')
  proxy.dropAnswers()
  await expect(known(owner, '0000', undefined, away)).rejects.toThrow()
  proxy.reset()
  proxy.forward()
  await eventually(async () =>
    expect(await store.look(owner)).toMatchObject({ triesLeft: 2, knownTriesLeft: 3 }),
  )
})

test('a code of a process without lanes: its tries are counted once, for both lanes', async () => {
  const [owner, id] = [newOwner(), newId()]
  await store.remember(owner, id, '0042')
  const keys = await redis.client.keys(`${redis.prefix}code:*`)
  for (const one of keys) {
    const codes = JSON.parse((await redis.client.get(one)) ?? '[]')
    if (codes[0]?.id !== id) continue
    delete codes[0].knownTries
    await redis.client.set(one, JSON.stringify(codes), 'KEEPTTL')
  }
  expect(await known(owner, '0000')).toEqual({ result: 'mismatch', triesLeft: 2 })
  expect(await store.guess(owner, '0000')).toEqual({ result: 'mismatch', triesLeft: 1 })
  expect(await store.look(owner)).toMatchObject({ triesLeft: 1, knownTriesLeft: 1 })
  expect(await known(owner, '0000')).toMatchObject({ triesLeft: 0 })
  expect(await store.guess(owner, '0042')).toEqual({ result: 'gone', reason: 'tries' })
})
