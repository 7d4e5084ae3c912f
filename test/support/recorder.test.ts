import { describe, expect, test } from 'vitest'
import type { RedisClient } from '../../src/base/redis-script.ts'
import { Unavailable } from '../../src/base/unavailable.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { type Decision, parsePolicies, type Refusal } from '../../src/limiter/index.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import type { CheckResult, Recipient } from '../../src/support/record.ts'
import { createFindRecorded } from '../../src/support/recorded.ts'
import { createRecorder } from '../../src/support/recorder.ts'
import { ownRedis } from '../tools/own-servers.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const server = await testRedis()
const redis = await server.connect()
const secret = 'the first secret, of thirty-two bytes or more'

const parsed = parsePolicies({
  captcha: [
    { name: 'recipient', key: '{app}:{channel}:{to}', sliding: '1 per 60s' },
    { name: 'ip', key: '{app}:{ip}', sliding: '60 per 10m' },
  ],
  check: [
    {
      name: 'guesses',
      key: '{app}:{channel}:{to}:{ip}',
      lockout: { limit: 3, window: '5m', lock: '15m' },
    },
  ],
})
if (!parsed.ok) throw new Error('policies')
const { policies } = parsed

const person: Recipient = { app: 'shop', channel: 'sms', to: '+8613800138000' }
const refusal = (rule: string, more: Partial<Refusal> = {}): Refusal => ({
  admitted: false,
  rule,
  window: '60s',
  limit: 1,
  windowMs: 60_000,
  kind: 'sliding',
  retryAfterMs: 59_000,
  ...more,
})

let opened = 0
function open(options: { client?: RedisClient; secrets?: Parameters<typeof createSecrets> } = {}) {
  opened += 1
  const keyPrefix = `${server.prefix}${opened}:`
  let dropped = 0
  const openOn = (secrets: Parameters<typeof createSecrets>) => {
    const deps = {
      redis: options.client ?? redis,
      secrets: createSecrets(...secrets),
      keyPrefix,
      codeTtlMs: 300_000,
    }
    const recorder = createRecorder({
      ...deps,
      policies: () => policies,
      onDropped: (record, lines) => {
        if (record === 'history') dropped += lines
      },
    })
    releaseLater(() => recorder.close())
    return {
      decided: recorder.decided,
      checked: (recipient: Recipient, result: CheckResult) =>
        recorder.checked(recipient, 'r', { result }),
      close: recorder.close,
      find: createFindRecorded(deps),
    }
  }
  const history = openOn(options.secrets ?? [secret])
  const refuse = (decision: Decision, to = person.to, policy = 'captcha', ip = '192.0.2.1') =>
    history.decided({
      policy,
      fields: { ...person, to, ip },
      requestId: 'r',
      decision,
      isSolved: true,
    })
  return { history, refuse, openOn, keyPrefix, dropped: () => dropped }
}

async function scriptCalls(client: RedisClient): Promise<number> {
  const stats = await client.info('commandstats')
  const calls = (name: string) =>
    Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
  return calls('evalsha') + calls('eval')
}

async function connectOwn(url: string): Promise<RedisClient> {
  const client = connectRedis(url, 'command', () => {})
  releaseLater(() => client.disconnect())
  await eventually(() => client.status === 'ready')
  return client
}

test('refusals and checks: the latest first, of this recipient and app only', async () => {
  const { history, refuse } = open()
  const latestWait = async () => (await history.find(person)).refusals[0]?.retryAfterMs
  for (let index = 0; index < 25; index++) {
    const newLock = refusal('guesses', { retryAfterMs: 1_000 + index })
    refuse({ ...newLock, newLock }, person.to, 'check')
    history.checked(person, 'mismatch')
    // A turn writes forty at most.
    if (index % 8 === 7) await eventually(async () => (await latestWait()) === 1_000 + index)
  }
  history.checked({ ...person, app: 'other' }, 'passed')
  history.checked({ ...person, channel: 'email' }, 'passed')
  const found = await eventually(async () => {
    const all = await history.find(person)
    return all.refusals[0]?.retryAfterMs === 1_024 && all
  })
  const waits = found.refusals.map(({ retryAfterMs }) => retryAfterMs)
  expect(waits).toEqual(Array.from({ length: 25 }, (_, index) => 1_024 - index))
  // The guess that began a lock was not refused.
  expect(found.checks).toHaveLength(25)
  expect(found.checks.some(({ result }) => result === 'passed')).toBe(false)
})

test('a request that was only asked for a challenge is told apart', async () => {
  const { history, refuse } = open()
  refuse(refusal('ip', { challenge: true }))
  refuse(refusal('recipient'))
  await history.close()
  const { refusals } = await history.find(person)
  expect(refusals.map(({ rule, challenge }) => [rule, challenge]).sort()).toEqual([
    ['ip', true],
    ['recipient', undefined],
  ])
})

test('the time is that of the refusal, not of the writing', async () => {
  // Again where a busy machine was late.
  await eventually(async () => {
    const { history, refuse } = open()
    const [seconds, micros] = await server.client.time()
    const before = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)
    refuse(refusal('recipient'))
    const { refusals } = await eventually(async () => {
      const all = await history.find(person)
      return all.refusals.length > 0 && all
    })
    const late = (refusals[0]?.at.getTime() ?? 0) - before
    expect(late).toBeGreaterThanOrEqual(-2)
    expect(late).toBeLessThan(150)
  })
})

test('a refusal of a lock tells again what its rule counts by, and nobody else can read it', async () => {
  const { history, refuse, keyPrefix } = open()
  const newLock = refusal('guesses')
  refuse({ ...newLock, newLock }, person.to, 'check', '198.51.100.77')
  const { refusals } = await eventually(async () => {
    const all = await history.find(person)
    return all.refusals.length > 0 && all
  })
  expect(refusals).toMatchObject([{ policy: 'check', values: ['198.51.100.77'] }])
  const keys = await server.client.keys(`${keyPrefix}history:{*`)
  const values = await Promise.all(keys.map((key) => server.client.lrange(key, 0, -1)))
  expect(values.flat()).toHaveLength(1)
  expect(`${keys}${values}`).not.toMatch(/198\.51|13800138000/)
})

test('after a rotation of the secret what was written before is still found; without it not', async () => {
  const { history, openOn } = open()
  history.checked(person, 'mismatch')
  await eventually(async () => (await history.find(person)).checks.length === 1)
  const next = 'the second secret, of thirty-two bytes or more'
  expect((await openOn([next, secret]).find(person)).checks).toHaveLength(1)
  expect((await openOn([next]).find(person)).checks).toEqual([])
})

test('entries past seven days are not told, and leave their ring with the next one', async () => {
  const { history, keyPrefix } = open()
  history.checked(person, 'mismatch')
  const [ring = ''] = await eventually(async () => {
    const keys = await server.client.keys(`${keyPrefix}*`)
    return keys.length > 0 && keys
  })
  const [entry = ''] = await server.client.lrange(ring, 0, -1)
  const old = entry.replace(/^\d+/, (at) => String(Number(at) - 7 * 86_400_000 - 1))
  await server.client.lset(ring, 0, old)
  expect((await history.find(person)).checks).toEqual([])
  history.checked(person, 'passed')
  const { checks } = await eventually(async () => {
    const found = await history.find(person)
    return found.checks.length > 0 && found
  })
  expect(checks.map(({ result }) => result)).toEqual(['passed'])
  expect(await server.client.llen(ring)).toBe(1)
  const livesMs = await server.client.pttl(ring)
  expect(livesMs).toBeGreaterThan(6.9 * 86_400_000)
})

test('a check where no code lives: told as long as a code lives, in a key that ends by itself, and in no ring', async () => {
  const { history, keyPrefix } = open()
  history.checked(person, 'gone')
  const { checks } = await eventually(async () => {
    const all = await history.find(person)
    return all.checks.length > 0 && all
  })
  expect(checks.map(({ result }) => result)).toEqual(['gone'])
  const [seconds] = await server.client.time()
  expect(Math.abs(Number(checks[0]?.at) - Number(seconds) * 1_000)).toBeLessThan(5_000)
  const [key = '', ...more] = await server.client.keys(`${keyPrefix}*`)
  expect(more).toEqual([])
  const livesMs = await server.client.pttl(key)
  expect(livesMs).toBeGreaterThan(290_000)
  expect(livesMs).toBeLessThanOrEqual(300_000)
  await server.client.pexpire(key, 1)
  await eventually(async () => (await history.find(person)).checks.length === 0)
})

test('a lock that a wrong guess began is no refused check; what it refuses afterwards is', async () => {
  const { history, refuse } = open()
  const lock = refusal('guesses', { window: '5m', kind: 'lockout' })
  refuse(refusal('recipient', { retryAfterMs: 86_400_000, newLock: lock }), person.to, 'check')
  refuse(lock, person.to, 'check')
  await history.close()
  const { refusals, checks } = await history.find(person)
  const { rule, window, retryAfterMs } = lock
  expect(refusals).toMatchObject([
    { rule, window, retryAfterMs },
    { rule, window, retryAfterMs, lockBegan: true },
  ])
  expect(checks.map(({ result }) => result)).toEqual(['refused'])
})

describe('a flood', () => {
  test('of one recipient is written once in five seconds', async () => {
    const { history, refuse, dropped } = open()
    for (let index = 0; index < 10_000; index++) refuse(refusal('recipient'))
    for (let index = 0; index < 10_000; index++) history.checked(person, 'gone')
    await eventually(async () => (await history.find(person)).checks.length > 0)
    const { refusals, checks } = await history.find(person)
    expect([refusals.length, checks.length]).toEqual([1, 1])
    expect(dropped()).toBe(0)
  })

  test('of 20,000 recipients costs Redis a few calls; what is above the bound is counted', async () => {
    const own = await ownRedis()
    const client = await connectOwn(own.url)
    const { history, refuse, keyPrefix, dropped } = open({ client })
    for (let index = 0; index < 20_000; index++) refuse(refusal('ip'), `+8613900${10_000 + index}`)
    // A recipient with a limit reached at the same moment keeps its line.
    refuse(refusal('recipient'))
    await eventually(async () => (await history.find(person)).refusals.length > 0)
    expect(await scriptCalls(client)).toBeLessThanOrEqual(6)
    const keys = await client.keys(`${keyPrefix}history:{*`)
    const lengths = await Promise.all(keys.map((key) => client.llen(key)))
    expect(lengths.reduce((sum, length) => sum + length, 0)).toBeLessThanOrEqual(41)
    expect(dropped()).toBeGreaterThan(19_900)
  })

  test('fills no ring above its end', async () => {
    const { history, keyPrefix } = open()
    const turns = 4
    for (let turn = 0; turn < turns; turn++) {
      for (let index = 0; index < 40; index++) history.checked(person, 'mismatch')
      const wantedLength = Math.min(100, 40 * (turn + 1))
      await eventually(async () => {
        const [ring = ''] = await server.client.keys(`${keyPrefix}*`)
        return (await server.client.llen(ring)) === wantedLength
      })
    }
    await history.close()
    const [ring = ''] = await server.client.keys(`${keyPrefix}*`)
    expect(await server.client.llen(ring)).toBe(100)
  })
})

test('Redis away: finding is Unavailable; what cannot be written is dropped and counted, and nobody hears of it', async () => {
  const own = await ownRedis()
  const client = await connectOwn(own.url)
  const { history, dropped } = open({ client })
  await own.stop()
  history.checked(person, 'mismatch')
  await eventually(() => dropped() === 1)
  await expect(history.find(person)).rejects.toBeInstanceOf(Unavailable)
})

test('a flood of one app leaves room for another, which comes last', async () => {
  const { history, dropped } = open()
  for (let index = 0; index < 200; index++) {
    history.checked({ ...person, app: 'flooded', to: `+86138${10_000_000 + index}` }, 'gone')
  }
  const others = Array.from({ length: 15 }, (_, index) => ({
    ...person,
    app: 'other',
    to: `+86139${10_000_000 + index}`,
  }))
  for (const other of others) history.checked(other, 'gone')
  await history.close()
  for (const other of others) expect((await history.find(other)).checks).toHaveLength(1)
  // So many are written in a turn, for any recipients.
  expect(dropped()).toBe(200 + 15 - 40)
})
