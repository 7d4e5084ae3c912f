import { describe, expect, test } from 'vitest'
import { bothEngines, realLimiter } from './both-engines.ts'

const policies = {
  captcha: [
    { name: 'recipient', key: '{channel}:{to}', sliding: ['1 per 60s', '5 per 1h', '10 per 24h'] },
  ],
}
const fields = { channel: 'sms', to: '+8613800138000' }

describe('S1: one per 60 s, five per hour and ten per 24 h, all at once, per address', () => {
  test('the first send is admitted, and its key lives as long as the longest window', async () => {
    const { limiter, client, prefix } = await realLimiter(policies)
    expect(await limiter.acquire('captcha', fields)).toEqual({
      admitted: true,
      remaining: [
        { rule: 'recipient', window: '60s', left: 0 },
        { rule: 'recipient', window: '1h', left: 4 },
        { rule: 'recipient', window: '24h', left: 9 },
      ],
      nextInMs: 60_000,
    })
    const keys = await client.keys(`${prefix}{*`)
    expect(keys).toHaveLength(1)
    const ttl = await client.pttl(keys[0] as string)
    expect(ttl).toBeGreaterThan(86_395_000)
    expect(ttl).toBeLessThanOrEqual(86_400_000)
    expect(keys[0]?.slice(prefix.length)).not.toContain('138001')
  })

  test('a refusal names the window and the exact wait; trap 4: 59,999 ms refused with 1 ms left, 60,000 admitted', async () => {
    const { ask, wait } = await bothEngines(policies)
    const acquire = () => ask((limiter) => limiter.acquire('captcha', fields))
    expect(await acquire()).toMatchObject({ admitted: true })
    await wait(59_999)
    expect(await acquire()).toMatchObject({ rule: 'recipient', window: '60s', retryAfterMs: 1 })
    await wait(1)
    expect(await acquire()).toMatchObject({ admitted: true })
  })

  test('trap 3: ten used and the last one second ago: the truth is the 24 h window, not 59 s', async () => {
    const { ask, wait } = await bothEngines(policies)
    const acquire = () => ask((limiter) => limiter.acquire('captcha', fields))
    for (let use = 0; use < 10; use++) {
      expect(await acquire()).toMatchObject({ admitted: true })
      await wait(720_000)
    }
    await wait(1_000 - 720_000)
    const retryAfterMs = 86_400_000 - 9 * 720_000 - 1_000
    expect(await acquire()).toMatchObject({ window: '24h', retryAfterMs })
    await wait(retryAfterMs - 1)
    expect(await acquire()).toMatchObject({ window: '24h', retryAfterMs: 1 })
    await wait(1)
    expect(await acquire()).toMatchObject({ admitted: true })
  })

  test('exactly ten pass in any 24 h, however often one asks', async () => {
    const { ask, wait } = await bothEngines(policies)
    const admittedAt: number[] = []
    let elapsed = 0
    while (elapsed < 3 * 86_400_000) {
      const answer = await ask((limiter) => limiter.acquire('captcha', fields))
      if (answer.admitted) admittedAt.push(elapsed)
      const step = 600_007
      elapsed += step
      await wait(step)
    }
    for (const first of admittedAt) {
      const inWindow = admittedAt.filter((at) => at >= first && at < first + 86_400_000)
      expect(inWindow.length).toBeLessThanOrEqual(10)
    }
    expect(admittedAt.length).toBeGreaterThanOrEqual(25)
  })
})
