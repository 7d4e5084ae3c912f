import { once } from 'node:events'
import { expect, test } from 'vitest'
import { connectRedis } from '../../src/storage/redis.ts'
import { lookAtRedis } from '../../src/storage/redis-ready.ts'
import { beBusy } from '../tools/be-busy.ts'
import { ownRedis } from '../tools/own-servers.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'

const roles = ['limiter', 'code', 'command'] as const

test('commands whose answers arrived while this process was busy for longer than their deadline → the answers', async () => {
  const { connect } = await testRedis()
  const clients = await Promise.all(roles.map((role) => connect(role)))
  const asked = clients.map((client) => client.echo('there'))
  // Commands that share a write are written at the end of the tick.
  await new Promise(setImmediate)
  beBusy(1_200)
  expect(await Promise.all(asked)).toEqual(roles.map(() => 'there'))
})

test('Redis is frozen → commands fail after 800 ms, and the next succeed when it thaws', async () => {
  const server = await ownRedis()
  const clients = roles.map((role) => connectRedis(server.url, role, () => {}))
  for (const client of clients) releaseLater(() => client.disconnect())
  for (const client of clients) if (client.status !== 'ready') await once(client, 'ready')
  server.freeze()
  const startMs = performance.now()
  const asked = await Promise.allSettled(clients.map((client) => client.echo('unheard')))
  expect(performance.now() - startMs).toBeGreaterThan(790)
  expect(asked.map((one) => one.status === 'rejected' && one.reason.message)).toEqual(
    roles.map(() => 'Command timed out'),
  )
  server.thaw()
  expect(await Promise.all(clients.map((client) => client.echo('heard')))).toEqual(
    roles.map(() => 'heard'),
  )
})

test('a cluster of which no node answers → one reason, no error', async () => {
  const cluster = connectRedis('redis+cluster://127.0.0.1:1,127.0.0.1:2', 'command', () => {})
  releaseLater(() => cluster.disconnect())
  expect(await lookAtRedis(cluster, 'test:')).toEqual({
    reasons: ['redis is out of reach'],
    warnings: [],
  })
})
