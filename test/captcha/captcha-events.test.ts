import { expect, test } from 'vitest'
import { type EventType, eventTypes } from '../../src/base/event-types.ts'
import { type CaptchaEvent, createCaptchaEvents } from '../../src/captcha/captcha-events.ts'
import type { CodeOwner } from '../../src/captcha/code-store.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { testRedis } from '../tools/redis.ts'
import { eventually } from '../tools/wait.ts'

const server = await testRedis()
const redis = await server.connect()
const secrets = createSecrets('the first secret, of thirty-two bytes or more')

let ownerCount = 0
function newOwner(over: Partial<CodeOwner> = {}): CodeOwner {
  ownerCount += 1
  const to = `+86138001${String(ownerCount).padStart(5, '0')}`
  return { app: 'shop', scene: 'login', channel: 'sms', to, ...over }
}

const refusal = (rule = 'guesses', retryAfterMs = 900_000) =>
  ({
    admitted: false,
    rule,
    window: '5m',
    limit: 3,
    windowMs: 300_000,
    kind: 'lockout',
    retryAfterMs,
  }) as const

function announcer(types: readonly EventType[] = eventTypes, failures = 0) {
  const written: CaptchaEvent[] = []
  let left = failures
  const announce = createCaptchaEvents({
    redis,
    secrets,
    keyPrefix: server.prefix,
    types,
    endCode: async () => {},
    async write(event) {
      left -= 1
      if (left >= 0) throw new Error('away')
      written.push(event)
    },
  })
  return { ...announce, written }
}

test('passed: notice, app and scene, the recipient masked, never the code', async () => {
  const { passed, written } = announcer()
  passed(newOwner({ to: '+8613800138000', app: 'bank' }), 'notice-1')
  await eventually(() => written.length === 1)
  expect(written).toEqual([
    {
      app: 'bank',
      type: 'captcha.passed',
      data: { id: 'notice-1', channel: 'sms', to: '+8613****8000', scene: 'login' },
    },
  ])
})

test('locked: with rule and length, once per lock of a recipient, also by several processes at once', async () => {
  const { locked, written } = announcer()
  const owner = newOwner({ channel: 'email', to: 'ada@example.test' })
  await Promise.all(Array.from({ length: 5 }, () => locked(owner, refusal())))
  expect(written).toEqual([
    {
      app: 'shop',
      type: 'captcha.locked',
      data: {
        channel: 'email',
        to: 'a***@example.test',
        scene: 'login',
        rule: 'guesses',
        lockedForMs: 900_000,
      },
    },
  ])
  await announcer().locked(owner, refusal())
  expect(written).toHaveLength(1)
})

test('locked: another rule, app, channel or recipient has a separate lock; another scene has not', async () => {
  const { locked, written } = announcer()
  const owner = newOwner()
  await locked(owner, refusal())
  await locked(owner, refusal('other'))
  await locked({ ...owner, app: 'bank' }, refusal())
  await locked({ ...owner, channel: 'email' }, refusal())
  await locked(newOwner(), refusal())
  expect(written).toHaveLength(5)
  await locked({ ...owner, scene: 'payment' }, refusal())
  expect(written).toHaveLength(5)
})

test('locked: after the end of a lock the next one has an event', async () => {
  const { locked, written } = announcer()
  const owner = newOwner()
  await locked(owner, refusal('guesses', 150.4))
  await locked(owner, refusal('guesses', 100))
  expect(written).toHaveLength(1)
  await eventually(async () => {
    await locked(owner, refusal('guesses', 60_000))
    return written.length === 2
  })
  // A lock that ends at this moment is an event too.
  await locked(newOwner(), refusal('guesses', 0))
  expect(written).toHaveLength(3)
})

test('an event that no receiver wants is neither written nor noted in Redis', async () => {
  const { passed, locked, written } = announcer(['notice.sent', 'captcha.locked'])
  passed(newOwner(), 'notice-1')
  const owner = newOwner()
  await locked(owner, refusal())
  expect(written.map(({ type }) => type)).toEqual(['captcha.locked'])
  const deaf = announcer(['captcha.passed'])
  const before = await server.client.dbsize()
  await deaf.locked(newOwner(), refusal())
  expect(await server.client.dbsize()).toBe(before)
  deaf.passed(newOwner(), 'notice-2')
  await eventually(() => deaf.written.length === 1)
})

test('PostgreSQL away: written when it is back', async () => {
  const { passed, written } = announcer(eventTypes, 2)
  passed(newOwner(), 'notice-1')
  await eventually(() => written.length === 1)
})

test('Redis holds no recipient in readable form (I14)', async () => {
  const { locked } = announcer()
  await locked(newOwner({ channel: 'email', to: 'canary@example.test' }), refusal())
  const keys = await server.client.keys('*')
  expect(keys.length).toBeGreaterThan(0)
  expect(keys.join()).not.toContain('canary')
})
