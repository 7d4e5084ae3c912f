import { expect, test } from 'vitest'
import { testDatabase } from '../support/database.ts'
import { clientOf, noLimits, posternEnv } from '../support/postern.ts'
import { startProcess } from '../support/processes.ts'
import { testRedis } from '../support/redis.ts'
import { eventually } from '../support/wait.ts'

test('an API that says it is ready listens, also when its bootstrap key had to wait', async () => {
  const [redis, database] = [await testRedis(), await testDatabase()]
  const {
    PORT: _,
    ADMIN_PORT: __,
    ...env
  } = posternEnv({
    redis,
    database,
    policyFile: { policies: noLimits },
  })
  const holder = await database.pool.connect()
  await holder.query('BEGIN; LOCK TABLE api_key')
  try {
    const api = await startProcess('api', { env })
    expect((await fetch(`${api.url}/nothing`, { headers: { connection: 'close' } })).status).toBe(
      404,
    )
    await holder.query('ROLLBACK')
    const { post } = clientOf(api.url, env.BOOTSTRAP_SECRET_KEY as string)
    await eventually(async () => (await post('/v1/notices/search', {})).status === 200, {
      withinMs: 8_000,
    })
  } finally {
    holder.release(true)
  }
})
