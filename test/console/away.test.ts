/** The console while Redis or PostgreSQL gives no answer: it reports this in time, and works again without help. */
import { expect, test } from 'vitest'
import { testDatabase } from '../tools/database.ts'
import { testRedis } from '../tools/redis.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'
import { openConsole } from './open-console.ts'

/**
 * Postern's deadlines end within four seconds, on a busy machine within eight. Without a deadline a silent server
 * would delay a page for ever.
 */
const answerWithinMs = 8_000

test('pages, forms and the door: 503 in words while a server is away or silent, and 200 when it is back', async () => {
  const [redis, database] = [await testRedis(), await testDatabase()]
  const proxies = {
    Redis: await startTcpProxy(Number(new URL(redis.url).port)),
    PostgreSQL: await startTcpProxy(Number(new URL(database.url).port)),
  }
  const { createOperator, client } = await openConsole({
    roles: { api: true, worker: false },
    on: {
      redis: { ...redis, url: proxies.Redis.through(redis.url) },
      database: { ...database, url: proxies.PostgreSQL.through(database.url) },
    },
  })
  const { token } = await createOperator()
  // One key for each fault. A key that was looked up before signs in without PostgreSQL.
  const strange = await Promise.all(Array.from({ length: 4 }, () => createOperator()))
  const anna = client(0)
  await anna.signIn(token)
  const csrf = /name="csrf" value="([^"]+)"/.exec((await anna.get('/')).text)?.[1] as string
  for (const [name, proxy] of Object.entries(proxies)) {
    for (const strike of [proxy.cut, proxy.stall]) {
      strike()
      const startMs = performance.now()
      const [page, form, door] = await Promise.all([
        eventually(async () => {
          const reply = await anna.get('/operations')
          return reply.status === 503 && reply
        }),
        anna.post('/search', { q: '+8613800138000', csrf }),
        client(0).post('/login', { key: strange.pop()?.token ?? '' }),
      ])
      expect(performance.now() - startMs).toBeLessThan(answerWithinMs)
      for (const reply of [page, form, door]) {
        expect(reply.status).toBe(503)
        expect(reply.text).toContain(`${name} does not answer`)
        expect(reply.headers.get('retry-after')).toBe('2')
      }
      proxy.forward()
      await eventually(async () => (await anna.get('/operations')).status === 200)
    }
  }
})
