import { Redis } from 'ioredis'
import { describe, test } from 'vitest'
import { connectRedis } from '../../src/storage/redis.ts'
import { testRedis } from '../tools/redis.ts'
import { ownCluster } from '../tools/redis-topologies.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'
import { historiesPerRound, runRound } from './random-histories.ts'

/** `npm run test:histories` runs 80. */
const rounds = Number(process.env.ROUNDS ?? 16)
const seed = Number(process.env.SEED ?? 20_251_121)

describe('I20: Redis engine, in-process engine and a reference that keeps every event', () => {
  test(
    `decide alike in ${rounds * historiesPerRound} random histories of mixed rules; I19; trap 17`,
    async () => {
      const { client, prefix } = await testRedis()
      for (let round = 0; round < rounds; round++) {
        await runRound({ servers: [client], redis: client, keyPrefix: prefix }, seed + round)
        await client.flushdb()
      }
    },
    rounds * 12_000,
  )

  const clusterRounds = Math.ceil(rounds / 10)
  test(
    `and on a cluster, whose slots are asked in turn: ${clusterRounds * historiesPerRound} histories`,
    async () => {
      const { url, nodes } = await ownCluster()
      const redis = connectRedis(url, 'worker', () => {})
      const servers = nodes.map((node) => new Redis(node.url))
      releaseLater(() => [redis, ...servers].forEach((one) => void one.disconnect()))
      await eventually(() => redis.get('x').then(() => true))
      for (let round = 0; round < clusterRounds; round++) {
        await runRound({ servers, redis, keyPrefix: 'cluster:' }, seed + round)
        await Promise.all(servers.map((server) => server.flushall()))
      }
    },
    rounds * 12_000,
  )
})
