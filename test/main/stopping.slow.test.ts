import { expect, test } from 'vitest'
import { testDatabase } from '../tools/database.ts'
import { processEnv } from '../tools/postern.ts'
import { startProcess } from '../tools/processes.ts'
import { testRedis } from '../tools/redis.ts'

test('a drain that is longer than the time limit of a stop is not cut off', async () => {
  const env = processEnv({ redis: await testRedis(), database: await testDatabase() })
  const api = await startProcess('api', { env: { ...env, DRAIN_SECONDS: '20' } })
  expect(await api.terminate()).toBe(0)
})
