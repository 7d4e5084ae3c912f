import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createSecrets } from '../../src/base/secrets.ts'
import { drawCode } from '../../src/captcha/code.ts'
import { type CodeOwner, createCodeStore, type GuessResult } from '../../src/captcha/code-store.ts'
import { connectRedis } from '../../src/redis/connect.ts'
import { ownRedis } from '../support/own-servers.ts'
import { testRedis } from '../support/redis.ts'
import { releaseLater } from '../support/release.ts'
import { eventually } from '../support/wait.ts'

const redis = await testRedis()
const oldSecret = 'the first secret, of thirty-two bytes or more'
const newSecret = 'the second secret, of thirty-two bytes or more'
const options = { keyPrefix: redis.prefix, ttlMs: 300_000, triesPerCode: 3 }
const connections = await Promise.all([1, 2, 3, 4].map(() => redis.connect('code')))
const stores = connections.map((connection) =>
  createCodeStore(connection, createSecrets(oldSecret), options),
)
const store = stores[0] as (typeof stores)[number]

let ownerCount = 0
function newOwner(): CodeOwner {
  ownerCount += 1
  return { app: `app-${ownerCount}`, scene: 'login', channel: 'sms', to: '+8613800138000' }
}

function otherCode(code: string): string {
  return String((Number(code) + randomInt(1, 10 ** code.length)) % 10 ** code.length).padStart(
    code.length,
    '0',
  )
}

/** `count` guesses at once, spread over four connections. */
function guessAtOnce(count: number, owner: CodeOwner, code: () => string): Promise<GuessResult[]> {
  return Promise.all(
    Array.from({ length: count }, (_, index) =>
      (stores[index % stores.length] as typeof store).guess(owner, code()),
    ),
  )
}

// A script's first run sends its source and would change the order of commands sent together.
await store.guess(newOwner(), '0000')

const keysNow = () => redis.client.keys(`${redis.prefix}*`)

test('guess: 1,000 right guesses at once are 1 success (I4)', async () => {
  const [owner, id] = [newOwner(), newId()]
  await store.remember(owner, id, '0042')
  const results = await guessAtOnce(1_000, owner, () => '0042')
  expect(results.filter(({ result }) => result === 'passed')).toEqual([
    { result: 'passed', noticeId: id },
  ])
  expect(results.filter(({ result }) => result === 'gone')).toHaveLength(999)
})

test('guess: of 1,000 wrong guesses at once triesPerCode are compared, then the right one fails too (I5)', async () => {
  const owner = newOwner()
  await store.remember(owner, newId(), '0042')
  const results = await guessAtOnce(1_000, owner, () => otherCode('0042'))
  const compared = results.filter((guess) => guess.result === 'mismatch')
  expect(compared.map(({ triesLeft }) => triesLeft).sort()).toEqual([0, 1, 2])
  expect(results.filter(({ result }) => result === 'gone')).toHaveLength(997)
  expect(await store.guess(owner, '0042')).toEqual({ result: 'gone' })
})

test('guess: the last try passes when it is right', async () => {
  const owner = newOwner()
  await store.remember(owner, newId(), '0042')
  await guessAtOnce(2, owner, () => '0043')
  expect(await store.guess(owner, '0042')).toMatchObject({ result: 'passed' })
})

test('a resend kills the earlier code, and no code passes with its app, scene, channel or address swapped (I6)', async () => {
  const code = fc.integer({ min: 0, max: 9_999 }).map((number) => String(number).padStart(4, '0'))
  const text = fc.string({
    unit: fc.constantFrom('0', '1', ':', 'a', ' '),
    minLength: 1,
    maxLength: 4,
  })
  const owner = fc.record({
    app: text,
    scene: text,
    channel: fc.constantFrom('sms' as const, 'email' as const),
    to: text,
  })
  const swapped = fc.constantFrom('app', 'scene', 'channel', 'to', 'boundary')

  const oneCase = fc.tuple(owner, owner, swapped, code, code)

  async function holds([own, other, what, earlier, later]: typeof oneCase extends fc.Arbitrary<
    infer Case
  >
    ? Case
    : never): Promise<boolean> {
    const first = { ...own, app: `${newId()}${own.app}` }
    const second = { ...first }
    if (what === 'boundary') {
      // The same characters with another boundary between two parts.
      second.app = `${first.app}${first.scene.slice(0, 1)}`
      second.scene = first.scene.slice(1)
    } else if (what === 'channel') second.channel = first.channel === 'sms' ? 'email' : 'sms'
    else second[what] = `${other[what]}${first[what]}`
    const [firstId, laterId] = [newId(), newId()]

    // One connection keeps the order, so a case needs no waiting inside.
    const [, , fromOther, withOldId, withOldCode, passed, again] = await Promise.all([
      store.remember(first, firstId, earlier),
      store.remember(first, laterId, later),
      store.guess(second, later),
      store.guess(first, later, firstId),
      earlier === later ? undefined : store.guess(first, earlier),
      store.guess(first, later, laterId),
      store.guess(first, later),
    ])
    // Compared as text: a million calls of expect would take longer than Redis does.
    return (
      JSON.stringify({ fromOther, withOldId, withOldCode, passed, again }) ===
      JSON.stringify({
        fromOther: { result: 'gone' },
        withOldId: { result: 'gone' },
        withOldCode: earlier === later ? undefined : { result: 'mismatch', triesLeft: 2 },
        passed: { result: 'passed', noticeId: laterId },
        again: { result: 'gone' },
      })
    )
  }
  // A hundred cases travel together.
  const cases = fc.array(oneCase, { minLength: 100, maxLength: 100, size: 'max' })
  const property = fc.asyncProperty(cases, async (all) => {
    expect((await Promise.all(all.map(holds))).filter((isHeld) => !isHeld)).toEqual([])
  })
  await fc.assert(property, { numRuns: 100, endOnFailure: true })
})

describe('time to live', () => {
  test('remember: the key lives for the ttl; a wrong guess does not lengthen it; when it ends the code is gone', async () => {
    const owner = newOwner()
    const before = new Set(await keysNow())
    await store.remember(owner, newId(), '0042')
    const [key] = (await keysNow()).filter((name) => !before.has(name)) as [string]
    expect(await redis.client.pttl(key)).toBeGreaterThan(299_000)
    await redis.client.pexpire(key, 60_000)
    await store.guess(owner, '0043')
    const leftMs = await redis.client.pttl(key)
    expect(leftMs).toBeGreaterThan(0)
    expect(leftMs).toBeLessThanOrEqual(60_000)
    await redis.client.pexpire(key, 0)
    expect(await store.guess(owner, '0042')).toEqual({ result: 'gone' })
  })
})

test('Redis holds neither code nor recipient in readable form (I14)', async () => {
  const owner = { ...newOwner(), to: 'canary@example.test' }
  await store.remember(owner, newId(), '90210777')
  for (const key of await keysNow()) {
    const text = `${key} ${await redis.client.get(key)}`
    expect(text).not.toContain('canary')
    expect(text).not.toContain('90210777')
  }
})

test('isCurrent: true for the newest notice alone, until its code is used', async () => {
  const [owner, first, second] = [newOwner(), newId(), newId()]
  await store.remember(owner, first, '0042')
  expect(await store.isCurrent(owner, first)).toBe(true)
  await store.remember(owner, second, '0043')
  expect(await store.isCurrent(owner, first)).toBe(false)
  expect(await store.isCurrent(owner, second)).toBe(true)
  await store.guess(owner, '0043')
  expect(await store.isCurrent(owner, second)).toBe(false)
})

test('forget: takes back the code of that notice and leaves a newer one', async () => {
  const [owner, first, second] = [newOwner(), newId(), newId()]
  await store.remember(owner, first, '0042')
  await store.forget(owner, first)
  expect(await store.guess(owner, '0042')).toEqual({ result: 'gone' })
  await store.remember(owner, second, '0043')
  await store.forget(owner, first)
  expect(await store.guess(owner, '0043')).toMatchObject({ result: 'passed' })
})

describe('SECRET_PREVIOUS', () => {
  const rotated = createCodeStore(
    connections[0] as (typeof connections)[number],
    createSecrets(newSecret, oldSecret),
    options,
  )

  test('a code made before the rotation is current and passes once after it', async () => {
    const [owner, id, code] = [newOwner(), newId(), drawCode(4)]
    await store.remember(owner, id, code)
    expect(await rotated.isCurrent(owner, id)).toBe(true)
    expect(await rotated.guess(owner, otherCode(code))).toEqual({
      result: 'mismatch',
      triesLeft: 2,
    })
    expect(await rotated.guess(owner, code)).toEqual({ result: 'passed', noticeId: id })
    expect(await rotated.guess(owner, code)).toEqual({ result: 'gone' })
  })

  test('a resend after the rotation kills the code made before it (I6)', async () => {
    const [owner, first, second] = [newOwner(), newId(), newId()]
    await store.remember(owner, first, '0042')
    await rotated.remember(owner, second, '0043')
    expect(await rotated.isCurrent(owner, first)).toBe(false)
    expect(await rotated.guess(owner, '0042')).toEqual({ result: 'mismatch', triesLeft: 2 })
    expect(await rotated.guess(owner, '0043')).toMatchObject({ result: 'passed', noticeId: second })
    expect(await rotated.guess(owner, '0042')).toEqual({ result: 'gone' })
  })

  test('forget takes back a code of either secret', async () => {
    const [owner, id] = [newOwner(), newId()]
    await store.remember(owner, id, '0042')
    await rotated.forget(owner, id)
    expect(await rotated.guess(owner, '0042')).toEqual({ result: 'gone' })
  })
})

test('a right code passes although Redis stands still for 400 ms: giving up sooner would use it up unheard', async () => {
  const server = await ownRedis()
  const client = connectRedis(server.url, 'code', () => {})
  releaseLater(() => client.disconnect())
  const codes = createCodeStore(client, createSecrets(oldSecret), options)
  const [owner, id] = [newOwner(), newId()]
  await eventually(() => codes.remember(owner, id, '1234').then(() => true))
  await client.call('CLIENT', 'PAUSE', '400', 'ALL')
  expect(await codes.guess(owner, '1234')).toEqual({ result: 'passed', noticeId: id })
})
