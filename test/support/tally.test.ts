/** Sums by app, rule and hour: their contents, their cost for Redis, and their end. */
import { expect, test } from 'vitest'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { parsePolicies, type Refusal } from '../../src/limiter/index.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { createRecorder } from '../../src/support/recorder.ts'
import { createReadTally, createTally } from '../../src/support/tally.ts'
import { ownRedis } from '../tools/own-servers.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const server = await testRedis()
const redis = await server.connect()
const parsed = parsePolicies({
  captcha: [
    { name: 'recipient', key: '{app}:{channel}:{to}', sliding: '1 per 60s' },
    { name: 'human', key: '{app}:{ip}', sliding: '3 per 60s', mode: 'challenge' },
  ],
  browser: [{ include: 'captcha' }],
})
if (!parsed.ok) throw new Error('policies')
const { policies } = parsed

const refusal = (rule: string, more: Partial<Refusal> = {}): Refusal => ({
  ...{ admitted: false, rule, window: '60s', limit: 1, windowMs: 60_000, kind: 'sliding' },
  retryAfterMs: 59_000,
  ...more,
})

let opened = 0
function open() {
  opened += 1
  const keyPrefix = `${server.prefix}${opened}:`
  const recorder = createRecorder({
    ...{ redis, keyPrefix, codeTtlMs: 300_000 },
    secrets: createSecrets('the first secret, of thirty-two bytes or more'),
    policies: () => policies,
    onDropped: () => {},
  })
  releaseLater(() => recorder.close())
  const read = createReadTally(redis, keyPrefix)
  return {
    keyPrefix,
    recorder,
    read,
    refuse: (at: number, decision: Refusal, app = 'shop') =>
      recorder.decided({
        policy: 'browser',
        fields: {
          ...{ app, channel: 'sms', to: `+8613800${String(at).padStart(6, '0')}` },
          ...{ ip: `192.0.2.${at % 250}`, scene: `scene-${at}`, template: `t${at}` },
        },
        requestId: `r${at}`,
        decision,
        isSolved: false,
      } as never),
    async counts() {
      await recorder.close()
      return (await read()).flatMap(({ counts }) => counts)
    },
  }
}

test('refusals by the rule that was declared, challenges apart, right codes by app; a code that began a lock was compared', async () => {
  const { refuse, recorder, counts } = open()
  refuse(1, refusal('recipient'))
  refuse(1, refusal('recipient'))
  refuse(2, refusal('human', { challenge: true } as Partial<Refusal>))
  refuse(3, refusal('recipient'), 'bank')
  refuse(4, refusal('recipient', { newLock: refusal('recipient') }))
  const person = { app: 'shop', channel: 'sms', to: '+8613800138000' } as const
  for (const result of ['passed', 'mismatch', 'gone', 'passed'] as const) {
    recorder.checked(person, 'r', { result })
  }
  const sums = (await counts()).map(({ what, app, policy, rule, count }) =>
    [what, app, policy, rule, count].join(' '),
  )
  expect(sums.sort()).toEqual([
    'challenged shop captcha human 1',
    'passed shop   2',
    'refused bank captcha recipient 1',
    'refused shop captcha recipient 2',
  ])
})

test('each second is added to those before it', async () => {
  const { refuse, read, recorder } = open()
  const sum = async () => {
    const counts = (await read()).flatMap((hour) => hour.counts)
    return counts.reduce((all, { count }) => all + count, 0)
  }
  refuse(1, refusal('recipient'))
  await eventually(async () => (await sum()) === 1)
  refuse(1, refusal('recipient'))
  await recorder.close()
  expect(await sum()).toBe(2)
})

test('5,000 recipients, addresses, scenes and templates: one key, one field, and it goes within a day and an hour', async () => {
  const { refuse, counts, keyPrefix } = open()
  for (let at = 0; at < 5_000; at++) refuse(at, refusal('recipient'))
  const all = await counts()
  const hours = await redis.keys(`${keyPrefix}history:hour:*`)
  expect(all.filter(({ what }) => what === 'refused')).toMatchObject([{ count: 5_000 }])
  // Dropped lines are a separate field. A run over the full hour makes a second key.
  expect(all.length).toBeLessThanOrEqual(2 * hours.length)
  expect(hours.length).toBeLessThanOrEqual(2)
  for (const key of hours) {
    const livesMs = await redis.pttl(key)
    expect(livesMs).toBeGreaterThan(24 * 3_600_000)
    expect(livesMs).toBeLessThanOrEqual(25 * 3_600_000)
  }
})

test('more than the rings take: how many were dropped is counted, of no app', async () => {
  const { refuse, counts } = open()
  for (let at = 0; at < 500; at++) refuse(at, refusal('recipient'))
  const dropped = (await counts()).find(({ what }) => what === 'dropped')
  expect(dropped).toMatchObject({ app: '', count: 460 })
})

test('24 hours are read, by Redis’ clock, oldest first', async () => {
  const keyPrefix = `${server.prefix}hours:`
  const [seconds] = await redis.time()
  const hour = Math.floor(Number(seconds) / 3_600)
  for (const ago of [0, 23, 24, 30]) {
    const key = `${keyPrefix}history:hour:${hour - ago}`
    await redis.hset(key, JSON.stringify(['refused', 'shop', 'captcha', `ago-${ago}`]), 1)
  }
  const read = await createReadTally(redis, keyPrefix)()
  expect(read).toHaveLength(24)
  expect(read.flatMap(({ counts }) => counts.map(({ rule }) => rule))).toEqual(['ago-23', 'ago-0'])
  expect(read.at(-1)?.atMs).toBe(hour * 3_600_000)
})

test('Redis away: what was not written is counted as dropped, and a reader is told that Redis is out of reach', async () => {
  const own = await ownRedis()
  const client = connectRedis(own.url, 'command', () => {})
  releaseLater(() => client.disconnect())
  let dropped = 0
  const tally = createTally({
    ...{ redis: client, keyPrefix: 'away:' },
    onDropped: (sums) => {
      dropped += sums
    },
  })
  await own.kill()
  tally.add({ what: 'passed', app: 'shop' })
  tally.add({ what: 'passed', app: 'shop' })
  tally.add({ what: 'refused', app: 'shop', policy: 'captcha', rule: 'ip' })
  await tally.close()
  expect(dropped).toBe(2)
  await expect(createReadTally(client, 'away:')()).rejects.toMatchObject({ part: 'redis' })
})
