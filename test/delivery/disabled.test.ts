/** `providers.NAME.disabled`, also by a reload: new messages, messages that wait, and a route without another provider. */
import { expect, test } from 'vitest'
import { start } from '../../src/main/compose.ts'
import { loadConfig } from '../../src/main/load-config.ts'
import { testDatabase } from '../tools/database.ts'
import { startFarEnd } from '../tools/far-end.ts'
import { clientOf, noLimits, posternEnv } from '../tools/postern.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

test('disabled by a reload: nothing more is sent, waiting messages go to the next provider, a route without another is refused', async () => {
  const [redis, database] = [await testRedis(), await testDatabase()]
  const [a, b] = [await startFarEnd(), await startFarEnd()]
  a.behave = () => ({ status: 429, headers: { 'retry-after': '1' }, body: '{"about":"recipient"}' })
  b.behave = a.behave
  const configWith = async (disabled: boolean) => {
    const secret = 'a secret both sides know'
    const policyFile = {
      policies: noLimits,
      providers: {
        a: { kind: 'webhook', url: a.url, secret, disabled },
        b: { kind: 'webhook', url: b.url, secret },
      },
      routes: { sms: [{ use: ['a', 'b'] }], email: [{ use: ['a'] }] },
    }
    const env = posternEnv({ redis, database, policyFile })
    const loaded = await loadConfig({ ...env, BOOTSTRAP_SECRET_KEY: key })
    return loaded.ok ? loaded.config : expect.unreachable(loaded.problems.join('\n'))
  }
  const key = 'psk_test_0123456789abcdef01234567'
  const roles = { api: true, worker: true }
  const running = await start(await configWith(false), roles, {
    keyPrefix: redis.prefix,
    quietMs: 0,
  })
  releaseLater(() => running.close())
  const { post, get } = clientOf(running.addresses.api as string, key)
  const send = (channel: string, to: string) => post('/v1/captchas', { channel, to })
  await eventually(async () => (await send('sms', '+8613800138001')).status === 202)
  const waiting = await send('sms', '+8613800138002')
  await eventually(() => a.calls.has(waiting.body.id) && b.calls.has(waiting.body.id))

  expect(running.reload(await configWith(true))).toEqual({
    reloaded: ['providers.a'],
    needRestart: [],
  })
  const later = await send('sms', '+8613800138003')
  b.behave = () => ({ status: 200 })
  a.behave = b.behave
  for (const { body } of [waiting, later]) {
    await eventually(async () => {
      const notice = (await get(`/v1/notices/${body.id}`)).body
      expect(notice).toMatchObject({ state: 'sent', provider: 'b' })
    })
  }
  expect(a.calls.has(later.body.id)).toBe(false)
  expect(a.taken.size).toBe(0)
  expect((await send('email', 'ada@example.com')).status).toBe(400)

  running.reload(await configWith(false))
  const again = await send('email', 'ada@example.com')
  expect(again.status).toBe(202)
  await eventually(() => a.taken.has(again.body.id))
})
