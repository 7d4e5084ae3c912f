import { expect, test, vi } from 'vitest'
import { createApiKeys } from '../../src/access/api-keys.ts'
import { Unavailable } from '../../src/base/problems.ts'
import { openDatabase } from '../../src/db/database.ts'
import { testDatabase } from '../support/database.ts'
import { releaseLater } from '../support/release.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { eventually } from '../support/wait.ts'

const { url, pool } = await testDatabase()

/** Keys as one process sees them; `asked` counts its questions to PostgreSQL. */
function openKeys(databaseUrl = url, options = {}) {
  const database = openDatabase(databaseUrl, { maxConnections: 3, onError: () => {} })
  releaseLater(() => database.close())
  const read = vi.spyOn(database, 'read')
  return { keys: createApiKeys(database, options), asked: () => read.mock.calls.length }
}

test('create: the key is found with its app, and the database holds only its hash (I14)', async () => {
  const { keys } = openKeys()
  const { id, token } = await keys.create({ name: 'web', app: 'shop' })
  expect(token).toMatch(/^psk_[\w-]{43}$/)
  expect(await keys.find(token)).toEqual({ id, app: 'shop' })
  const { rows } = await pool.query('SELECT * FROM api_key WHERE id = $1', [id])
  expect(rows[0].hash).toHaveLength(32)
  expect(JSON.stringify(rows)).not.toContain(token)
  expect(rows[0].hash.includes(token)).toBe(false)
})

test('find: a wrong key is null, and so is a right one with a character changed', async () => {
  const { keys } = openKeys()
  const { token } = await keys.create({ name: 'web', app: 'shop' })
  const altered = token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A')
  for (const wrong of [altered, token.toUpperCase(), token.slice(0, -1), 'x']) {
    expect(await keys.find(wrong)).toBe(null)
  }
})

test('find: a key is asked for once, by a hundred requests at once and by those that follow', async () => {
  const { keys, asked } = openKeys()
  const { token } = await keys.create({ name: 'web', app: 'shop' })
  const before = asked()
  await Promise.all(Array.from({ length: 100 }, () => keys.find(token)))
  await Promise.all(Array.from({ length: 100 }, () => keys.find('psk_wrong')))
  await keys.find(token)
  expect(asked() - before).toBe(2)
})

test('revoke: a process that knew the key refuses it within 5 s', async () => {
  const [here, there] = [openKeys(), openKeys()]
  const { id, token } = await here.keys.create({ name: 'web', app: 'shop' })
  expect(await there.keys.find(token)).toMatchObject({ app: 'shop' })
  const revokedAt = performance.now()
  expect(await here.keys.revoke(id)).toBe(true)
  await eventually(async () => (await there.keys.find(token)) === null, { withinMs: 5_500 })
  expect(performance.now() - revokedAt).toBeLessThan(5_500)
  expect(await here.keys.revoke(id)).toBe(true)
  expect(await here.keys.revoke('019aa000-0000-7000-8000-000000000000')).toBe(false)
})

test('ensure: the same key from several processes at once is one row, and works in this process at once', async () => {
  const { keys } = openKeys()
  const token = 'a bootstrap key of some length'
  expect(await keys.find(token)).toBe(null)
  const all = [openKeys(), openKeys(), openKeys()]
  await Promise.all(all.map((one) => one.keys.ensure(token, { name: 'bootstrap', app: 'default' })))
  await keys.ensure(token, { name: 'bootstrap', app: 'default' })
  expect(await keys.find(token)).toMatchObject({ app: 'default' })
  const { rows } = await pool.query(
    `SELECT count(*)::int AS count FROM api_key WHERE name = 'bootstrap'`,
  )
  expect(rows).toEqual([{ count: 1 }])
})

test('ensure: a revoked key stays revoked', async () => {
  const { keys } = openKeys()
  await keys.ensure('another bootstrap key', { name: 'other', app: 'default' })
  const [row] = (await keys.list()).filter(({ name }) => name === 'other')
  await keys.revoke(row?.id ?? '')
  await keys.ensure('another bootstrap key', { name: 'other', app: 'default' })
  expect(await openKeys().keys.find('another bootstrap key')).toBe(null)
})

test('PostgreSQL away: a known key stays good past its time, an unknown one is Unavailable, never null', async () => {
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const { keys } = openKeys(proxy.through(url), { freshMs: 0 })
  const { token } = await keys.create({ name: 'web', app: 'shop' })
  await keys.find(token)
  await keys.find('psk_wrong')
  proxy.cut()
  expect(await keys.find(token)).toMatchObject({ app: 'shop' })
  expect(await keys.find('psk_wrong')).toBe(null)
  await expect(keys.find('psk_never_seen')).rejects.toBeInstanceOf(Unavailable)
  proxy.forward()
  await eventually(async () => (await keys.find('psk_never_seen')) === null)
})

test('a flood of wrong keys does not push out a known one', async () => {
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const { keys, asked } = openKeys(proxy.through(url), { maxWrong: 100 })
  const { token } = await keys.create({ name: 'web', app: 'shop' })
  await keys.find(token)
  await Promise.all(Array.from({ length: 350 }, (_, index) => keys.find(`psk_wrong_${index}`)))
  const before = asked()
  proxy.cut()
  expect(await keys.find(token)).toMatchObject({ app: 'shop' })
  expect(asked()).toBe(before)
})
