import { expect, test } from 'vitest'
import { diagnose, type Told } from '../../src/console/diagnose.ts'

const nowMs = Date.parse('2026-11-22T12:00:00Z')
const ago = (seconds: number) => new Date(nowMs - seconds * 1_000)
const refusal = (secondsAgo: number, over = {}) => ({
  ...{ at: ago(secondsAgo), policy: 'captcha', rule: 'recipient', window: '60s' },
  ...{ retryAfterMs: 60_000, ...over },
})
const check = (secondsAgo: number, result: Told['checks'][number]['result']) => ({
  at: ago(secondsAgo),
  result,
})
const code = (triesLeft: number) => ({
  ...{ scene: 'signup', expiresAt: ago(-200), triesLeft, knownTriesLeft: 3 },
})
const notice = (secondsAgo: number, state: string, over = {}) =>
  ({
    createdAt: ago(secondsAgo),
    kind: 'captcha',
    state,
    provider: 'mail',
    error: null,
    ...over,
  }) as Told['notices'][number]

const of = (over: Partial<Told>) =>
  diagnose(
    {
      ...{ destination: 'allowed', isTestRecipient: false },
      ...{ codes: [code(2)], refusals: [], checks: [], notices: [], limits: [] },
      ...{ operations: [], suppressions: [] },
      ...over,
    },
    nowMs,
  )
const names = (over: Partial<Told>) => of(over).map(({ name }) => name)

test('nothing known: no request was made', () => {
  expect(of({})).toEqual([{ tone: 'plain', name: 'nothing' }])
})

test('a test recipient: that alone, with anything else known', () => {
  expect(names({ isTestRecipient: true, refusals: [refusal(1)] })).toEqual(['test'])
})

test('a destination that is not allowed, with nothing sent: that alone', () => {
  expect(names({ destination: 'country' })).toEqual(['country'])
})

test('a refusal that holds: by which rule, and how long still; of several the longest', () => {
  const longer = refusal(10, { rule: 'daily', retryAfterMs: 3_600_000 })
  expect(of({ refusals: [refusal(20), longer] })).toEqual([
    { tone: 'bad', name: 'refused', rule: 'daily', ms: 3_590_000 },
  ])
})

test('a refusal to the millisecond: holds until its end and not at it', () => {
  expect(names({ refusals: [refusal(59.999)] })).toEqual(['refused'])
  expect(names({ refusals: [refusal(60)] })).toEqual(['refusedOver'])
})

test('a refusal that has ended counts only while nothing was sent after it', () => {
  expect(names({ refusals: [refusal(120)], notices: [notice(200, 'delivered')] })).toEqual([
    'refusedOver',
    'delivered',
  ])
  expect(names({ refusals: [refusal(120)], notices: [notice(60, 'delivered')] })).toEqual([
    'delivered',
  ])
})

test('asked for a challenge is no refusal', () => {
  expect(names({ refusals: [refusal(5, { challenge: true })] })).toEqual(['challenged'])
})

test('a lock is shown once, as a lock', () => {
  const refused = refusal(1, {
    ...{ policy: 'check', rule: 'guesses', retryAfterMs: 900_000, isOfCheck: true },
  })
  const told = { lockedForMs: 899_000, refusals: [refused], checks: [check(1, 'refused')] }
  expect(of(told)).toEqual([{ tone: 'bad', name: 'locked', ms: 899_000 }])
  // While the lock lasts, "try again" is no advice. And a refused check alone is not "nothing known".
  expect(names({ ...told, checks: [check(1, 'mismatch')] })).toEqual(['locked'])
  expect(names({ checks: [check(1, 'refused')] })).toEqual([])
})

test('checks from pages that a rule of pages refuses: shown beside a refused send', () => {
  const ofPage = refusal(1, { policy: 'browser-check', rule: 'check-ip', isOfCheck: true })
  expect(of({ refusals: [ofPage, refusal(2)] })).toEqual([
    { tone: 'bad', name: 'checksRefused', rule: 'check-ip', ms: 59_000 },
    { tone: 'bad', name: 'refused', rule: 'recipient', ms: 58_000 },
  ])
})

test('locked from an address that is not the person’s: shown as that, and its wrong codes are not shown as the person’s', () => {
  const told = { lockedElsewhereForMs: 899_000, checks: [check(1, 'mismatch')] }
  expect(of(told)).toEqual([{ tone: 'wait', name: 'lockedElsewhere', ms: 899_000 }])
  expect(names({ ...told, checks: [check(1, 'gone')] })).toEqual(['lockedElsewhere', 'goneCode'])
})

test.each([
  ['passed', 'passed'],
  ['mismatch', 'mistyped'],
] as const)('the newest check %s: %s, and the message had come', (result, name) => {
  expect(names({ checks: [check(1, result)], notices: [notice(30, 'sent')] })).toEqual([name])
})

test.each([[[]], [[code(0)]]])(
  'a wrong code, and none is left that could pass (%j): a new one is needed, except during a lock',
  (codes) => {
    const told = { codes, checks: [check(1, 'mismatch')], notices: [notice(30, 'sent')] }
    expect(names(told)).toEqual(['usedUpCode'])
    expect(names({ ...told, codes: [...codes, code(1)] })).toEqual(['mistyped'])
    expect(names({ ...told, lockedForMs: 899_000 })).toEqual(['locked'])
  },
)

test('a code that is gone may mean that a newer one is on its way: both are shown', () => {
  const told = { checks: [check(1, 'gone')], notices: [notice(30, 'pending')] }
  expect(names(told)).toEqual(['goneCode', 'pending'])
})

test('a check before the newest message shows nothing about that message', () => {
  const told = {
    checks: [check(100, 'passed')],
    notices: [notice(30, 'failed', { error: 'rejected' })],
  }
  expect(of(told)).toContainEqual({ tone: 'bad', name: 'failed', error: 'rejected' })
})

test.each([
  ['pending', 'pending'],
  ['sending', 'pending'],
  ['sent', 'sent'],
  ['delivered', 'delivered'],
  ['failed', 'failed'],
  ['expired', 'expired'],
])('the newest notice %s: %s', (state, name) => {
  expect(names({ notices: [notice(10, state), notice(20, 'delivered')] })).toEqual([name])
})

const limit = (nextInMs: number, over = {}) => ({
  ...{ policy: 'captcha', rule: 'recipient', window: '60s', used: 1, limit: 1, resetsInMs: 0 },
  ...{ isOfCaptcha: true, nextInMs, ...over },
})
const reset = (secondsAgo: number, what: Told['operations'][number]['what']) =>
  ({ at: ago(secondsAgo), what }) as Told['operations'][number]

test('a refusal whose limit has room again, because support reset it, holds no more', () => {
  const refusals = [refusal(20, { retryAfterMs: 3_600_000 })]
  expect(names({ refusals, limits: [limit(0)] })).toEqual(['refusedOver'])
  expect(names({ refusals, operations: [reset(5, ['limits'])] })).toEqual(['refusedOver'])
  // An earlier reset, or one of something else, did not end it.
  expect(names({ refusals, operations: [reset(30, ['limits'])] })).toEqual(['refused'])
  expect(names({ refusals, operations: [reset(5, ['code'])] })).toEqual(['refused'])
  const [held] = of({ refusals, limits: [limit(900_000), limit(0, { rule: 'ip' })] })
  expect(held).toMatchObject({ name: 'refused', ms: 900_000 })
})

test('a refusal by a count that others share, as of an address: a reset of the recipient leaves it', () => {
  const refusals = [refusal(20, { rule: 'ip', retryAfterMs: 600_000 })]
  const limits = [limit(580_000, { rule: 'ip' })]
  expect(of({ refusals, limits, operations: [reset(5, ['limits'])] })).toEqual([
    { tone: 'bad', name: 'refused', rule: 'ip', ms: 580_000 },
  ])
})

test('a code that was accepted after a refusal: its state, not the refusal', () => {
  const refusals = [refusal(20, { retryAfterMs: 3_600_000 })]
  expect(names({ refusals, notices: [notice(5, 'delivered')] })).toEqual(['delivered'])
})

test('a notice that was refused or delivered shows nothing about the code', () => {
  const ofNotice = refusal(2, { policy: 'notice', rule: 'duplicate' })
  const notices = [
    notice(1, 'delivered', { kind: 'notice' }),
    notice(9, 'failed', { error: 'rejected' }),
  ]
  expect(names({ refusals: [ofNotice], notices })).toEqual(['failed'])
  // Without a code, the notice is what the person asks about.
  expect(names({ refusals: [ofNotice] })).toEqual(['refused'])
  expect(names({ notices: notices.slice(0, 1) })).toEqual(['delivered'])
})
