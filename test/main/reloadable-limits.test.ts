import { expect, test } from 'vitest'
import { createClosers } from '../../src/base/closers.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { type Config, loadConfig } from '../../src/main/load-config.ts'
import { createLimits } from '../../src/main/reloadable-limits.ts'
import type { Servers } from '../../src/storage/servers.ts'
import { testMetrics } from '../tools/metrics.ts'
import { noLimits, posternEnv } from '../tools/postern.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater } from '../tools/release.ts'

test('a reload that the limiter refuses leaves limiter and policies as they were', async () => {
  const redis = await testRedis()
  const connection = await redis.connect('limiter')
  const configOf = async (policies: object): Promise<Config> => {
    const policyFile = { policies: { ...noLimits, ...policies } }
    const database = { url: 'postgresql://localhost' }
    const loaded = await loadConfig(posternEnv({ policyFile, redis, database } as never))
    return loaded.ok ? loaded.config : expect.unreachable()
  }
  const ofApp = [{ name: 'app', key: '{app}', sliding: '9 per 1h' }]
  const started = await configOf({ ofApp })
  const plugin = { name: 'acme', policies: { acme: [{ include: 'ofApp' }] } }
  const closers = closeLater(createClosers())
  const limits = createLimits(
    { ...started, plugins: [plugin] },
    { openRedis: () => connection, keyPrefix: redis.prefix } as unknown as Servers,
    createSecrets('a secret of at least thirty-two bytes'),
    testMetrics(),
    closers,
  )
  const before = limits.policies()
  const next = await configOf({})
  // The plugin runs on, and includes a policy that this file lacks.
  expect(() => limits.reload(next)).toThrow('ofApp')
  expect(limits.policies()).toBe(before)
  expect(before.ofApp).toHaveLength(1)
  expect(await limits.limiter.peek('ofApp', { app: 'web' })).toMatchObject([{ limit: 9 }])
})
