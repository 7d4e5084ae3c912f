import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { canonical, canonicalRecord } from '../../src/base/canonical.ts'
import { createLimiter, LimiterUnavailable } from '../../src/limiter/index.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { ownRedis } from '../tools/own-servers.ts'
import { closeLater } from '../tools/release.ts'
import { bothEngines } from './both-engines.ts'

const policies = {
  notice: [
    { name: 'duplicate', key: '{dedupe}', fixed: '2 per 60s', message: 'notice duplicated' },
  ],
}
const digest = (to: string, template: string, params: Record<string, unknown>) =>
  createHash('md5')
    .update(canonical([to, template, canonicalRecord(params)]))
    .digest('hex')

describe('S2: the same content to the same phone, at most twice in 60 s', () => {
  test('two messages whose parts join to one text are two, and parameters in another order are the same message', () => {
    expect(digest('1', '23', {})).not.toBe(digest('12', '3', {}))
    expect(digest('p', 't', { a: 1, b: 2 })).toBe(digest('p', 't', { b: 2, a: 1 }))
  })

  test('the window starts with the first one and ends as a whole; the refusal carries the rule’s words', async () => {
    const { ask, wait } = await bothEngines(policies)
    const fields = { dedupe: digest('+8613800138000', 'order', { id: 7 }) }
    const acquire = () => ask((limiter) => limiter.acquire('notice', fields))
    expect(await acquire()).toMatchObject({ admitted: true, nextInMs: 0 })
    await wait(50_000)
    expect(await acquire()).toMatchObject({ admitted: true, nextInMs: 10_000 })
    expect(await acquire()).toMatchObject({
      admitted: false,
      rule: 'duplicate',
      retryAfterMs: 10_000,
      message: 'notice duplicated',
    })
    await wait(10_000)
    expect(await acquire()).toMatchObject({ remaining: [{ left: 1 }] })
  })

  test('refusals are counted under names from the policies only, for any subject (I16)', async () => {
    const counted = new Set<string>()
    const limiter = createLimiter({
      policies,
      onRefused: ({ policy, rule }) => counted.add(`${policy} ${rule}`),
    })
    for (let phone = 0; phone < 1_000; phone++) {
      for (let send = 0; send < 3; send++) limiter.tryAcquire('notice', { dedupe: `+86${phone}` })
    }
    expect([...counted]).toEqual(['notice duplicate'])
  })

  test('Redis failing means refusing, never unlimited', async () => {
    const server = await ownRedis()
    const redis = closeLater(
      connectRedis(server.url, 'limiter', () => {}),
      'disconnect',
    )
    const limiter = closeLater(createLimiter({ policies, redis }))
    await new Promise((ready) => redis.once('ready', ready))
    expect(await limiter.acquire('notice', { dedupe: 'a' })).toMatchObject({ admitted: true })
    await server.kill()
    for (let send = 0; send < 3; send++) {
      await expect(limiter.acquire('notice', { dedupe: 'a' })).rejects.toThrow(LimiterUnavailable)
    }
  })
})
