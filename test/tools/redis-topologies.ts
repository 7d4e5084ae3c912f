import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis, type RedisOptions } from 'ioredis'
import { inject } from 'vitest'
import { findFreePort, startServerProcess, untilReady } from '../../src/dev/server-process.ts'
import { type OwnServer, ownRedis } from './own-servers.ts'
import { releaseLater } from './release.ts'
import { eventually } from './wait.ts'

/** One password for all servers of a test, because they connect to each other too. */
const password = 'a password of these tests'.replaceAll(' ', '-')

/** A primary with a replica, and three sentinels that promote the replica when the primary is gone. */
export async function ownSentinel(): Promise<{
  url: string
  primary: OwnServer
  replica: OwnServer
}> {
  const auth = ['--requirepass', password, '--masterauth', password]
  const primary = await ownRedis(auth, password)
  const replica = await ownRedis(
    [...auth, '--replicaof', `127.0.0.1 ${primary.port}`, '--repl-diskless-sync-delay', '0'],
    password,
  )
  await withClient(replica.port, (client) =>
    eventually(async () => (await client.info('replication')).includes('master_link_status:up')),
  )
  const ports = await Promise.all([1, 2, 3].map(() => startSentinel(primary.port)))
  await eventually(
    async () => {
      for (const port of ports) {
        const sentinel = new Redis(port, { lazyConnect: true, maxRetriesPerRequest: 0 })
        sentinel.on('error', () => {})
        try {
          const reply = (await sentinel.call('SENTINEL', 'CKQUORUM', 'postern')) as string
          if (!reply.startsWith('OK 3')) return false
        } finally {
          sentinel.disconnect()
        }
      }
      return true
    },
    { everyMs: 100 },
  )
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join(',')
  return { url: `redis+sentinel://:${password}@${hosts}/postern`, primary, replica }
}

/** One sentinel on an IPv6 address, which has a password, and its primary. */
export async function ownSentinelWithPassword(
  sentinelPassword: string,
): Promise<{ port: number; url: string }> {
  const primary = await ownRedis([], password)
  const own = ['bind ::1', `requirepass ${sentinelPassword}`]
  const access = { host: '::1', password: sentinelPassword }
  const port = await startSentinel(primary.port, own, access)
  const query = `sentinelPassword=${encodeURIComponent(sentinelPassword)}`
  return { port, url: `redis+sentinel://:${password}@[::1]:${port}/postern?${query}` }
}

/** One sentinel and its primary, both with TLS only. Their certificates may be of different authorities. */
export async function ownTlsSentinel(
  ofSentinel: Certificate,
  ofPrimary: Certificate,
): Promise<string> {
  const primaryPort = await findFreePort()
  await ownRedis(flagsOf(tlsSettings(ofPrimary, primaryPort)), password)
  const port = await findFreePort()
  const settings = { port: '0', ...tlsSettings(ofSentinel, port), 'tls-replication': 'yes' }
  const lines = Object.entries(settings).map(([name, value]) => `${name} ${value}`)
  await startSentinel(primaryPort, lines, { port, tls: { rejectUnauthorized: false } })
  return `rediss+sentinel://:${password}@127.0.0.1:${port}/postern`
}

export const primaryPassword = password

async function startSentinel(
  primaryPort: number,
  lastLines: readonly string[] = [],
  access: RedisOptions = {},
): Promise<number> {
  const port = await findFreePort()
  const dataDir = join(inject('runFolder'), `sentinel-${port}`)
  await mkdir(dataDir)
  const configFile = join(dataDir, 'redis.conf')
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${dataDir}`,
    `pidfile ${join(dataDir, 'redis.pid')}`,
    `sentinel monitor postern 127.0.0.1 ${primaryPort} 2`,
    `sentinel auth-pass postern ${password}`,
    'sentinel down-after-milliseconds postern 1000',
    'sentinel failover-timeout postern 5000',
    ...lastLines,
  ]
  await writeFile(configFile, `${lines.join('\n')}\n`)
  const server = startServerProcess(
    ['redis-server', configFile, '--sentinel'],
    join(dataDir, 'redis.log'),
    'SIGTERM',
  )
  releaseLater(() => server.kill())
  const client = new Redis({ port, maxRetriesPerRequest: 0, retryStrategy: () => 20, ...access })
  client.on('error', () => {})
  try {
    const isReady = () =>
      client.ping().then(
        () => true,
        () => false,
      )
    if (!(await untilReady(server, isReady))) throw new Error('the sentinel did not start')
  } finally {
    client.disconnect()
  }
  return port
}

/** Files of a certificate for 127.0.0.1, and of its authority. */
type Certificate = Readonly<Record<'caFile' | 'certFile' | 'keyFile', string>>

/** Three nodes with a third of the slots each. With a certificate, clients and nodes connect over TLS. */
export async function ownCluster(
  certificate?: Certificate,
  flags: readonly string[] = [],
): Promise<{ url: string; nodes: OwnServer[] }> {
  const nodes = await Promise.all(
    [1, 2, 3].map(async () => {
      const busPort = String(await findFreePort())
      const cluster = { 'cluster-enabled': 'yes', 'cluster-port': busPort }
      const tlsPort = certificate && (await findFreePort())
      const tls = tlsPort ? tlsSettings(certificate, tlsPort) : {}
      const node = await ownRedis(
        [
          ...flagsOf({ ...cluster, ...tls, 'tls-cluster': tlsPort ? 'yes' : 'no' }),
          ...flagsOf({ 'cluster-node-timeout': '1000', masterauth: password }),
          ...flags,
        ],
        password,
      )
      return { node, busPort, clientPort: tlsPort ?? node.port }
    }),
  )
  const [first] = nodes
  for (const [index, { node, busPort, clientPort }] of nodes.entries()) {
    await withClient(node.port, async (client) => {
      const from = Math.floor((16_384 * index) / nodes.length)
      const to = Math.floor((16_384 * (index + 1)) / nodes.length) - 1
      await client.call('CLUSTER', 'ADDSLOTSRANGE', from, to)
    })
    if (index > 0) {
      await withClient((first as { node: OwnServer }).node.port, (client) =>
        client.call('CLUSTER', 'MEET', '127.0.0.1', clientPort, busPort),
      )
    }
  }
  for (const { node } of nodes) {
    await withClient(node.port, (client) =>
      eventually(async () => {
        const info = (await client.call('CLUSTER', 'INFO')) as string
        return /cluster_state:ok/.test(info) && /cluster_known_nodes:3/.test(info)
      }),
    )
  }
  const hosts = nodes.map(({ clientPort }) => `127.0.0.1:${clientPort}`).join(',')
  return {
    url: `${certificate ? 'rediss' : 'redis'}+cluster://:${password}@${hosts}`,
    nodes: nodes.map(({ node }) => node),
  }
}

type Settings = Readonly<Record<string, string>>

const tlsSettings = ({ caFile, certFile, keyFile }: Certificate, port: number): Settings => ({
  'tls-port': String(port),
  'tls-auth-clients': 'no',
  'tls-ca-cert-file': caFile,
  'tls-cert-file': certFile,
  'tls-key-file': keyFile,
})

const flagsOf = (settings: Settings): string[] =>
  Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])

async function withClient<Result>(
  port: number,
  work: (client: Redis) => Promise<Result>,
): Promise<Result> {
  const client = new Redis({ port, password, retryStrategy: () => 50 })
  client.on('error', () => {})
  try {
    return await work(client)
  } finally {
    client.disconnect()
  }
}
