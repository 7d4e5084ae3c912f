import { test } from 'vitest'
import { testRedis } from '../tools/redis.ts'
import { historiesPerRound, long, runRound } from './random-histories.ts'

/** `three-engines.slow.test.ts` continues with other seeds. */
const rounds = 4

test(`I20: Redis engine, in-process engine and a reference that keeps every event decide alike in ${rounds * historiesPerRound} random histories of mixed rules; I19; trap 17`, async () => {
  const { client, prefix } = await testRedis()
  for (let seed = 1; seed <= rounds; seed++) {
    await runRound({ servers: [client], redis: client, keyPrefix: prefix }, seed)
    await client.flushdb()
  }
})

test(`I20: the same in ${long.histories} histories of ${long.steps} steps, with limits of up to 160 uses`, async () => {
  const { client, prefix } = await testRedis()
  await runRound({ servers: [client], redis: client, keyPrefix: prefix }, 5, long)
})
