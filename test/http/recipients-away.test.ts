/** Servers are away: a look-up reports it, and records for look-ups never delay a send. */
import { expect, test } from 'vitest'
import { testDatabase } from '../tools/database.ts'
import { startPostern } from '../tools/postern.ts'
import { testRedis } from '../tools/redis.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'

const to = '+8613800138000'

test('look-up and reset: 503 while PostgreSQL or Redis is away, the whole story when they are back', async () => {
  const [redis, database] = [await testRedis(), await testDatabase()]
  const proxies = {
    redis: await startTcpProxy(Number(new URL(redis.url).port)),
    postgresql: await startTcpProxy(Number(new URL(database.url).port)),
  }
  const postern = await startPostern({
    on: {
      redis: { ...redis, url: proxies.redis.through(redis.url) },
      database: { ...database, url: proxies.postgresql.through(database.url) },
    },
  })
  const lookUp = () => postern.post('/v1/recipients/lookup', { channel: 'sms', to })
  const reset = () =>
    postern.post('/v1/recipients/reset', { channel: 'sms', to, what: ['limits'], reason: 'asked' })
  expect((await postern.post('/v1/captchas', { channel: 'sms', to })).status).toBe(202)
  for (const proxy of Object.values(proxies)) {
    proxy.cut()
    await eventually(async () => (await lookUp()).status === 503)
    const away = await reset()
    expect(away).toMatchObject({ status: 503, body: { code: 'unavailable' } })
    proxy.forward()
    await eventually(async () => (await lookUp()).status === 200)
  }
  const told = await lookUp()
  expect(told.body).toMatchObject({ notices: [{ kind: 'captcha' }], operations: [] })
})

test('reset: without its record in PostgreSQL nothing is done; a recorded reset may be repeated', async () => {
  const [redis, database] = [await testRedis(), await testDatabase()]
  const postern = await startPostern({ on: { redis, database } })
  const refused = { status: 429, body: { policy: 'captcha', rule: 'recipient' } }
  const send = () => postern.post('/v1/captchas', { channel: 'sms', to })
  const reset = () =>
    postern.post('/v1/recipients/reset', {
      channel: 'sms',
      to,
      what: ['limits', 'code'],
      reason: 'asked',
    })
  const { body } = await send()
  const code = await postern.codeFor(body.id)
  expect(await send()).toMatchObject(refused)
  // These parts are still read. Only the record cannot be written.
  await database.pool.query('ALTER TABLE operation ADD CONSTRAINT away CHECK (false) NOT VALID')
  try {
    expect((await reset()).status).toBeGreaterThanOrEqual(500)
    expect(await send()).toMatchObject(refused)
    const check = { channel: 'sms', to, code }
    expect(await postern.post('/v1/captchas/check', check)).toMatchObject({ status: 200 })
  } finally {
    await database.pool.query('ALTER TABLE operation DROP CONSTRAINT away')
  }
  expect((await reset()).status).toBe(204)
  expect((await send()).status).toBe(202)
})

test('PostgreSQL refuses records: sends, refusals and checks go on, and missing records are counted from zero', async () => {
  const postern = await startPostern()
  const dropped = async () => {
    const text = await (await fetch(`${postern.adminUrl}/metrics`)).text()
    const of = (record: string) =>
      Number(new RegExp(`records_dropped_total\\{record="${record}".*\\} (\\d+)`).exec(text)?.[1])
    return [of('history'), of('sums')]
  }
  expect(await dropped()).toEqual([0, 0])
  await postern.database.pool.query(
    'ALTER TABLE decision ADD CONSTRAINT away CHECK (false) NOT VALID',
  )
  const send = () => postern.post('/v1/captchas', { channel: 'sms', to })
  expect((await send()).status).toBe(202)
  expect((await send()).status).toBe(429)
  const code = await postern.codeFor(to)
  const check = await postern.post('/v1/captchas/check', { channel: 'sms', to, code })
  expect(check.status).toBe(200)
  await eventually(async () => expect(await dropped()).toEqual([0, 3]))
})
