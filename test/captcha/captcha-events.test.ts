import { expect, test } from 'vitest'
import { type EventType, eventTypes } from '../../src/base/event-types.ts'
import { type CaptchaEvent, createCaptchaEvents } from '../../src/captcha/captcha-events.ts'
import type { CodeOwner } from '../../src/captcha/code-store.ts'
import { eventually } from '../tools/wait.ts'

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
  const tried: CaptchaEvent[] = []
  let left = failures
  const announce = createCaptchaEvents({
    types,
    endCode: async () => {},
    nowMs: () => Date.UTC(2031, 0, 2),
    async write(event) {
      left -= 1
      tried.push(event)
      if (left >= 0) throw new Error('away')
      written.push(event)
    },
  })
  return { ...announce, written, tried }
}

test('passed: notice, app and scene, the recipient masked, never the code', async () => {
  const { passed, written } = announcer()
  passed(newOwner({ to: '+8613800138000', app: 'bank' }), 'notice-1')
  await eventually(() => written.length === 1)
  expect(written).toEqual([
    {
      id: expect.any(String),
      createdAt: new Date(Date.UTC(2031, 0, 2)),
      app: 'bank',
      type: 'captcha.passed',
      data: { id: 'notice-1', channel: 'sms', to: '+8613****8000', scene: 'login' },
    },
  ])
})

test('locked: the rule and the length of each lock, the recipient masked', async () => {
  const { locked, written } = announcer()
  const owner = newOwner({ channel: 'email', to: 'ada@example.test' })
  locked(owner, refusal())
  locked(owner, refusal('guesses', 60_000))
  await eventually(() => written.length === 2)
  const facts = { channel: 'email', to: 'a***@example.test', scene: 'login', rule: 'guesses' }
  expect(written).toEqual(
    [900_000, 60_000].map((lockedForMs) => ({
      id: expect.any(String),
      createdAt: expect.any(Date),
      app: 'shop',
      type: 'captcha.locked',
      data: { ...facts, lockedForMs },
    })),
  )
})

test('an event that no receiver wants is not written', async () => {
  const { passed, locked, written } = announcer(['notice.sent', 'captcha.locked'])
  passed(newOwner(), 'notice-1')
  locked(newOwner(), refusal())
  await eventually(() => written.length === 1)
  expect(written).toMatchObject([{ type: 'captcha.locked' }])
  const deaf = announcer(['captcha.passed'])
  deaf.locked(newOwner(), refusal())
  deaf.passed(newOwner(), 'notice-2')
  await eventually(() => deaf.written.length === 1)
  expect(deaf.written).toMatchObject([{ type: 'captcha.passed' }])
})

test('PostgreSQL away: written when it is back, with the id and the time of the first attempt', async () => {
  const { passed, written, tried } = announcer(eventTypes, 2)
  passed(newOwner(), 'notice-1')
  await eventually(() => written.length === 1)
  expect(tried).toHaveLength(3)
  expect(new Set(tried.map(({ id, createdAt }) => `${id} ${createdAt.getTime()}`)).size).toBe(1)
})
