import { mkdtempSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { readRedisAddress } from '../../src/base/redis-address.ts'
import { examineRedis } from '../../src/storage/examine-redis.ts'
import { connectRedis, firstTry } from '../../src/storage/redis.ts'
import { lookAtRedis } from '../../src/storage/redis-ready.ts'
import { makeCertificate } from '../tools/debian-server.ts'
import { listen } from '../tools/listen.ts'
import {
  ownCluster,
  ownSentinelWithPassword,
  ownTlsSentinel,
  primaryPassword,
} from '../tools/redis-topologies.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

describe('an address of several servers', () => {
  test('IPv6 hosts in brackets, with and without a port', () => {
    expect(readRedisAddress('redis+sentinel://[::1]:26380,[2001:db8::5],10.0.0.7/main')).toEqual({
      kind: 'sentinel',
      hosts: [
        { host: '::1', port: 26_380 },
        { host: '2001:db8::5', port: 26_379 },
        { host: '10.0.0.7', port: 26_379 },
      ],
      credentials: {},
      tls: undefined,
      name: 'main',
      sentinelPassword: undefined,
    })
  })

  test('TLS, a user, and passwords that are percent-encoded', () => {
    const url =
      'rediss+sentinel://shop:p%40ss%2F1@s1:7001,s2:7002/my%20main?x=1&sentinelPassword=a+b%26c%3F'
    expect(readRedisAddress(url)).toMatchObject({
      credentials: { username: 'shop', password: 'p@ss/1' },
      tls: {},
      name: 'my main',
      sentinelPassword: 'a+b&c?',
    })
    expect(readRedisAddress('rediss+cluster://:secret@[::1],c2:7005')).toMatchObject({
      kind: 'cluster',
      hosts: [
        { host: '::1', port: 6379 },
        { host: 'c2', port: 7005 },
      ],
      credentials: { password: 'secret' },
      tls: {},
    })
  })

  test('one server: ioredis reads it', () => {
    expect(readRedisAddress('rediss://:secret@[::1]:6380/2')).toEqual({ kind: 'server' })
  })
})

test('a sentinel with a password: works with the right one, and the reason is named without it or with another', async () => {
  const { port } = await ownSentinelWithPassword('p@ss+/?')
  const url = `redis+sentinel://:${primaryPassword}@[::1]:${port}/postern`
  const right = connectRedis(`${url}?sentinelPassword=p%40ss+%2F%3F`, 'command', () => {})
  releaseLater(() => right.disconnect())
  expect(await eventually(() => right.set('test:x', 'x', 'PX', 1_000))).toBe('OK')
  const reason = 'redis sentinels refuse the password; check ?sentinelPassword= in REDIS_URL'
  for (const query of ['', '?sentinelPassword=other']) {
    const wrong = closeLater(
      connectRedis(url + query, 'command', () => {}),
      'disconnect',
    )
    await firstTry(wrong)
    expect(await lookAtRedis(wrong, 'test:')).toMatchObject({ reasons: [reason] })
  }
  expect(await examineRedis(url, 'test:')).toMatchObject([{ state: 'error', message: reason }])
})

test('Redis with another password: the reason is named', async () => {
  const { port } = await ownSentinelWithPassword('any')
  const url = `redis+sentinel://:other@[::1]:${port}/postern?sentinelPassword=any`
  const wrong = closeLater(
    connectRedis(url, 'command', () => {}),
    'disconnect',
  )
  await firstTry(wrong)
  expect(await lookAtRedis(wrong, 'test:')).toMatchObject({
    reasons: ['redis refuses the password; check REDIS_URL'],
  })
})

describe('TLS to several servers', async () => {
  const place = () => makeCertificate(mkdtempSync(join(inject('runFolder'), 'tls-')))
  const [trusted, other] = [place(), place()]
  const [cluster, sentinel, primary] = await Promise.all([
    ownCluster(other),
    ownTlsSentinel(other, other),
    ownTlsSentinel(trusted, other),
  ])
  const before = getCACertificates('default')
  beforeAll(() => setDefaultCACertificates([...before, readFileSync(trusted.caFile, 'utf8')]))
  afterAll(() => setDefaultCACertificates(before))

  const untrusted = 'redis has a certificate that is not trusted; set CA_FILE'
  test.each([
    ['a cluster with an untrusted certificate', cluster.url, untrusted],
    ['a sentinel with an untrusted certificate', sentinel, untrusted],
    ['a primary with an untrusted certificate, behind a trusted sentinel', primary, untrusted],
    ['a cluster that is away', 'rediss+cluster://127.0.0.1:1', 'redis is out of reach'],
  ])('%s: the reason is named', async (_, url, reason) => {
    const client = closeLater(
      connectRedis(url, 'command', () => {}),
      'disconnect',
    )
    await firstTry(client)
    expect(await lookAtRedis(client, 'test:')).toEqual({ reasons: [reason], warnings: [] })
    expect(await examineRedis(url, 'test:')).toMatchObject([{ state: 'error', message: reason }])
  })
})

test.each([
  ['', 'rediss://'],
  ['-ERR Protocol error\r\n', 'rediss://'],
  ['', 'rediss+cluster://'],
  ['-ERR Protocol error\r\n', 'rediss+sentinel://', '/postern'],
])(
  'TLS to a server without TLS that answers %j and closes, by an address with %s: the reason is named',
  async (answer, scheme, name = '') => {
    const server = createServer((socket) => {
      socket.on('error', () => {}).once('data', () => socket.end(answer))
    })
    const { port } = new URL(await listen(server))
    const wrong = connectRedis(`${scheme}127.0.0.1:${port}${name}`, 'command', () => {})
    releaseLater(() => {
      wrong.disconnect()
      server.close()
    })
    await firstTry(wrong)
    expect(await lookAtRedis(wrong, 'test:')).toMatchObject({
      reasons: ['redis does not answer with TLS at this port, which REDIS_URL asks for (rediss)'],
    })
  },
)
