import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createCheckCaptcha } from '../../src/captcha/check.ts'
import { type CodeOwner, type CodeStore, createCodeStore } from '../../src/captcha/code-store.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { createLimiter, parsePolicies, type RawPolicies } from '../../src/limiter/index.ts'
import { createMetrics } from '../../src/metrics/metrics.ts'
import { createQuota, type Origin } from '../../src/notice/quota.ts'
import { noTestRecipients } from '../support/no-test-recipients.ts'
import { testRedis } from '../support/redis.ts'
import { releaseLater } from '../support/release.ts'
import { eventually } from '../support/wait.ts'

const origin: Origin = { ip: '203.0.113.1', country: 'CN', keyId: 'key', isPage: false }

const server = await testRedis()
const secrets = createSecrets('the first secret, of thirty-two bytes or more')
const lockout = { limit: 3, window: '5m', lock: '15m' }

let ownerCount = 0
function newOwner(over: Partial<CodeOwner> = {}): CodeOwner {
  ownerCount += 1
  const to = `+86138002${String(ownerCount).padStart(5, '0')}`
  return { app: 'shop', scene: 'login', channel: 'sms', to, ...over }
}

let roomCount = 0
/** The room over a real Redis; `brokenGuess` lets the code store fail. */
async function openRoom(check: RawPolicies[string], brokenGuess?: () => Promise<never>) {
  roomCount += 1
  const policies = { check }
  const parsed = parsePolicies(policies)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
  const keyPrefix = `${server.prefix}${roomCount}:`
  const limiter = createLimiter({
    policies,
    redis: await server.connect('limiter'),
    keyPrefix,
    deadlineMs: 2_000,
  })
  releaseLater(() => limiter.close())
  const store = createCodeStore(await server.connect('code'), secrets, {
    keyPrefix,
    ttlMs: 300_000,
    triesPerCode: 5,
  })
  releaseLater(() => store.close())
  const codes: CodeStore = brokenGuess ? { ...store, guess: brokenGuess } : store
  const metrics = createMetrics({ process: 'api' } as never)
  const announced: string[] = []
  const checkCaptcha = createCheckCaptcha({
    quota: createQuota({ limiter, secrets, priceOf: () => 60, ...noTestRecipients }),
    limiter,
    policies: () => parsed.policies,
    codes,
    metrics,
    testRecipients: noTestRecipients,
    events: {
      passed: (owner, noticeId) => void announced.push(`passed ${owner.to} ${noticeId}`),
      locked: async (owner, { rule }) => void announced.push(`locked ${owner.to} ${rule}`),
    },
  })
  return {
    announced,
    remember: (owner: CodeOwner, code: string, id = newId()) =>
      store.remember(owner, id, code).then(() => id),
    guess: (
      owner: CodeOwner,
      code: string,
      more: { id?: string; ip?: string; origin?: Origin } = {},
    ) => checkCaptcha({ origin: { ...origin, ip: more.ip ?? origin.ip }, ...owner, code, ...more }),
    used: async (owner: CodeOwner, ip = '203.0.113.1') => {
      const states = await limiter.peek('check', { ip, country: 'CN', ...owner } as never)
      return states.map((state) => state.used)
    },
    results: async () =>
      Object.fromEntries(
        (await metrics.checks.get()).values.map(({ labels, value }) => [labels.result, value]),
      ),
  }
}

const byRecipient = { name: 'guesses', key: '{channel}:{to}:{ip}', lockout }

test('each result is what it was and is counted as such; a pass is told with its notice', async () => {
  const { remember, guess, results, announced } = await openRoom([byRecipient])
  const owner = newOwner()
  const id = await remember(owner, '0042')
  expect(await guess(owner, '0043')).toEqual({ result: 'mismatch', triesLeft: 4 })
  expect(await guess(owner, '0042', { id: newId() })).toEqual({ result: 'gone' })
  expect(announced).toEqual([])
  expect(await guess(owner, '0042', { id })).toEqual({ result: 'passed', noticeId: id })
  expect(announced).toEqual([`passed ${owner.to} ${id}`])
  const other = newOwner()
  for (let guesses = 0; guesses < 3; guesses++) await guess(other, '0000')
  expect(await guess(other, '0000')).toMatchObject({
    result: 'refused',
    refusal: { rule: 'guesses', kind: 'lockout', isNewLock: true },
  })
  expect(await results()).toMatchObject({ passed: 1, mismatch: 1, gone: 4, refused: 1 })
})

test('a lock is told when it begins and never again while it is met', async () => {
  const { guess, announced } = await openRoom([byRecipient])
  const owner = newOwner()
  for (let guesses = 0; guesses < 3; guesses++) await guess(owner, '0000')
  expect(announced).toEqual([])
  expect(await guess(owner, '0000')).toMatchObject({ refusal: { isNewLock: true } })
  expect(await guess(owner, '0000')).not.toMatchObject({ refusal: { isNewLock: true } })
  expect(announced).toEqual([`locked ${owner.to} guesses`])
})

test('a rule that is no lockout refuses without a word to anybody', async () => {
  const { guess, announced } = await openRoom([{ name: 'r', key: '{to}', sliding: '1 per 1h' }])
  const owner = newOwner()
  await guess(owner, '0000')
  expect(await guess(owner, '0000')).toMatchObject({ result: 'refused', refusal: { rule: 'r' } })
  expect(announced).toEqual([])
})

test('a guess that was refused is not compared: it takes no try of the code', async () => {
  const { remember, guess } = await openRoom([byRecipient])
  const owner = newOwner()
  await remember(owner, '0042')
  for (let guesses = 0; guesses < 3; guesses++) await guess(owner, '0000')
  for (let guesses = 0; guesses < 5; guesses++) {
    expect(await guess(owner, '0042')).toMatchObject({ result: 'refused' })
  }
  // From another address the lock does not hold, and of five tries three are used.
  expect(await guess(owner, '0000', { ip: '203.0.113.2' })).toEqual({
    result: 'mismatch',
    triesLeft: 1,
  })
})

test('a right code forgives earlier misses where the rule is about the recipient, and there alone', async () => {
  const { remember, guess, used } = await openRoom([
    byRecipient,
    { name: 'address', key: '{ip}', lockout: { ...lockout, limit: 10 } },
    { name: 'uses', key: '{to}', sliding: '9 per 1h' },
    { name: 'window', key: '{to}', fixed: '9 per 1h' },
  ])
  const owner = newOwner()
  await remember(owner, '0042')
  await guess(owner, '0000')
  await guess(owner, '0001')
  expect(await used(owner)).toEqual([2, 2, 2, 2])
  expect(await guess(owner, '0042')).toMatchObject({ result: 'passed' })
  // The pass itself is no guess at the address; the misses stay, and rules of other kinds count every use.
  await eventually(async () => expect(await used(owner)).toEqual([0, 2, 3, 3]))
})

test('a budget of guesses that asks for a challenge: a right code takes nothing from it, and wins nothing back', async () => {
  const { remember, guess, used } = await openRoom([
    { name: 'budget', key: '{to}', sliding: '9 per 24h', mode: 'challenge' },
    { name: 'locks', key: '{to}', lockout, mode: 'challenge' },
  ])
  const owner = newOwner()
  await remember(owner, '0042')
  await guess(owner, '0000')
  await guess(owner, '0001')
  expect(await used(owner)).toEqual([2, 2])
  expect(await guess(owner, '0042')).toMatchObject({ result: 'passed' })
  await eventually(async () => expect(await used(owner)).toEqual([2, 0]))
})

test('only a pass forgives: a mismatch and a code that is gone count on', async () => {
  const { remember, guess, used } = await openRoom([byRecipient])
  const owner = newOwner()
  await guess(owner, '0042')
  await remember(owner, '0042')
  await guess(owner, '0043')
  expect(await used(owner)).toEqual([2])
})

test('a pass forgives nothing of other recipients, addresses or apps', async () => {
  const { remember, guess, used } = await openRoom([
    { name: 'guesses', key: '{app}:{channel}:{to}:{ip}', lockout },
  ])
  const owner = newOwner()
  const others = [newOwner(), { ...owner, app: 'bank' }, { ...owner, channel: 'email' as const }]
  for (const other of others) await guess(other, '0000')
  await guess(owner, '0000', { ip: '203.0.113.9' })
  await remember(owner, '0042')
  expect(await guess(owner, '0042')).toMatchObject({ result: 'passed' })
  await eventually(async () => expect(await used(owner)).toEqual([0]))
  for (const other of others) expect(await used(other)).toEqual([1])
  expect(await used(owner, '203.0.113.9')).toEqual([1])
})

test('the code store out of reach: the guess is given back to every rule, and nothing is counted as a result', async () => {
  const { guess, used, results } = await openRoom(
    [
      byRecipient,
      { name: 'address', key: '{ip}', sliding: '9 per 1h' },
      { name: 'app', key: '{app}', fixed: '9 per 1h' },
    ],
    () => Promise.reject(new Error('away')),
  )
  const owner = newOwner()
  for (let guesses = 0; guesses < 5; guesses++) {
    await expect(guess(owner, '0042')).rejects.toThrow('away')
    await eventually(async () => expect(await used(owner)).toEqual([0, 0, 0]))
  }
  expect(Object.values(await results()).every((value) => value === 0)).toBe(true)
})

test('the fields of a rule are those of the request', async () => {
  const other = { scene: 'other', app: 'other', channel: 'email', to: '+8613700137999' } as const
  const others: Record<string, object> = {
    scene: { scene: other.scene },
    app: { app: other.app },
    channel: { channel: other.channel },
    to: { to: other.to },
    prefix: { to: other.to },
    mailbox: { to: other.to },
    ip: { origin: { ...origin, ip: '203.0.113.2' } },
    country: { origin: { ...origin, country: 'DE' } },
    keyId: { origin: { ...origin, keyId: 'other' } },
  }
  for (const [field, more] of Object.entries(others)) {
    const { guess } = await openRoom([{ name: 'r', key: `{${field}}`, sliding: '1 per 1h' }])
    const owner = newOwner()
    expect(await guess(owner, '0000')).toMatchObject({ result: 'gone' })
    expect(await guess(owner, '0000')).toMatchObject({ result: 'refused' })
    expect(await guess(owner, '0000', more)).toMatchObject({ result: 'gone' })
  }
})
