import { describe, expect, test } from 'vitest'
import { createLimiter } from '../../src/limiter/index.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { ownSentinel } from '../tools/redis-topologies.ts'
import { closeLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const policies = {
  captcha: [
    { name: 'ip', key: '{ip}', sliding: '60 per 10m' },
    { name: 'to', key: '{to}', sliding: ['3 per 60s', '10 per 24h'] },
    { name: 'same', key: '{to}:{text}', fixed: '2 per 60s' },
  ],
}

describe('behind sentinels', () => {
  test('a failover costs LimiterUnavailable for a while, then the counts are the replica’s', async () => {
    const { url, primary } = await ownSentinel()
    const redis = closeLater(
      connectRedis(url, 'limiter', () => {}),
      'disconnect',
    )
    const limiter = closeLater(createLimiter({ policies, redis, rememberRefusalsMs: 0 }))
    const fields = { ip: '10.3.3.3', to: 'person', text: 'x' }
    await eventually(() => limiter.acquire('captcha', fields))
    await eventually(async () => (await redis.call('WAIT', 1, 100)) === 1)
    await primary.kill()
    await expect(limiter.acquire('captcha', fields)).rejects.toThrow('Redis')
    const states = await eventually(() => limiter.peek('captcha', fields))
    expect(states.map(({ used }) => used)).toEqual([1, 1, 1, 1])
    await eventually(() => limiter.acquire('captcha', fields))
  }, 70_000)
})
