import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createCheckCaptcha } from '../../src/captcha/check.ts'
import { type CodeOwner, type CodeStore, createCodeStore } from '../../src/captcha/code-store.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import {
  createLimiter,
  parsePolicies,
  type RawPolicies,
  type Refusal,
} from '../../src/limiter/index.ts'
import type { Origin } from '../../src/rules/caller.ts'
import { createGuessLimits } from '../../src/rules/guess-limits.ts'
import { withPageRules } from '../../src/rules/policies.ts'
import { createQuota } from '../../src/rules/quota.ts'
import { testMetrics } from '../tools/metrics.ts'
import { noKnownBrowsers } from '../tools/no-known-browsers.ts'
import { noTestRecipients } from '../tools/no-test-recipients.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

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

const redis = await server.connect()
async function keysOf(prefix: string): Promise<string[]> {
  const keys = await redis.keys(`${prefix}*`)
  // Calls without a request id share keys. Other tests ask about them.
  return keys.filter((key) => !key.includes('call:')).sort()
}

let roomCount = 0
type Deps = Parameters<typeof createCheckCaptcha>[0]

/** The room over a real Redis. `guessBy` replaces the comparison of the code store, `over` replaces neighbours. */
async function openRoom(
  check: RawPolicies[string],
  {
    guessBy,
    checkRules = [],
    over,
  }: { guessBy?: CodeStore['guess']; checkRules?: RawPolicies[string]; over?: Partial<Deps> } = {},
) {
  roomCount += 1
  const policies = withPageRules({ captcha: [], check }, { rules: [], checkRules }) as RawPolicies
  const parsed = parsePolicies(policies)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
  const keyPrefix = `${server.prefix}${roomCount}:`
  /** Rules whose refusals were counted in metrics. */
  const refused: string[] = []
  const limiter = createLimiter({
    policies,
    redis: await server.connect('limiter'),
    keyPrefix,
    deadlineMs: 2_000,
    onRefused: ({ rule }) => refused.push(rule),
  })
  releaseLater(() => limiter.close())
  const store = createCodeStore(await server.connect('code'), secrets, {
    keyPrefix,
    ttlMs: 300_000,
    triesPerCode: 5,
  })
  releaseLater(() => store.close())
  const codes: CodeStore = guessBy ? { ...store, guess: guessBy } : store
  const metrics = testMetrics()
  const announced: string[] = []
  /** Answers to challenges. */
  const gaveBack: true[] = []
  const decided: string[] = []
  const recorded: string[] = []
  const quota = createQuota({
    limiter,
    dedupeHash: secrets.dedupeHash,
    priceOf: () => 60,
    ...noTestRecipients,
    policies: () => parsed.policies,
    onDecided: ({ policy }) => decided.push(policy),
  })
  const limits = createGuessLimits({ quota, limiter, policies: () => parsed.policies })
  let country = ''
  const checkCaptcha = createCheckCaptcha({
    normaliseRecipient: (_, to) => ({ kind: 'ok', to, country }),
    findCaptcha: async () => null,
    challenges: {
      enter: async () => ({ isHuman: true, giveBack: () => void gaveBack.push(true) }),
      refuse: async (_, limited) => limited,
    },
    limits,
    codes,
    code: { length: 4, own: false },
    passes: { issue: () => 'a pass' },
    known: noKnownBrowsers,
    metrics,
    testRecipients: noTestRecipients,
    nowMs: () => 0,
    events: {
      passed: (owner, noticeId) => void announced.push(`passed ${owner.to} ${noticeId}`),
      ended: async () => {},
      locked: async (owner, { rule }) => void announced.push(`locked ${owner.to} ${rule}`),
    },
    onChecked: (_, __, { result }) => recorded.push(result),
    ...over,
  })
  return {
    announced,
    gaveBack,
    decided,
    recorded,
    refused,
    limits,
    keys: () => keysOf(keyPrefix),
    drop: (owner: CodeOwner) => store.drop(owner),
    remember: (owner: CodeOwner, code: string, id = newId()) =>
      store.remember(owner, id, code).then(() => id),
    /** A recipient that has the code 0042. */
    async ownerWithCode() {
      const owner = newOwner()
      await store.remember(owner, newId(), '0042')
      return owner
    },
    guess: (
      owner: CodeOwner,
      code: string,
      more: { id?: string; ip?: string; origin?: Origin } = {},
    ) => {
      const { app, ...typed } = owner
      const caller = { ...origin, ...more.origin, app, origins: [] }
      country = caller.country
      return checkCaptcha({ ...typed, code, ip: more.ip, id: more.id }, caller)
    },
    used: async (owner: CodeOwner, ip = '203.0.113.1', policy = 'check') => {
      const states = await limiter.peek(policy, { ip, country: 'CN', ...owner } as never)
      return states.map((state) => state.used)
    },
    results: async () =>
      Object.fromEntries(
        (await metrics.checks.get()).values.map(({ labels, value }) => [labels.result, value]),
      ),
  }
}

const byRecipient = { name: 'guesses', key: '{channel}:{to}:{ip}', lockout }
const roomy = { name: 'budget', key: '{to}', sliding: '20 per 24h' }

test('each result is returned and counted; a pass is recorded with its notice', async () => {
  const { ownerWithCode, remember, guess, results, announced } = await openRoom([byRecipient])
  const owner = newOwner()
  const id = await remember(owner, '0042')
  expect(await guess(owner, '0043')).toEqual({ outcome: 'code_mismatch', triesLeft: 4 })
  expect(await guess(owner, '0042', { id: newId() })).toMatchObject({ outcome: 'code_gone' })
  expect(announced).toEqual([])
  expect(await guess(owner, '0042', { id })).toEqual({
    outcome: 'passed',
    id,
    scene: 'login',
    verifiedAt: '1970-01-01T00:00:00.000Z',
    pass: 'a pass',
  })
  expect(announced).toEqual([`passed ${owner.to} ${id}`])
  const other = await ownerWithCode()
  for (let guesses = 0; guesses < 3; guesses++) await guess(other, '0000')
  expect(await guess(other, '0000')).toMatchObject({
    outcome: 'locked',
    policy: 'check',
    rule: 'guesses',
  })
  expect(await results()).toMatchObject({ passed: 1, mismatch: 4, gone: 1, refused: 1 })
})

test('repeats of a right check, at once and later: one event, one record, one use of a rule, no second result', async () => {
  const { remember, guess, results, announced, recorded, used } = await openRoom([roomy])
  const owner = newOwner()
  const id = await remember(owner, '0042')
  const atOnce = await Promise.all(Array.from({ length: 8 }, () => guess(owner, '0042', { id })))
  for (const each of [...atOnce, await guess(owner, '0042', { id })]) {
    expect(each).toMatchObject({ outcome: 'passed', id, pass: 'a pass' })
  }
  const keyOfAnother = { ...origin, keyId: 'another' }
  expect(await guess(owner, '0042', { id, origin: keyOfAnother })).toMatchObject({
    outcome: 'code_gone',
  })
  expect(announced).toEqual([`passed ${owner.to} ${id}`])
  expect(recorded).toEqual(['passed', 'gone'])
  expect(await results()).toMatchObject({ passed: 1, gone: 1 })
  await eventually(async () => expect(await used(owner)).toEqual([1]))
})

test('the wrong guess that fills a lockout begins its lock, reports its length and writes one event', async () => {
  const { ownerWithCode, guess, announced, refused } = await openRoom([byRecipient, roomy])
  const owner = await ownerWithCode()
  expect(await guess(owner, '0000')).toEqual({ outcome: 'code_mismatch', triesLeft: 4 })
  expect(await guess(owner, '0000')).toEqual({ outcome: 'code_mismatch', triesLeft: 3 })
  expect(announced).toEqual([])
  const last = await guess(owner, '0000')
  expect(last).toEqual({ outcome: 'code_mismatch', triesLeft: 2, lockedForMs: 900_000 })
  expect(announced).toEqual([`locked ${owner.to} guesses`])
  expect(refused).toEqual([])
  const next = await guess(owner, '0042')
  expect(next).not.toHaveProperty('newLock')
  const { retryAfterMs } = next as Refusal
  expect(retryAfterMs).toBeLessThanOrEqual(900_000)
  expect(retryAfterMs).toBeGreaterThan(800_000)
  expect(announced).toHaveLength(1)
  expect(refused).toEqual(['guesses'])
})

test('a lockout whose guesses take two permits each: the guess after which none fits begins the lock', async () => {
  const double = { ...byRecipient, lockout: { limit: 5, window: '5m', lock: '15m' }, permits: 2 }
  const { ownerWithCode, guess, announced } = await openRoom([double])
  const owner = await ownerWithCode()
  expect(await guess(owner, '0000')).toEqual({ outcome: 'code_mismatch', triesLeft: 4 })
  const last = { outcome: 'code_mismatch', triesLeft: 3, lockedForMs: 900_000 }
  expect(await guess(owner, '0000')).toEqual(last)
  expect(announced).toEqual([`locked ${owner.to} guesses`])
})

test('a lock is announced with its own length when another rule refuses for longer', async () => {
  const locks: string[] = []
  const day = { name: 'budget', key: '{to}', sliding: '3 per 24h' }
  const locked: Deps['events']['locked'] = (_, { rule, retryAfterMs }) =>
    void locks.push(`${rule} ${retryAfterMs}`)
  const events = { passed: () => {}, ended: async () => {}, locked }
  const { ownerWithCode, guess } = await openRoom([byRecipient, day], { over: { events } })
  const owner = await ownerWithCode()
  for (const _ of [1, 2]) await guess(owner, '0000')
  const { lockedForMs } = (await guess(owner, '0000')) as { lockedForMs: number }
  expect(lockedForMs).toBeGreaterThan(86_000_000)
  expect(locks).toEqual(['guesses 900000'])
})

test('the guess that fills a rule of another kind reports the wait, and writes no event', async () => {
  const { ownerWithCode, guess, announced, decided, used } = await openRoom([
    { name: 'r', key: '{to}', sliding: '2 per 1h' },
    byRecipient,
  ])
  const owner = await ownerWithCode()
  expect(await guess(owner, '0000')).toEqual({ outcome: 'code_mismatch', triesLeft: 4 })
  const { lockedForMs, ...last } = (await guess(owner, '0000')) as { lockedForMs: number }
  expect(last).toEqual({ outcome: 'code_mismatch', triesLeft: 3 })
  expect(lockedForMs).toBeLessThanOrEqual(3_600_000)
  expect(lockedForMs).toBeGreaterThan(3_500_000)
  expect(await used(owner)).toEqual([2, 2])
  expect(decided).toEqual(['check', 'check'])
  expect(await guess(owner, '0042')).toMatchObject({ outcome: 'limited', rule: 'r' })
  expect(announced).toEqual([])
})

test('rules that only observe, or ask for a challenge, are no lock, so a wrong guess or a send reports none', async () => {
  const { ownerWithCode, guess, limits } = await openRoom([
    { ...byRecipient, name: 'seen', mode: 'observe' },
    { name: 'asks', key: '{to}', sliding: '1 per 1h', mode: 'challenge' },
    roomy,
  ])
  const owner = await ownerWithCode()
  for (const triesLeft of [4, 3, 2, 1]) {
    expect(await guess(owner, '0000')).toEqual({ outcome: 'code_mismatch', triesLeft })
  }
  expect(await limits.waitMsOf(owner, origin)).toBe(0)
})

test('a send reports how long checks are locked for this recipient and address, and for no other', async () => {
  const { ownerWithCode, guess, limits } = await openRoom([byRecipient])
  const owner = await ownerWithCode()
  for (const _ of [1, 2]) await guess(owner, '0000')
  expect(await limits.waitMsOf(owner, origin)).toBe(0)
  await guess(owner, '0000')
  const waitMs = await limits.waitMsOf(owner, origin)
  expect(waitMs).toBeLessThanOrEqual(900_000)
  expect(waitMs).toBeGreaterThan(800_000)
  expect(await limits.waitMsOf(newOwner(), origin)).toBe(0)
  expect(await limits.waitMsOf(owner, { ...origin, ip: '203.0.113.2' })).toBe(0)
})

const gone: [string, (room: Awaited<ReturnType<typeof openRoom>>, owner: CodeOwner) => unknown][] =
  [
    ['never sent', () => {}],
    [
      'used',
      async ({ remember, guess }, owner) => {
        await remember(owner, '0042')
        await guess(owner, '0042')
      },
    ],
    [
      'ended',
      async ({ remember, drop }, owner) => {
        await remember(owner, '0042')
        await drop(owner)
      },
    ],
    [
      'out of tries',
      async ({ remember, guess }, owner) => {
        await remember(owner, '0042')
        for (let tries = 0; tries < 5; tries++) {
          await guess(owner, '0000', { ip: `203.0.113.${10 + tries}` })
        }
      },
    ],
  ]

test.each(gone)(
  'a code that is %s: gone, however often; nothing is counted, kept, locked or reported',
  async (_, prepare) => {
    const { keys, guess, used, announced, decided, ...room } = await openRoom([byRecipient, roomy])
    const owner = newOwner()
    await prepare({ keys, guess, used, announced, decided, ...room }, owner)
    // The effects of a pass on the limits come after its answer.
    await eventually(async () => expect((await used(owner))[0]).toBe(0))
    const before = {
      keys: await keys(),
      used: await used(owner),
      told: [...announced],
      decided: decided.length,
    }
    for (let guesses = 0; guesses < 30; guesses++) {
      expect(await guess(owner, '0042')).toMatchObject({ outcome: 'code_gone' })
    }
    expect({
      keys: await keys(),
      used: await used(owner),
      told: announced,
      decided: decided.length,
    }).toEqual(before)
  },
)

test('a code that is gone while a lock holds: locked, to its end', async () => {
  const { ownerWithCode, guess, drop, announced, refused } = await openRoom([byRecipient, roomy])
  const owner = await ownerWithCode()
  for (let guesses = 0; guesses < 3; guesses++) await guess(owner, '0000')
  await drop(owner)
  expect(await guess(owner, '0000')).toMatchObject({
    outcome: 'locked',
    policy: 'check',
    rule: 'guesses',
  })
  expect(refused).toEqual(['guesses'])
  expect(await guess(owner, '0000', { ip: '203.0.113.2' })).toMatchObject({ outcome: 'code_gone' })
  expect(announced).toEqual([`locked ${owner.to} guesses`])
})

const page: Origin = { ...origin, isPage: true }
const perAddress = {
  name: 'check-ip',
  key: '{app}:{ip}',
  sliding: '4 per 10m',
  refund: 'passed',
} as const

test('a page is asked its own rule for every check, of codes that live and of others, and keeps one count per address', async () => {
  const { ownerWithCode, guess, keys, decided } = await openRoom([byRecipient], {
    checkRules: [perAddress],
  })
  const owner = await ownerWithCode()
  await guess(owner, '0000', { origin: page })
  expect(decided).toEqual(['browser-guess'])
  const before = (await keys()).length
  for (let guesses = 0; guesses < 3; guesses++) {
    expect(await guess(newOwner(), '0000', { origin: page })).toMatchObject({
      outcome: 'code_gone',
    })
  }
  expect(await keys()).toHaveLength(before)
  const refused = { outcome: 'limited', rule: 'check-ip', window: '10m' }
  expect(await guess(newOwner(), '0000', { origin: page })).toMatchObject(refused)
  expect(await guess(owner, '0042', { origin: page })).toMatchObject(refused)
  // Another address and a server are not locked.
  expect(await guess(newOwner(), '0000', { origin: { ...page, ip: '203.0.113.2' } })).toMatchObject(
    { outcome: 'code_gone' },
  )
  expect(await guess(newOwner(), '0000')).toMatchObject({ outcome: 'code_gone' })
  expect(await guess(owner, '0042')).toMatchObject({ outcome: 'passed' })
  expect(decided).toEqual(['browser-guess', 'browser-guess', 'check'])
})

test('a page that has solved a challenge: the rule that asks for one does not refuse checks without a code', async () => {
  const { guess } = await openRoom([], {
    checkRules: [{ name: 'asks', key: '{ip}', sliding: '1 per 1h', mode: 'challenge' }],
  })
  for (let guesses = 0; guesses < 3; guesses++) {
    expect(await guess(newOwner(), '0000', { origin: page })).toMatchObject({
      outcome: 'code_gone',
    })
  }
})

test('right codes take nothing from a rule with `refund: passed`: a crowd behind one address signs in', async () => {
  const { ownerWithCode, guess, used } = await openRoom([], { checkRules: [perAddress] })
  for (let person = 0; person < 12; person++) {
    const owner = await ownerWithCode()
    expect(await guess(owner, '0042', { origin: page })).toMatchObject({ outcome: 'passed' })
    await eventually(async () => expect(await used(owner, page.ip, 'browser-check')).toEqual([0]))
  }
})

test('a hundred parallel guesses: no more are compared than the budget allows, and the lock has one event', async () => {
  const { ownerWithCode, guess, announced } = await openRoom([byRecipient], {
    checkRules: [{ ...perAddress, sliding: '50 per 10m' }],
  })
  const owner = await ownerWithCode()
  const outcomes = await Promise.all(
    Array.from({ length: 100 }, () => guess(owner, '0000', { origin: page })),
  )
  expect(outcomes.filter(({ outcome }) => outcome === 'code_mismatch')).toHaveLength(3)
  expect(outcomes.filter(({ outcome }) => outcome === 'locked')).toHaveLength(97)
  expect(announced).toEqual([`locked ${owner.to} guesses`])
})

test('a rule that is no lockout refuses without an event', async () => {
  const { ownerWithCode, guess, announced } = await openRoom([
    { name: 'r', key: '{to}', sliding: '1 per 1h' },
  ])
  const owner = await ownerWithCode()
  await guess(owner, '0000')
  expect(await guess(owner, '0000')).toMatchObject({ outcome: 'limited', rule: 'r' })
  expect(announced).toEqual([])
})

test('a guess that was refused is not compared: it takes no try of the code', async () => {
  const { ownerWithCode, guess } = await openRoom([byRecipient])
  const owner = await ownerWithCode()
  for (let guesses = 0; guesses < 3; guesses++) await guess(owner, '0000')
  for (let guesses = 0; guesses < 5; guesses++) {
    expect(await guess(owner, '0042')).toMatchObject({ outcome: 'locked' })
  }
  // From another address the lock does not apply, and three of five tries are used.
  expect(await guess(owner, '0000', { ip: '203.0.113.2' })).toEqual({
    outcome: 'code_mismatch',
    triesLeft: 1,
  })
})

test('an answer to a challenge is given back where nothing was compared because of the limits or a server, and else used up', async () => {
  const { ownerWithCode, guess, gaveBack } = await openRoom([
    { name: 'r', key: '{to}', sliding: '2 per 1h' },
  ])
  const owner = await ownerWithCode()
  await guess(owner, '0000')
  await guess(owner, '0042')
  await guess(owner, '0042')
  expect(gaveBack).toHaveLength(0)
  const other = await ownerWithCode()
  for (const _ of [1, 2]) await guess(other, '0000')
  expect(await guess(other, '0042')).toMatchObject({ outcome: 'limited' })
  expect(gaveBack).toHaveLength(1)

  const broken = await openRoom([byRecipient], { guessBy: () => Promise.reject(new Error('away')) })
  await broken.remember(owner, '0042')
  await expect(broken.guess(owner, '0042')).rejects.toThrow('away')
  expect(broken.gaveBack).toHaveLength(1)
})

test('a right code forgives earlier misses where the rule is about the recipient, and there alone', async () => {
  const { ownerWithCode, guess, used } = await openRoom([
    byRecipient,
    { name: 'address', key: '{ip}', lockout: { ...lockout, limit: 10 } },
    { name: 'uses', key: '{to}', sliding: '9 per 1h' },
    { name: 'window', key: '{to}', fixed: '9 per 1h' },
  ])
  const owner = await ownerWithCode()
  await guess(owner, '0000')
  await guess(owner, '0001')
  expect(await used(owner)).toEqual([2, 2, 2, 2])
  expect(await guess(owner, '0042')).toMatchObject({ outcome: 'passed' })
  // The pass does not count as a guess at the address. Wrong guesses stay counted, and rules of other kinds count
  // every use.
  await eventually(async () => expect(await used(owner)).toEqual([0, 2, 3, 3]))
})

test('a budget of guesses that asks for a challenge: a right code takes nothing from it, and wins nothing back', async () => {
  const { ownerWithCode, guess, used } = await openRoom([
    { name: 'budget', key: '{to}', sliding: '9 per 24h', mode: 'challenge' },
    { name: 'locks', key: '{to}', lockout, mode: 'challenge' },
  ])
  const owner = await ownerWithCode()
  await guess(owner, '0000')
  await guess(owner, '0001')
  expect(await used(owner)).toEqual([2, 2])
  expect(await guess(owner, '0042')).toMatchObject({ outcome: 'passed' })
  await eventually(async () => expect(await used(owner)).toEqual([2, 0]))
})

test('only a pass forgives: a mismatch and a new code leave the count', async () => {
  const { ownerWithCode, remember, guess, used } = await openRoom([byRecipient])
  const owner = await ownerWithCode()
  await guess(owner, '0043')
  await remember(owner, '0044')
  await guess(owner, '0043')
  expect(await used(owner)).toEqual([2])
})

test('a pass forgives nothing of other recipients, addresses or apps', async () => {
  const { remember, guess, used } = await openRoom([
    { name: 'guesses', key: '{app}:{channel}:{to}:{ip}', lockout },
  ])
  const owner = newOwner()
  const others = [newOwner(), { ...owner, app: 'bank' }, { ...owner, channel: 'email' as const }]
  await remember(owner, '0042')
  for (const other of others) {
    await remember(other, '0042')
    await guess(other, '0000')
  }
  await guess(owner, '0000', { ip: '203.0.113.9' })
  expect(await guess(owner, '0042')).toMatchObject({ outcome: 'passed' })
  await eventually(async () => expect(await used(owner)).toEqual([0]))
  for (const other of others) expect(await used(other)).toEqual([1])
  expect(await used(owner, '203.0.113.9')).toEqual([1])
})

test('the code store out of reach: the guess is given back to every rule, and nothing is counted as a result', async () => {
  const { ownerWithCode, guess, used, results } = await openRoom(
    [
      byRecipient,
      { name: 'address', key: '{ip}', sliding: '9 per 1h' },
      { name: 'app', key: '{app}', fixed: '9 per 1h' },
    ],
    { guessBy: () => Promise.reject(new Error('away')) },
  )
  const owner = await ownerWithCode()
  for (let guesses = 0; guesses < 5; guesses++) {
    await expect(guess(owner, '0042')).rejects.toThrow('away')
    await eventually(async () => expect(await used(owner)).toEqual([0, 0, 0]))
  }
  expect(Object.values(await results()).every((value) => value === 0)).toBe(true)
})

test('a code that ends between the look and the guess: nothing was compared, so the guess is given back', async () => {
  const { ownerWithCode, guess, used } = await openRoom([byRecipient], {
    guessBy: async () => ({ result: 'gone', reason: 'expired' }),
  })
  const owner = await ownerWithCode()
  expect(await guess(owner, '0042')).toMatchObject({ outcome: 'code_gone' })
  await eventually(async () => expect(await used(owner)).toEqual([0]))
})

test.each([
  ['a recipient that takes no message', { normaliseRecipient: () => ({ kind: 'invalid' }) }],
  ['an open challenge', { challenges: { enter: async () => ({ outcome: 'challenge_required' }) } }],
  ['a code of another length', {}, '00042'],
])('%s: answered before anything is compared or counted', async (_, over, code = '0042') => {
  const room = await openRoom([byRecipient], { over: over as Partial<Deps> })
  const owner = await room.ownerWithCode()
  const { outcome } = await room.guess(owner, code)
  expect(['invalid_recipient', 'challenge_required', 'invalid_request']).toContain(outcome)
  expect({
    used: await room.used(owner),
    recorded: room.recorded,
    gaveBack: room.gaveBack,
  }).toEqual({ used: [0], recorded: [], gaveBack: [] })
})

test('a test recipient: a wrong guess is counted, recorded and announced like any, a right one is not', async () => {
  const testRecipients = { isTestRecipient: () => true }
  const room = await openRoom([byRecipient], { over: { testRecipients } })
  const owner = await room.ownerWithCode()
  expect(await room.guess(owner, '0000')).toMatchObject({ outcome: 'code_mismatch' })
  expect(await room.guess(owner, '0042')).toMatchObject({ outcome: 'passed' })
  expect(room.recorded).toEqual(['mismatch'])
  expect(await room.results()).toMatchObject({ mismatch: 1, passed: 0 })
  expect(room.announced).toEqual([])
})

test('a rule gets the fields of the request', async () => {
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
    block: { to: other.to },
    ipWide: { origin: { ...origin, ip: '2001:db8:1:2::/64' } },
  }
  for (const [field, more] of Object.entries(others)) {
    const { remember, guess } = await openRoom([
      { name: 'r', key: `{${field}}`, sliding: '1 per 1h' },
    ])
    const owner = newOwner()
    const another = { ...owner, ...more }
    await remember(owner, '0042')
    if (!('origin' in more)) await remember(another, '0042')
    expect(await guess(owner, '0000')).toMatchObject({ outcome: 'code_mismatch' })
    expect(await guess(owner, '0000')).toMatchObject({ outcome: 'limited' })
    expect(await guess(another, '0000', more)).toMatchObject({ outcome: 'code_mismatch' })
  }
})

test('`code.length` has changed since the code was made: its digits get code_gone, other lengths a 400, and none costs a try', async () => {
  const { guess, remember, used, recorded } = await openRoom([roomy])
  const owner = newOwner()
  const id = await remember(owner, '004217')
  for (const code of ['004217', '123456']) {
    expect(await guess(owner, code, { id })).toEqual({ outcome: 'code_gone', reason: 'expired' })
  }
  for (const code of ['12345', '00421a', '1']) {
    expect(await guess(owner, code, { id })).toMatchObject({ outcome: 'invalid_request' })
  }
  expect(await guess(owner, '004217', { id: newId() })).toMatchObject({
    outcome: 'invalid_request',
  })
  expect(await guess(newOwner(), '004217')).toMatchObject({ outcome: 'invalid_request' })
  expect({ used: await used(owner), recorded }).toEqual({ used: [0], recorded: [] })
  expect(await guess(owner, '1234', { id })).toMatchObject({
    outcome: 'code_mismatch',
    triesLeft: 4,
  })
})
