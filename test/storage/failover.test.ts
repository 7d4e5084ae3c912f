import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createCodeStore } from '../../src/captcha/code-store.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { type ConnectionRole, connectRedis, createParty } from '../../src/storage/redis.ts'
import { ownRedis } from '../tools/own-servers.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'

const roles: ConnectionRole[] = ['limiter', 'code', 'command', 'producer', 'worker']
const owner = { app: 'web', scene: 'login', channel: 'sms', to: '+8613800138000' } as const

async function open(url: string, role: ConnectionRole, party = createParty()) {
  const client = closeLater(
    connectRedis(url, role, () => {}, party),
    'disconnect',
  )
  if (client.status !== 'ready') await once(client, 'ready')
  return client
}

async function openCodes(url: string) {
  const options = { keyPrefix: 'test:', ttlMs: 300_000, triesPerCode: 3 }
  const codes = createCodeStore(await open(url, 'code'), createSecrets('s'.repeat(32)), options)
  releaseLater(() => codes.close())
  return codes
}

describe('Redis fails over behind a steady address, and connections to the old master stay open', () => {
  async function start() {
    const [old, next] = await Promise.all([1, 2].map(() => ownRedis([], 'one-password')))
    if (!old || !next) throw new Error('there are two servers')
    const [toOld, toNext] = await Promise.all([open(old.url, 'worker'), open(next.url, 'worker')])
    const proxy = await startTcpProxy(old.port)
    // The new master has not kept what the old one had: replication is asynchronous.
    const failOver = async () => {
      proxy.pointAt(next.port)
      await toOld.call('REPLICAOF', '127.0.0.1', '1')
    }
    return { url: proxy.through(old.url), toOld, toNext, failOver }
  }

  test('every connection of the process is at the new master within seconds, also idle ones', async () => {
    const { url, toNext, failOver } = await start()
    const party = createParty()
    const clients = await Promise.all(roles.map((role) => open(url, role, party)))
    await failOver()
    await eventually(async () => {
      for (const client of clients) await client.set(`test:${newId()}`, 'x', 'PX', 60_000)
    })
    expect(await toNext.dbsize()).toBeGreaterThanOrEqual(roles.length)
  })

  test('one command of one connection finds the replica → the others leave it too, before their next command', async () => {
    const { url, failOver } = await start()
    const party = createParty()
    const [writer, reader] = await Promise.all([
      open(url, 'command', party),
      open(url, 'code', party),
    ])
    const left = once(reader, 'close')
    await failOver()
    await expect(writer.set('test:x', 'x')).rejects.toThrow('READONLY')
    await left
    await eventually(() => writer.set('test:x', 'here', 'PX', 60_000))
    expect(await eventually(() => reader.get('test:x'))).toBe('here')
  })

  test('a code that the new master has is not lost for a process that is still at the old one', async () => {
    const { url, failOver } = await start()
    const [api, worker] = await Promise.all([openCodes(url), openCodes(url)])
    const id = newId()
    await failOver()
    await eventually(() => api.remember(owner, id, '0042'))
    expect(await eventually(() => worker.settle(owner, id))).toBe('current')
  })
})

test('open connections silently carry no bytes, new ones work → each role works again within seconds', async () => {
  const { url } = await testRedis()
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const clients = await Promise.all(roles.map((role) => open(proxy.through(url), role)))
  proxy.silence()
  for (const client of clients) await eventually(() => client.echo('there'), { withinMs: 10_000 })
})
