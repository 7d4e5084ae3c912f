import { expect, test } from 'vitest'
import { testDatabase } from '../tools/database.ts'
import { startPostern } from '../tools/postern.ts'
import { testRedis } from '../tools/redis.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'

test('a send that was refused a moment ago is refused from memory: neither Redis nor PostgreSQL is asked', async () => {
  const [redis, database] = [await testRedis(), await testDatabase()]
  const proxies = [
    await startTcpProxy(Number(new URL(redis.url).port)),
    await startTcpProxy(Number(new URL(database.url).port)),
  ] as const
  const postern = await startPostern({
    on: {
      redis: { ...redis, url: proxies[0].through(redis.url) },
      database: { ...database, url: proxies[1].through(database.url) },
    },
    roles: { api: true, worker: false },
  })
  const send = () => postern.post('/v1/captchas', { channel: 'sms', to: '+8613800138000' })
  expect((await send()).status).toBe(202)
  // A refusal is remembered for a second at most, and a busy machine may need longer for a request.
  await eventually(async () => {
    for (const proxy of proxies) proxy.forward()
    const asked = await send()
    for (const proxy of proxies) proxy.stall()
    expect([asked.status, (await send()).status]).toEqual([429, 429])
  })
  // Both servers are really away: a request for another number needs them.
  const other = await postern.post('/v1/captchas', { channel: 'sms', to: '+8613800138001' })
  expect(other.status).toBe(503)
  for (const proxy of proxies) proxy.forward()
})
