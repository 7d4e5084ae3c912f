import { Redis } from 'ioredis'
import nodemailer from 'nodemailer'
import pg from 'pg'
import { describe, expect, inject, test } from 'vitest'
import { testDatabase } from './database.ts'
import { ownPostgres, ownRedis } from './own-servers.ts'
import { testRedis } from './redis.ts'
import { releaseLater } from './release.ts'
import { startSmtp } from './smtp.ts'
import { startTcpProxy } from './tcp-proxy.ts'
import { eventually } from './wait.ts'

/** The tools that every other test trusts: they fail and pass where they should. */

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

test('testDatabase: each clone is its own and disappears with the test', async () => {
  const [first, second] = [await testDatabase(), await testDatabase()]
  await first.pool.query('CREATE TABLE mine ()')
  await expect(second.pool.query('SELECT * FROM mine')).rejects.toThrow(/does not exist/)
})

test('a separate Redis: frozen it stays silent, thawed it answers, killed and started it has its data on the same port', async () => {
  const server = await ownRedis()
  const client = openRedis(server.url, { commandTimeout: 300 })
  await eventually(() => client.set('key', 'kept'))
  server.freeze()
  await expect(client.get('key')).rejects.toThrow(/timed out/)
  server.thaw()
  expect(await eventually(() => client.get('key'))).toBe('kept')
  await server.kill()
  await eventually(() => client.status !== 'ready')
  await expect(client.get('key')).rejects.toThrow()
  await server.start()
  expect(await eventually(() => client.get('key'))).toBe('kept')
})

test('a separate PostgreSQL: frozen it stays silent on open connections, thawed it answers', async () => {
  const server = await ownPostgres()
  const client = new pg.Client({ connectionString: server.url, query_timeout: 300 })
  client.on('error', () => {})
  await client.connect()
  releaseLater(() => client.end().catch(() => {}))
  server.freeze()
  await expect(client.query('SELECT 1')).rejects.toThrow(/timeout/)
  server.thaw()
  await eventually(() => client.query('SELECT 1'))
  await server.stop()
  await server.start()
})

describe('startTcpProxy', () => {
  async function redisBehindProxy() {
    const server = await ownRedis()
    const proxy = await startTcpProxy(server.port)
    const client = openRedis(proxy.through(server.url), { commandTimeout: 1_500 })
    await eventually(() => client.set('n', 0))
    return { proxy, client, direct: openRedis(server.url) }
  }

  test('stalled: nothing arrives; forwarding again: what was held back arrives', async () => {
    const { proxy, client, direct } = await redisBehindProxy()
    proxy.stall()
    await expect(client.incr('n')).rejects.toThrow(/timed out/)
    expect(await direct.get('n')).toBe('0')
    proxy.forward()
    await eventually(async () => (await direct.get('n')) === '1')
  })

  test('answers dropped: the work is done and the caller gets nothing', async () => {
    const { proxy, client, direct } = await redisBehindProxy()
    proxy.dropAnswers()
    await expect(client.incr('n')).rejects.toThrow(/timed out/)
    await eventually(async () => (await direct.get('n')) === '1')
  })

  test('cut: connections are reset until it forwards again', async () => {
    const { proxy, client } = await redisBehindProxy()
    proxy.cut()
    await eventually(() => client.status !== 'ready')
    await expect(client.incr('n')).rejects.toThrow()
    proxy.forward()
    await eventually(() => client.incr('n'))
  })

  test('delayed: an answer takes the delay of both ways', async () => {
    const { proxy, client } = await redisBehindProxy()
    proxy.forward(50)
    const startedAt = performance.now()
    await eventually(() => client.get('n'))
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(99)
  })
})

test('startSmtp: a mail arrives parsed, with the addresses of its envelope', async () => {
  const smtp = await startSmtp()
  const transport = nodemailer.createTransport({ url: smtp.url })
  await transport.sendMail({
    from: 'no-reply@acme.test',
    to: '王小明 <someone@example.test>',
    subject: '验证码',
    text: 'code 0042',
    html: '<b>0042</b>',
  })
  const mail = await smtp.waitForMail((candidate) => candidate.subject === '验证码')
  expect(mail.envelope).toEqual({ from: 'no-reply@acme.test', to: ['someone@example.test'] })
  expect(mail.text?.trim()).toBe('code 0042')
  await expect(smtp.waitForMail(() => false, { withinMs: 50 })).rejects.toThrow(/not within 50 ms/)
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
