import { afterEach, expect, test } from 'vitest'
import { createApiKeys } from '../../src/access/api-keys.ts'
import { createKeyStore } from '../../src/access/key-store.ts'
import { keyKindOf } from '../../src/access/key-token.ts'
import { databaseAt, moveDatabaseClock, testDatabase } from '../tools/database.ts'

const hourMs = 3_600_000
const postgres = await testDatabase()

const open = () => databaseAt(postgres.url, 2)
const here = open()
/** A connection keeps the clock that it began with. */
let database = here

/** The answer of a process that has not seen any key yet. */
const find = (token: string) => createApiKeys(database).authenticate(token)
const store = () => createKeyStore(database)
const rowOf = async (id: string) => (await store().list()).find((key) => key.id === id)

async function moveClock(time: string): Promise<void> {
  await moveDatabaseClock(postgres, time)
  database = open()
}

afterEach(async () => {
  database = here
  // `here` may open its second connection only now, and must not find a moved clock.
  await moveDatabaseClock(postgres, 'pg_catalog.now()')
  await postgres.pool.query('DELETE FROM api_key')
})

test.each(['secret', 'publishable', 'operator'] as const)(
  'create: a %s key is of its kind, in its text, its row and where it is found',
  async (kind) => {
    const origins = kind === 'publishable' ? ['https://shop.example'] : []
    const { id, token } = await store().create({ name: 'web', app: 'shop', kind, origins })
    expect(keyKindOf(token)).toBe(kind)
    expect(await find(token)).toEqual({ id, app: 'shop', kind, origins })
    const row = await rowOf(id)
    expect(row).toMatchObject({ kind, origins, prefix: token.slice(0, 10) })
  },
)

test('create: a publishable key without origins, and origins of another kind, never come into the table', async () => {
  const wrong = [
    { name: 'web', app: 'shop', kind: 'publishable' },
    { name: 'web', app: 'shop', origins: ['https://shop.example'] },
    { name: 'web', app: 'shop', kind: 'operator', origins: ['https://shop.example'] },
  ] as const
  for (const key of wrong) await expect(store().create(key)).rejects.toThrow('needs origins')
  expect(await store().list()).toEqual([])
})

test('the prefix of a key that the operator made up is not shown: it may be all there is to guess', async () => {
  await createApiKeys(database).ensure('psk_short-and-known', { name: 'bootstrap', app: 'default' })
  expect(await store().list()).toMatchObject([{ name: 'bootstrap', prefix: '', kind: 'secret' }])
})

test('rotate: another key of the same facts; both pass until the overlap ends, by PostgreSQL’s clock', async () => {
  const origins = ['https://shop.example', 'https://m.shop.example']
  const old = await store().create({ name: 'web', app: 'shop', kind: 'publishable', origins })
  const rotation = await store().rotate(old.id, 24 * hourMs)
  if (rotation.kind !== 'rotated') throw new Error(rotation.kind)
  const { id, token } = rotation
  expect(await find(token)).toEqual({ id, app: 'shop', kind: 'publishable', origins })
  expect(await find(old.token)).toMatchObject({ id: old.id })
  expect(await rowOf(id)).toMatchObject({
    name: 'web',
    prefix: token.slice(0, 10),
    revokedAt: null,
  })
  expect(await rowOf(old.id)).toMatchObject({ isRevoked: false, revokedAt: expect.any(Date) })

  await moveClock(`clock_timestamp() + interval '23 hours 59 minutes'`)
  expect(await find(old.token)).toMatchObject({ id: old.id })
  await moveClock(`clock_timestamp() + interval '24 hours 1 minute'`)
  expect(await find(old.token)).toBe(null)
  expect(await find(token)).toMatchObject({ id })
  expect(await rowOf(old.id)).toMatchObject({ isRevoked: true })
})

test('rotate without overlap: the old key has ended', async () => {
  const old = await store().create({ name: 'web', app: 'shop' })
  expect(await store().rotate(old.id, 0)).toMatchObject({ kind: 'rotated' })
  expect(await find(old.token)).toBe(null)
})

test('rotate twice, also at once: one successor, and the second gets the end of the key', async () => {
  const old = await store().create({ name: 'web', app: 'shop' })
  const all = await Promise.all(Array.from({ length: 5 }, () => store().rotate(old.id, hourMs)))
  expect(all.map(({ kind }) => kind).sort()).toEqual([...Array(4).fill('ending'), 'rotated'])
  expect(await store().list()).toHaveLength(2)
  expect(await store().rotate(old.id, hourMs)).toMatchObject({ kind: 'ending', isRevoked: false })
})

test('rotate: an ended or unknown key makes no successor', async () => {
  const { id } = await store().create({ name: 'web', app: 'shop' })
  await store().revoke(id)
  expect(await store().rotate(id, hourMs)).toMatchObject({ kind: 'ending', isRevoked: true })
  const nobody = '019aa000-0000-7000-8000-000000000000'
  expect(await store().rotate(nobody, hourMs)).toEqual({ kind: 'unknown' })
  expect(await store().list()).toHaveLength(1)
})

test('revoke: a key that is being replaced ends now', async () => {
  const { id, token } = await store().create({ name: 'web', app: 'shop' })
  await store().rotate(id, 24 * hourMs)
  expect(await find(token)).toMatchObject({ id })
  expect(await store().revoke(id)).toBe(true)
  expect(await find(token)).toBe(null)
})

test('revoke: it ends now also where now would be rounded up to the next millisecond', async () => {
  await moveClock(`timestamptz '2026-11-23 10:00:00.0009+00'`)
  const { id, token } = await store().create({ name: 'web', app: 'shop' })
  await store().revoke(id)
  expect(await find(token)).toBe(null)
})

test('revoke: it ends by PostgreSQL’s clock, not by the command’s', async () => {
  await moveClock(`clock_timestamp() - interval '2 hours'`)
  const { id, token } = await store().create({ name: 'web', app: 'shop' })
  await store().revoke(id)
  expect(await find(token)).toBe(null)
  expect(await rowOf(id)).toMatchObject({ isRevoked: true })
})

test('a key with an end: list warns a week before, rotate renews it, an ended one is not rotated', async () => {
  const keyFor = (livesMs: number) => store().create({ name: 'brief', app: 'shop', livesMs })
  const [soon, later] = [await keyFor(6 * 24 * hourMs), await keyFor(8 * 24 * hourMs)]
  expect(await rowOf(soon.id)).toMatchObject({ endsSoon: true, isRevoked: false })
  expect(await rowOf(later.id)).toMatchObject({ endsSoon: false, isRevoked: false })
  const rotated = await store().rotate(soon.id, hourMs)
  if (rotated.kind !== 'rotated') expect.unreachable()
  // It is already being replaced, so there is nothing to advise.
  expect(await rowOf(soon.id)).toMatchObject({ endsSoon: false, isRevoked: false })
  const left = async (id: string) => ((await rowOf(id))?.revokedAt?.getTime() ?? 0) - Date.now()
  expect(Math.abs((await left(rotated.id)) - 6 * 24 * hourMs)).toBeLessThan(600_000)
  expect(Math.abs((await left(soon.id)) - hourMs)).toBeLessThan(600_000)

  await moveClock(`pg_catalog.now() + interval '9 days'`)
  expect(await rowOf(later.id)).toMatchObject({ isRevoked: true })
  expect(await find(later.token)).toBe(null)
  expect(await store().rotate(later.id, hourMs)).toMatchObject({ kind: 'ending', isRevoked: true })
})
