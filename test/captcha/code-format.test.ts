import { expect, test } from 'vitest'
import { createCodeStore } from '../../src/captcha/code-store.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { noticeFormat } from '../../src/notice/format.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'

/**
 * A code as processes of format 1 store it. If this fails, the two versions of an upgrade do not find each other's codes: raise
 * `noticeFormat`, and let workers and checks read this form too.
 */
test('a code that a process of format 1 stored: settled and right for this version (F27)', async () => {
  expect(noticeFormat).toBe(1)
  const redis = await testRedis()
  const store = createCodeStore(
    await redis.connect('code'),
    createSecrets('a secret of at least thirty-two bytes'),
    { keyPrefix: redis.prefix, ttlMs: 300_000, triesPerCode: 3 },
  )
  releaseLater(() => store.close())
  const stored = {
    id: '019aa000-0000-7000-8000-000000000000',
    scene: 'login',
    tries: 3,
    digest: 'R0XUfTE7CIDfbXRTbsE-z1FfYQ0qckDxvZFw0IFBaRg',
    ends: Date.now() + 300_000,
    state: 'pending',
    takers: ',',
  }
  const key = `${redis.prefix}code:6qbXbXBB_j5Sk05iUz9Lf`
  await redis.client.set(key, JSON.stringify([stored]), 'PX', 300_000)
  const owner = { app: 'shop', scene: 'login', channel: 'sms', to: '+8613800138000' } as const
  expect(await store.settle(owner, stored.id)).toBe('current')
  expect(await store.guess(owner, '0042')).toEqual({ result: 'passed', noticeId: stored.id })
})
