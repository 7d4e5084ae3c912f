import { expect, test, vi } from 'vitest'
import { createApiKeys } from '../../src/access/api-keys.ts'
import { createKeyToken, keyKindOf } from '../../src/access/key-token.ts'
import { Unavailable } from '../../src/base/unavailable.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'

const { url, pool } = await testDatabase()

/** The keys of one process. `asked` counts its questions to PostgreSQL, `usesWritten` its writes of uses. */
function openKeys(databaseUrl = url, options = {}) {
  const database = databaseAt(databaseUrl, 3)
  const [read, query] = [vi.spyOn(database, 'read'), vi.spyOn(database, 'query')]
  const usesWritten = () => query.mock.calls.filter(([name]) => name === 'api-key-used').length
  const asked = () => read.mock.calls.length + query.mock.calls.length - usesWritten()
  return { keys: createApiKeys(database, options), asked, usesWritten }
}

/** In the right form, so that only PostgreSQL can tell that the key does not exist. */
const strangers = (count: number) => Array.from({ length: count }, () => createKeyToken('secret'))

test('create: the key is found with its app, and the database holds only its hash (I14)', async () => {
  const { keys } = openKeys()
  const { id, token } = await keys.create({ name: 'web', app: 'shop' })
  expect(keyKindOf(token)).toBe('secret')
  expect(await keys.authenticate(token)).toEqual({ id, app: 'shop', kind: 'secret', origins: [] })
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
    expect(await keys.authenticate(wrong)).toBe(null)
  }
})

test('find: a key is asked for once, by a hundred requests at once and by those that follow', async () => {
  const { keys, asked } = openKeys(url, { freshMs: 60_000 })
  const { token } = await keys.create({ name: 'web', app: 'shop' })
  const before = asked()
  const [stranger = ''] = strangers(1)
  await Promise.all(Array.from({ length: 100 }, () => keys.authenticate(token)))
  await Promise.all(Array.from({ length: 100 }, () => keys.authenticate(stranger)))
  await keys.authenticate(stranger)
  await keys.authenticate(token)
  expect(asked() - before).toBe(2)
})

test('revoke: a process that knew the key asks again after 700 ms, and refuses it', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const [here, there] = [openKeys(), openKeys()]
  const { id, token } = await here.keys.create({ name: 'web', app: 'shop' })
  expect(await there.keys.authenticate(token)).toMatchObject({ app: 'shop' })
  expect(await here.keys.revoke(id)).toBe(true)
  vi.advanceTimersByTime(699)
  expect(await there.keys.authenticate(token)).toMatchObject({ app: 'shop' })
  vi.advanceTimersByTime(1)
  // It waits a quarter of a second for a slow PostgreSQL.
  await eventually(async () => (await there.keys.authenticate(token)) === null)
  vi.useRealTimers()
  expect(await here.keys.revoke(id)).toBe(true)
  expect(await here.keys.revoke('019aa000-0000-7000-8000-000000000000')).toBe(false)
})

test('a key with an end: good until then, then null, also while PostgreSQL is away', async () => {
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const { keys } = openKeys(proxy.through(url))
  const { keys: direct } = openKeys()
  const { id, token } = await direct.create({ name: 'short', app: 'shop', livesMs: 600_000 })
  const { token: endless } = await direct.create({ name: 'long', app: 'shop' })
  vi.useFakeTimers({ toFake: ['performance'] })
  expect(await keys.authenticate(token)).toEqual({ id, app: 'shop', kind: 'secret', origins: [] })
  expect(await keys.authenticate(endless)).not.toBe(null)
  proxy.cut()
  // The machine may be slow, but the key was made ten minutes ago at most.
  vi.advanceTimersByTime(500_000)
  expect(await keys.authenticate(token)).toMatchObject({ id })
  vi.advanceTimersByTime(100_000)
  expect(await keys.authenticate(token)).toBe(null)
  expect(await keys.authenticate(endless)).not.toBe(null)
})

test('a key with an end: PostgreSQL refuses it in a process that never knew it', async () => {
  const { keys } = openKeys()
  const { token } = await keys.create({ name: 'over', app: 'shop', livesMs: 1 })
  await eventually(async () => expect(await openKeys().keys.authenticate(token)).toBe(null))
})

test('ensure: the same key from several processes at once is one row, and works in this process at once', async () => {
  const { keys } = openKeys()
  const token = 'a bootstrap key of some length'
  expect(await keys.authenticate(token)).toBe(null)
  const all = [openKeys(), openKeys(), openKeys()]
  await Promise.all(all.map((one) => one.keys.ensure(token, { name: 'bootstrap', app: 'default' })))
  await keys.ensure(token, { name: 'bootstrap', app: 'default' })
  expect(await keys.authenticate(token)).toMatchObject({ app: 'default' })
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
  expect(await openKeys().keys.authenticate('another bootstrap key')).toBe(null)
})

test('PostgreSQL away: a known key stays good past its time, an unknown one is Unavailable, never null', async () => {
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const { keys } = openKeys(proxy.through(url), { freshMs: 0, wrongFreshMs: 0 })
  const { token } = await keys.create({ name: 'web', app: 'shop' })
  await keys.authenticate(token)
  const [wrong = '', neverSeen = ''] = strangers(2)
  await keys.authenticate(wrong)
  proxy.cut()
  expect(await keys.authenticate(token)).toMatchObject({ app: 'shop' })
  expect(await keys.authenticate(wrong)).toBe(null)
  await expect(keys.authenticate(neverSeen)).rejects.toBeInstanceOf(Unavailable)
  proxy.forward()
  await eventually(async () => (await keys.authenticate(neverSeen)) === null)
})

test('a flood of wrong keys does not push out a known one', async () => {
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const { keys, asked } = openKeys(proxy.through(url), { maxWrong: 100, freshMs: 60_000 })
  const { token } = await keys.create({ name: 'web', app: 'shop' })
  await keys.authenticate(token)
  await Promise.all(strangers(350).map((stranger) => keys.authenticate(stranger)))
  const before = asked()
  proxy.cut()
  expect(await keys.authenticate(token)).toMatchObject({ app: 'shop' })
  expect(asked()).toBe(before)
})

test('find: made-up keys are refused without a statement, however many', async () => {
  const { keys, asked } = openKeys()
  const [whole = ''] = strangers(1)
  const madeUp = [
    ...Array.from({ length: 1_000 }, (_, index) => `psk_${String(index).padStart(49, 'x')}`),
    ...Array.from(whole, (_, at) => whole.slice(0, at)),
    'psk_test_0123456789abcdef',
    'x'.repeat(200),
  ]
  for (const token of madeUp) expect(await keys.authenticate(token)).toBe(null)
  expect(asked()).toBe(0)
})

test('ensure: a key of no checksum passes where it was given, also before PostgreSQL could store it', async () => {
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const { keys } = openKeys(proxy.through(url))
  const token = 'psk_test_of_an_operator'
  await openKeys().keys.ensure(token, { name: 'bootstrap', app: 'default' })
  proxy.cut()
  await expect(keys.ensure(token, { name: 'bootstrap', app: 'default' })).rejects.toBeInstanceOf(
    Unavailable,
  )
  proxy.forward()
  expect(await eventually(() => keys.authenticate(token))).toMatchObject({ app: 'default' })
  // At another app's origin the key counts as unknown.
  expect(await openKeys().keys.authenticate(token)).toBe(null)
})

test('strangers: a thousand at once are one statement at a time, and a known key is not behind them', async () => {
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const { keys, asked } = openKeys(proxy.through(url), { freshMs: 0 })
  const { token } = await keys.create({ name: 'web', app: 'shop' })
  await keys.authenticate(token)
  const before = asked()
  const flood = Promise.all(strangers(1_000).map((stranger) => keys.authenticate(stranger)))
  expect(await keys.authenticate(token)).toMatchObject({ app: 'shop' })
  expect(new Set(await flood)).toEqual(new Set([null]))
  // A hundred per statement, and one for the known key.
  expect(asked() - before).toBeLessThanOrEqual(12)

  // Stalled: the look-ups occupy one of the three connections, and sends have the others.
  proxy.stall()
  const beforeStall = asked()
  const stalled = Promise.allSettled(strangers(500).map((stranger) => keys.authenticate(stranger)))
  await eventually(() => asked() === beforeStall + 1)
  expect(await keys.authenticate(token)).toMatchObject({ app: 'shop' })
  expect(asked()).toBe(beforeStall + 2)
  proxy.forward()
  await stalled
})

test('strangers beyond the waiting room get 503, a known key does not', async () => {
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const { keys } = openKeys(proxy.through(url), { maxAsking: 10, freshMs: 0 })
  const { token } = await keys.create({ name: 'web', app: 'shop' })
  await keys.authenticate(token)
  proxy.stall()
  let isFirstAnswered = false
  const first = Promise.allSettled(
    strangers(10).map((stranger) => keys.authenticate(stranger)),
  ).then(() => {
    isFirstAnswered = true
  })
  const [another = ''] = strangers(1)
  await expect(keys.authenticate(another)).rejects.toBeInstanceOf(Unavailable)
  expect(await keys.authenticate(token)).toMatchObject({ app: 'shop' })
  expect(isFirstAnswered).toBe(false)
  proxy.forward()
  await first
  await eventually(async () => (await keys.authenticate(another)) === null)
})

test('a revoked key stays refused while PostgreSQL is away, however well it was known before', async () => {
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const { keys } = openKeys(proxy.through(url), { freshMs: 0, wrongFreshMs: 0 })
  const { id, token } = await keys.create({ name: 'web', app: 'shop' })
  expect(await keys.authenticate(token)).toMatchObject({ id })
  await keys.revoke(id)
  await eventually(async () => (await keys.authenticate(token)) === null)
  proxy.cut()
  expect(await keys.authenticate(token)).toBe(null)
  expect(await keys.authenticate(token)).toBe(null)
})

test('a key that was unknown passes once it is made elsewhere, after the time of a memory', async () => {
  const { keys } = openKeys(url, { wrongFreshMs: 50 })
  const token = createKeyToken('secret')
  expect(await keys.authenticate(token)).toBe(null)
  const { keys: elsewhere } = openKeys()
  await elsewhere.ensure(token, { name: 'web', app: 'shop' })
  await eventually(async () => (await keys.authenticate(token)) !== null)
  expect(await keys.authenticate(token)).toMatchObject({ app: 'shop' })
})

test('find: an unknown key is asked for again after 5 s, and not sooner', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const { keys, asked } = openKeys()
  const [stranger = ''] = strangers(1)
  const before = asked()
  await keys.authenticate(stranger)
  vi.advanceTimersByTime(4_999)
  await keys.authenticate(stranger)
  expect(asked() - before).toBe(1)
  vi.advanceTimersByTime(1)
  await keys.authenticate(stranger)
  expect(asked() - before).toBe(2)
})

test('the cache of unknown keys is bounded: the oldest are looked up again', async () => {
  const { keys, asked } = openKeys(url, { maxWrong: 2 })
  const four = strangers(4)
  for (const token of four) await keys.authenticate(token)
  const before = asked()
  await keys.authenticate(four[3] as string)
  expect(asked()).toBe(before)
  await keys.authenticate(four[0] as string)
  expect(asked()).toBe(before + 1)
})

test('list: every key with its facts, newest first, revoked ones too, and no hash', async () => {
  const { keys } = openKeys()
  const [first, second] = [
    await keys.create({ name: 'first', app: 'shop' }),
    await keys.create({ name: 'second', app: 'bank' }),
  ]
  await keys.revoke(first.id)
  const [newest, older] = await keys.list()
  expect(newest).toEqual({
    id: second.id,
    name: 'second',
    app: 'bank',
    kind: 'secret',
    createdAt: expect.any(Date),
    revokedAt: null,
    isRevoked: false,
    origins: [],
    prefix: second.token.slice(0, 10),
    lastUsedAt: null,
    endsSoon: false,
  })
  expect(older).toMatchObject({ id: first.id, name: 'first', revokedAt: expect.any(Date) })
  expect(Math.abs(Date.now() - (newest?.createdAt.getTime() ?? 0))).toBeLessThan(60_000)
})

test('revoke: only this key, and its first end stays', async () => {
  const { keys } = openKeys(url, { freshMs: 0 })
  const [one, other] = [
    await keys.create({ name: 'one', app: 'shop' }),
    await keys.create({ name: 'other', app: 'shop' }),
  ]
  const revokedAt = async () => (await keys.list()).find(({ id }) => id === one.id)?.revokedAt
  await keys.revoke(one.id)
  const first = await revokedAt()
  await keys.revoke(one.id)
  expect(await revokedAt()).toEqual(first)
  expect(await keys.authenticate(other.token)).toMatchObject({ id: other.id })
})

test('each key is found with its own app, also when many are asked for in one statement', async () => {
  const { keys: maker } = openKeys()
  const made = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      maker.create({ name: `key ${index}`, app: `app-${index}` }),
    ),
  )
  const { keys } = openKeys()
  const wrong = strangers(5)
  const found = await Promise.all(
    [...made.map(({ token }) => token), ...wrong].map(keys.authenticate),
  )
  expect(found.slice(0, 20)).toEqual(
    made.map(({ id }, index) => ({ id, app: `app-${index}`, kind: 'secret', origins: [] })),
  )
  expect(found.slice(20)).toEqual(wrong.map(() => null))
})

test('ensure: a key that was looked for before works in this process at once', async () => {
  const { keys } = openKeys()
  const token = createKeyToken('secret')
  expect(await keys.authenticate(token)).toBe(null)
  await keys.ensure(token, { name: 'late', app: 'shop' })
  expect(await keys.authenticate(token)).toMatchObject({ app: 'shop' })
})

test('a known key passes while PostgreSQL gives no answer', async () => {
  const database = databaseAt(url, 3)
  const keys = createApiKeys(database, { freshMs: 0 })
  const { token } = await keys.create({ name: 'web', app: 'shop' })
  await keys.authenticate(token)
  vi.spyOn(database, 'query').mockImplementation(() => new Promise(() => {}))
  let found: unknown
  void keys.authenticate(token).then((key) => {
    found = key
  })
  await eventually(() => expect(found).toMatchObject({ app: 'shop' }))
})

const lastUsedAt = async (id: string) => {
  const { rows } = await pool.query('SELECT last_used_at FROM api_key WHERE id = $1', [id])
  return rows[0].last_used_at as Date | null
}

test('last use: written once for a thousand uses, again by another process after half a minute only, never for strangers', async () => {
  const { keys, usesWritten } = openKeys()
  const { id, token } = await keys.create({ name: 'web', app: 'shop' })
  const revoked = await keys.create({ name: 'old', app: 'shop' })
  await keys.revoke(revoked.id)
  await Promise.all(strangers(20).map((stranger) => keys.authenticate(stranger)))
  expect(await keys.authenticate(revoked.token)).toBe(null)
  expect(usesWritten()).toBe(0)
  await Promise.all(Array.from({ length: 1_000 }, () => keys.authenticate(token)))
  await keys.authenticate(token)
  const first = await eventually(async () => (await lastUsedAt(id)) ?? false)
  expect(Math.abs(Date.now() - first.getTime())).toBeLessThan(60_000)
  expect(usesWritten()).toBe(1)

  const another = openKeys()
  await another.keys.authenticate(token)
  await eventually(() => another.usesWritten() === 1)
  await another.keys.list()
  expect(await lastUsedAt(id)).toEqual(first)
  await pool.query(
    `UPDATE api_key SET last_used_at = now() - interval '31 seconds' WHERE id = $1`,
    [id],
  )
  await openKeys().keys.authenticate(token)
  await eventually(async () => ((await lastUsedAt(id))?.getTime() ?? 0) >= first.getTime())
  expect(await lastUsedAt(revoked.id)).toBe(null)
})

test('last use: no request waits for it or fails with it', async () => {
  const database = databaseAt(url, 3)
  const keys = createApiKeys(database)
  const [one, other] = [
    await keys.create({ name: 'one', app: 'shop' }),
    await keys.create({ name: 'other', app: 'shop' }),
  ]
  const passOn = database.query
  let uses = 0
  vi.spyOn(database, 'query').mockImplementation((name, ...rest) => {
    if (name !== 'api-key-used') return passOn(name, ...rest)
    uses += 1
    return uses === 1 ? Promise.reject(new Error('read only')) : new Promise(() => {})
  })
  expect(await keys.authenticate(one.token)).toMatchObject({ id: one.id })
  await eventually(() => uses === 1)
  expect(await keys.authenticate(other.token)).toMatchObject({ id: other.id })
  await eventually(() => uses === 2)
  expect(await keys.authenticate(one.token)).toMatchObject({ id: one.id })
  expect(await keys.authenticate(other.token)).toMatchObject({ id: other.id })
  expect(await lastUsedAt(one.id)).toBe(null)
})
