import { Redis } from 'ioredis'
import { describe, expect, inject, test } from 'vitest'
import { testRedis } from './redis.ts'
import { releaseLater } from './release.ts'
import { startTcpProxy } from './tcp-proxy.ts'
import { eventually } from './wait.ts'

/** Faults of tools that no other test would show. */

const redis = await testRedis()

function openRedis(url: string, options = {}): Redis {
  const client = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: 0, ...options })
  client.on('error', () => {})
  releaseLater(() => client.disconnect())
  return client
}

describe('testRedis', () => {
  test('two in one run are given separate databases', async () => {
    const other = await testRedis()
    await redis.client.set('key', 'first')
    expect(await other.client.get('key')).toBe(null)
    expect(await (await other.connect()).ping()).toBe('PONG')
  })

  test('what a file leaves is gone when it ends', async () => {
    const registry = openRedis(inject('redisUrl'))
    const url = await (async () => {
      const other = await testRedis()
      await other.client.set('key', 'left')
      return other.url
    })()
    const { endTest, beginTest } = await import('./release.ts')
    await endTest()
    beginTest()
    const again = openRedis(url)
    expect(await again.dbsize()).toBe(0)
    registry.disconnect()
  })
})

test('startTcpProxy, delayed: an answer takes the delay of both ways', async () => {
  const proxy = await startTcpProxy(Number(new URL(redis.url).port))
  const client = openRedis(proxy.through(redis.url))
  await eventually(() => client.get('n'))
  proxy.forward(50)
  const startedAt = performance.now()
  await client.get('n')
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(99)
})

test('eventually: fails with the last reason when its time is up', async () => {
  let tries = 0
  const check = () => {
    tries += 1
    throw new Error(`try ${tries}`)
  }
  await expect(eventually(check, { withinMs: 60, everyMs: 10 })).rejects.toThrow(/try \d+/)
  expect(tries).toBeGreaterThan(1)
})
