import { expect, test } from 'vitest'
import { testDatabase } from '../tools/database.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { testRedis } from '../tools/redis.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'

test('attempts and acquires that Redis counts without an answer: each is 503, and a login keeps all its tries', async () => {
  const [redis, database] = [await testRedis(), await testDatabase()]
  const proxy = await startTcpProxy(Number(new URL(redis.url).port))
  const rule = { name: 'tries', key: '{subject}', lockout: { limit: 3, window: '5m', lock: '15m' } }
  const postern = await startPostern({
    on: { redis: { ...redis, url: proxy.through(redis.url) }, database },
    policyFile: { policies: { ...noLimits, login: [rule] } },
  })
  const attempt = (subject: string) => postern.post('/v1/attempts', { policy: 'login', subject })
  const acquire = (subject: string) =>
    postern.post('/v1/limits/login/acquire', { fields: { subject } })
  expect((await attempt('ada')).body.triesLeft).toBe(2)

  const counts = () => redis.client.keys(`${redis.prefix}{*`)
  const before = await counts()
  expect(before).toHaveLength(1)

  proxy.dropAnswers()
  const lost = await Promise.all([
    ...['ada', 'ada', 'ada', 'bea', 'bea', 'bea'].map(attempt),
    ...['cleo', 'cleo', 'cleo'].map(acquire),
  ])
  expect(lost.map(({ status }) => status)).toEqual(lost.map(() => 503))
  proxy.forward()
  proxy.reset()

  // What Redis did is given back within seconds.
  await eventually(async () => expect(await counts()).toEqual(before))
  for (const triesLeft of [1, 0]) expect((await attempt('ada')).body.triesLeft).toBe(triesLeft)
  for (const triesLeft of [2, 1, 0]) expect((await attempt('bea')).body.triesLeft).toBe(triesLeft)
  for (const _ of [1, 2, 3]) expect((await acquire('cleo')).status).toBe(200)
})
