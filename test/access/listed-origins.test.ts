import { expect, test, vi } from 'vitest'
import { createKeyStore } from '../../src/access/key-store.ts'
import { createListedOrigins } from '../../src/access/listed-origins.ts'
import { Unavailable } from '../../src/base/unavailable.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'

const { url } = await testDatabase()

function open(databaseUrl = url, freshMs?: number) {
  const database = databaseAt(databaseUrl, 2)
  const query = vi.spyOn(database, 'query')
  const asked = () => query.mock.calls.filter(([name]) => name === 'origins-listed').length
  const options = freshMs === undefined ? {} : { freshMs }
  return { origins: createListedOrigins(database, options), store: createKeyStore(database), asked }
}

const web = (...origins: string[]) =>
  ({ name: 'web', app: 'shop', kind: 'publishable', origins }) as const

test('the origins of every valid publishable key, and of no other', async () => {
  const { origins, store } = open(url, 0)
  const shop = await store.create(web('https://shop.example', 'https://m.shop.example'))
  await store.create(web('https://shop.example'))
  const rotated = await store.create(web('https://rotated.example'))
  await store.create({ ...web('https://ended.example'), livesMs: 1 })
  await store.rotate(rotated.id, 0)
  const ended = await store.create(web('https://ended.example'))
  await store.revoke(ended.id)
  expect(await origins.has('https://shop.example')).toBe(true)
  expect(await origins.has('https://m.shop.example')).toBe(true)
  // The successor lists it.
  expect(await origins.has('https://rotated.example')).toBe(true)
  expect(await origins.has('https://ended.example')).toBe(false)
  for (const other of [
    'null',
    '',
    'https://shop.example/',
    'HTTPS://SHOP.EXAMPLE',
    'constructor',
  ]) {
    expect(await origins.has(other)).toBe(false)
  }
  await store.revoke(shop.id)
  // If there is an older answer, it does not wait for a slow PostgreSQL.
  await eventually(async () => !(await origins.has('https://m.shop.example')))
  expect(await origins.has('https://shop.example')).toBe(true)
})

test('a thousand questions at once, and those that follow, are one statement', async () => {
  const { origins, asked } = open(url, 60_000)
  const any = Array.from({ length: 1_000 }, (_, at) => `https://a${at}.example`)
  await Promise.all(any.map(origins.has))
  await Promise.all(any.map(origins.has))
  expect(asked()).toBe(1)
})

test('a new origin and an ended one are known after a second', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const { origins, store, asked } = open()
  expect(await origins.has('https://new.example')).toBe(false)
  const { id } = await store.create(web('https://new.example'))
  vi.advanceTimersByTime(999)
  expect(await origins.has('https://new.example')).toBe(false)
  expect(asked()).toBe(1)
  vi.advanceTimersByTime(1)
  await eventually(() => origins.has('https://new.example'))
  await store.revoke(id)
  vi.advanceTimersByTime(1_000)
  await eventually(async () => !(await origins.has('https://new.example')))
  expect(asked()).toBe(3)
})

test('PostgreSQL away: the last answer stays good; without one it is Unavailable, and requested once a second', async () => {
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const { store } = open()
  await store.create(web('https://kept.example'))
  const known = open(proxy.through(url), 50)
  expect(await known.origins.has('https://kept.example')).toBe(true)
  proxy.cut()
  const fresh = open(proxy.through(url))
  await eventually(() => {
    void known.origins.has('x')
    expect(known.asked()).toBeGreaterThan(2)
  })
  expect(await known.origins.has('https://kept.example')).toBe(true)
  expect(await known.origins.has('https://other.example')).toBe(false)
  const startMs = performance.now()
  for (let count = 0; count < 100; count++) {
    await expect(fresh.origins.has('https://kept.example')).rejects.toBeInstanceOf(Unavailable)
  }
  expect(fresh.asked()).toBeLessThanOrEqual(2 + (performance.now() - startMs) / 1_000)
  proxy.forward()
  await eventually(() => fresh.origins.has('https://kept.example'))
})

test('PostgreSQL stalls: the last answer is still used, and one statement waits', async () => {
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const { store } = open()
  await store.create(web('https://slow.example'))
  const { origins, asked } = open(proxy.through(url), 0)
  expect(await origins.has('https://slow.example')).toBe(true)
  proxy.stall()
  expect(await origins.has('https://slow.example')).toBe(true)
  await Promise.all(Array.from({ length: 100 }, () => origins.has('https://slow.example')))
  expect(asked()).toBeLessThanOrEqual(2)
  proxy.forward()
})
