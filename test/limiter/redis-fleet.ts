/** Real Redis servers that belong together: a cluster of three, or a master with a replica and sentinels. */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { inject } from 'vitest'
import { type PrivateServer, startPrivateRedis } from '../../src/main/private-servers.ts'
import { findFreePort, startServerProcess } from '../../src/main/server-process.ts'
import { releaseLater } from '../support/release.ts'
import { eventually } from '../support/wait.ts'

export const fleetPassword = 'of-this-test-only'

/** One server of a fleet; all have the same password, because members talk to each other. */
export async function startMember(flags: readonly string[]): Promise<PrivateServer> {
  const dataDir = await mkdtemp(join(inject('runFolder'), 'fleet-'))
  await writeFile(join(dataDir, 'password'), fleetPassword)
  const server = await startPrivateRedis({
    dataDir,
    flags: ['--masterauth', fleetPassword, '--appendonly', 'no', ...flags],
  })
  releaseLater(() => server.kill())
  return server
}

const lastSlot = 16_383

/** Three masters with a third of the slots each; returns their `redis+cluster://` URL. */
export async function startRedisCluster() {
  const nodes = await Promise.all(
    [0, 1, 2].map(async () => {
      const busPort = await findFreePort()
      const server = await startMember([
        ...['--cluster-enabled', 'yes', '--cluster-port', String(busPort)],
        ...['--cluster-node-timeout', '2000'],
      ])
      const client = new Redis(server.url)
      releaseLater(() => client.disconnect())
      return { server, client, busPort }
    }),
  )
  const [first, ...others] = nodes as [(typeof nodes)[0], ...typeof nodes]
  const third = Math.ceil((lastSlot + 1) / 3)
  for (const [index, { client }] of nodes.entries()) {
    const end = Math.min((index + 1) * third - 1, lastSlot)
    await client.call('CLUSTER', 'ADDSLOTSRANGE', index * third, end)
  }
  for (const { server, busPort } of others) {
    await first.client.call('CLUSTER', 'MEET', '127.0.0.1', server.port, busPort)
  }
  for (const { client } of nodes) {
    await eventually(
      async () => {
        const state = String(await client.call('CLUSTER', 'INFO'))
        return state.includes('cluster_state:ok') && state.includes('cluster_known_nodes:3')
      },
      { withinMs: 20_000 },
    )
  }
  const hosts = nodes.map(({ server }) => `127.0.0.1:${server.port}`).join()
  return { url: `redis+cluster://:${fleetPassword}@${hosts}`, nodes }
}

/** A master, its replica and three sentinels; returns the `redis+sentinel://` URL. */
export async function startRedisSentinel() {
  const master = await startMember([])
  const replica = await startMember(['--replicaof', '127.0.0.1', String(master.port)])
  const sentinels = await Promise.all([0, 1, 2].map(() => startSentinel(master.port)))
  const watcher = new Redis({ port: sentinels[0] as number, host: '127.0.0.1' })
  releaseLater(() => watcher.disconnect())
  await eventually(
    async () => {
      const facts = (await watcher.call('SENTINEL', 'MASTER', 'main')) as string[]
      const fact = (name: string) => facts[facts.indexOf(name) + 1]
      return fact('num-slaves') === '1' && fact('num-other-sentinels') === '2'
    },
    { withinMs: 25_000, everyMs: 200 },
  )
  const hosts = sentinels.map((port) => `127.0.0.1:${port}`).join()
  return { url: `redis+sentinel://:${fleetPassword}@${hosts}/main`, master, replica }
}

async function startSentinel(masterPort: number): Promise<number> {
  const dataDir = await mkdtemp(join(inject('runFolder'), 'sentinel-'))
  const port = await findFreePort()
  const configFile = join(dataDir, 'sentinel.conf')
  await writeFile(
    configFile,
    [
      ...['bind 127.0.0.1', `port ${port}`, `dir ${dataDir}`],
      `sentinel monitor main 127.0.0.1 ${masterPort} 2`,
      `sentinel auth-pass main ${fleetPassword}`,
      'sentinel down-after-milliseconds main 1000',
      'sentinel failover-timeout main 5000',
      '',
    ].join('\n'),
  )
  const sentinel = startServerProcess(
    ['redis-server', configFile, '--sentinel'],
    join(dataDir, 'sentinel.log'),
    'SIGTERM',
  )
  releaseLater(() => sentinel.kill())
  return port
}
