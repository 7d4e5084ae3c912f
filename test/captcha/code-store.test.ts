import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import type { GuessResult } from '../../src/captcha/code-answers.ts'
import { drawCode } from '../../src/captcha/code-sends.ts'
import { type CodeOwner, createCodeStore } from '../../src/captcha/code-store.ts'
import { createSecrets, type Secrets } from '../../src/crypto/secrets.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { ownRedis } from '../tools/own-servers.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'

const redis = await testRedis()
const oldSecret = 'the first secret, of thirty-two bytes or more'
const newSecret = 'the second secret, of thirty-two bytes or more'
const options = { keyPrefix: redis.prefix, ttlMs: 300_000, triesPerCode: 3 }
const connections = await Promise.all([1, 2, 3, 4].map(() => redis.connect('code')))
function openStore(by: Secrets = createSecrets(oldSecret), over: object = {}, connection = 0) {
  const client = connections[connection] as (typeof connections)[number]
  const store = closeLater(createCodeStore(client, by, { ...options, ...over }))
  return store
}
const stores = connections.map((_, connection) => openStore(undefined, {}, connection))
const store = stores[0] as (typeof stores)[number]

/** A send that succeeds: the code is stored, and settled if it is pending. */
async function sendCode(to: CodeOwner, noticeId: string, code: string, by = store): Promise<void> {
  if (await by.remember(to, noticeId, code)) await by.settle(to, noticeId)
}

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

/** A store at another address of Redis. */
function storeAt(url: string) {
  const client = closeLater(
    connectRedis(url, 'code', () => {}),
    'disconnect',
  )
  const codes = closeLater(createCodeStore(client, createSecrets(oldSecret), options))
  return { client, codes }
}

/** Sends `count` guesses at once, over four connections. */
function guessAtOnce(count: number, owner: CodeOwner, code: () => string): Promise<GuessResult[]> {
  return Promise.all(
    Array.from({ length: count }, (_, index) =>
      (stores[index % stores.length] as typeof store).guess(owner, code()),
    ),
  )
}

// The first run of a script sends its source, which would change the order of commands sent together.
await store.guess(newOwner(), '0000')

const keysNow = () => redis.client.keys(`${redis.prefix}code:*`)

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
  expect(await store.guess(owner, '0042')).toMatchObject({ result: 'gone' })
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

    // One connection keeps the order of commands, so a case needs no waiting.
    const [, , , fromOther, withOldId, withOldCode, passed, again] = await Promise.all([
      store.remember(first, firstId, earlier),
      store.remember(first, laterId, later),
      store.settle(first, laterId),
      store.guess(second, later),
      store.guess(first, later, firstId),
      earlier === later ? undefined : store.guess(first, earlier),
      store.guess(first, later, laterId),
      store.guess(first, later),
    ])
    // Compared as text, because a million calls of `expect` take longer than Redis.
    return (
      JSON.stringify({ fromOther, withOldId, withOldCode, passed, again }) ===
      JSON.stringify({
        fromOther: { result: 'gone', reason: 'expired' },
        withOldId: { result: 'gone', reason: 'expired' },
        withOldCode: earlier === later ? undefined : { result: 'mismatch', triesLeft: 2 },
        passed: { result: 'passed', noticeId: laterId },
        again: { result: 'gone', reason: 'used' },
      })
    )
  }
  // A hundred cases go in one call.
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
    expect(await redis.client.pttl(key)).toBeGreaterThan(290_000)
    await redis.client.pexpire(key, 60_000)
    await store.guess(owner, '0043')
    const leftMs = await redis.client.pttl(key)
    expect(leftMs).toBeGreaterThan(0)
    expect(leftMs).toBeLessThanOrEqual(60_000)
    await redis.client.pexpire(key, 0)
    expect(await store.guess(owner, '0042')).toMatchObject({ result: 'gone' })
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

describe('scenesOf', () => {
  test('only scenes of this app, channel and recipient, also pending ones, for as long as their codes live', async () => {
    const owner = newOwner()
    await store.remember(owner, newId(), '0042')
    await store.remember(owner, newId(), '0043')
    await store.remember({ ...owner, scene: 'pay' }, newId(), '0044')
    await store.remember({ ...owner, channel: 'email', scene: 'mail' }, newId(), '0044')
    await store.remember({ ...newOwner(), scene: 'other' }, newId(), '0044')
    const briefly = openStore(undefined, { ttlMs: 300 })
    // Again where the code ended before a busy machine could look.
    await eventually(async () => {
      await briefly.remember({ ...owner, scene: 'brief' }, newId(), '0045')
      expect((await store.scenesOf(owner)).sort()).toEqual(['brief', 'login', 'pay'])
    })
    expect(await store.scenesOf(newOwner())).toEqual([])
    await eventually(async () =>
      expect((await store.scenesOf(owner)).sort()).toEqual(['login', 'pay']),
    )
  })

  test('a code of one scene neither ends nor replaces one of another; its key lives as long as the last', async () => {
    const owner = newOwner()
    const other = { ...owner, scene: 'pay' }
    const before = new Set(await keysNow())
    const [first, second] = [newId(), newId()]
    expect(await store.remember(owner, first, '0042')).toBe(false)
    expect(await store.remember(other, second, '0043')).toBe(false)
    await store.drop(other)
    expect(await store.guess(other, '0043')).toMatchObject({ result: 'gone' })
    expect(await store.guess(owner, '0043')).toEqual({ result: 'mismatch', triesLeft: 2 })
    expect(await store.guess(owner, '0042')).toEqual({ result: 'passed', noticeId: first })
    const [key = ''] = (await keysNow()).filter((name) => !before.has(name))
    expect(await redis.client.pttl(key)).toBeGreaterThan(290_000)
  })

  test('the codes of 70 scenes: the 64 newest live, so no caller can make the value of a recipient longer', async () => {
    const owner = newOwner()
    const scenes = Array.from({ length: 70 }, (_, nth) => `scene-${nth}`)
    for (const scene of scenes) await store.remember({ ...owner, scene }, newId(), '0042')
    expect(await store.scenesOf(owner)).toEqual(scenes.slice(6))
  })

  test('also those noted under the secret before', async () => {
    const owner = newOwner()
    await store.remember(owner, newId(), '0042')
    const rotated = openStore(createSecrets(newSecret, oldSecret))
    await rotated.remember({ ...owner, scene: 'pay' }, newId(), '0043')
    expect((await rotated.scenesOf(owner)).sort()).toEqual(['login', 'pay'])
  })
})

describe('a code that is remembered while another is valid', () => {
  test('does not pass, and the one before it does, until it is settled; then it is the other way round', async () => {
    const [owner, first, second] = [newOwner(), newId(), newId()]
    expect(await store.remember(owner, first, '0042')).toBe(false)
    expect(await store.remember(owner, second, '0043')).toBe(true)
    expect(await store.guess(owner, '0043')).toEqual({ result: 'mismatch', triesLeft: 2 })
    expect(await store.settle(owner, second)).toBe('current')
    expect(await store.guess(owner, '0042')).toEqual({ result: 'mismatch', triesLeft: 2 })
    expect(await store.guess(owner, '0043')).toEqual({ result: 'passed', noticeId: second })
  })

  test('is forgotten without a trace: the one before it keeps its tries and its time', async () => {
    const [owner, first, second] = [newOwner(), newId(), newId()]
    const before = new Set(await keysNow())
    await store.remember(owner, first, '0042')
    const [key] = (await keysNow()).filter((name) => !before.has(name)) as [string]
    await store.guess(owner, '0041')
    const kept = await redis.client.get(key)
    await store.remember(owner, second, '0043')
    store.forget(owner, second)
    await eventually(async () => expect(await redis.client.get(key)).toBe(kept))
    expect(await store.guess(owner, '0041')).toEqual({ result: 'mismatch', triesLeft: 1 })
    expect(await store.guess(owner, '0042')).toEqual({ result: 'passed', noticeId: first })
  })

  test('ends by its own time: one that is left over does not lengthen the one before it', async () => {
    const brief = openStore(undefined, { ttlMs: 200 })
    // Again where the first code ended before a busy machine could store the second.
    await eventually(async () => {
      const [owner, first] = [newOwner(), newId()]
      await brief.remember(owner, first, '0042')
      await store.remember(owner, newId(), '0043')
      await eventually(async () => (await store.settle(owner, first)) === 'gone')
      expect(await store.guess(owner, '0042')).toMatchObject({ result: 'gone' })
    })
  })

  test('of several under way the one settled last is valid, and forgetting the others leaves it', async () => {
    const owner = newOwner()
    const [first, second, third] = [newId(), newId(), newId()]
    await store.remember(owner, newId(), '0041')
    await store.remember(owner, first, '0042')
    await store.remember(owner, second, '0043')
    await store.remember(owner, third, '0044')
    expect(await store.settle(owner, second)).toBe('current')
    expect(await store.settle(owner, first)).toBe('gone')
    store.forget(owner, third)
    store.forget(owner, first)
    expect(await store.guess(owner, '0044')).toEqual({ result: 'mismatch', triesLeft: 2 })
    expect(await store.guess(owner, '0043')).toEqual({ result: 'passed', noticeId: second })
  })

  test('left over a hundred times by processes that died: the valid one stays, and the number of stored codes is bounded', async () => {
    const [owner, first, last] = [newOwner(), newId(), newId()]
    const before = new Set(await keysNow())
    await store.remember(owner, first, '0042')
    for (let died = 0; died < 100; died++) await store.remember(owner, newId(), '0043')
    const [key] = (await keysNow()).filter((name) => !before.has(name)) as [string]
    expect(await redis.client.strlen(key)).toBeLessThan(2_000)
    await store.remember(owner, last, '0044')
    expect(await store.guess(owner, '0043')).toEqual({ result: 'mismatch', triesLeft: 2 })
    expect(await store.settle(owner, last)).toBe('current')
    expect(await store.guess(owner, '0044')).toMatchObject({ result: 'passed', noticeId: last })
  })
})

test('settle: true for the newest settled notice alone, until its code is used or has no tries left in any lane', async () => {
  const [owner, first, second] = [newOwner(), newId(), newId()]
  await store.remember(owner, first, '0042')
  expect(await store.settle(owner, first)).toBe('current')
  await sendCode(owner, second, '0043')
  expect(await store.settle(owner, first)).toBe('gone')
  expect(await store.settle(owner, second)).toBe('current')
  await store.guess(owner, '0043')
  expect(await store.settle(owner, second)).toBe('gone')
  const third = newId()
  await sendCode(owner, third, '0044')
  for (const lane of ['stranger', 'known'] as const) {
    expect(await store.settle(owner, third)).toBe('current')
    for (let wrong = 0; wrong < 3; wrong++) {
      await store.guess(owner, '0045', undefined, undefined, undefined, lane)
    }
  }
  expect(await store.settle(owner, third)).toBe('gone')
})

test('settle: a code that Redis no longer has is lost, and gone once a newer one has its place', async () => {
  const [owner, first, second] = [newOwner(), newId(), newId()]
  await sendCode(owner, first, '0042')
  await redis.client.del(await keysNow())
  expect(await store.settle(owner, first)).toBe('lost')
  await sendCode(owner, second, '0043')
  expect(await store.settle(owner, first)).toBe('gone')
})

test('drop: a code that waits to be sent is gone, and not lost; the next one passes', async () => {
  const [owner, typed, waiting, next] = [newOwner(), newId(), newId(), newId()]
  await store.drop(owner)
  expect(await store.settle(owner, typed)).toBe('lost')
  await sendCode(owner, typed, '0042')
  await store.remember(owner, waiting, '0043')
  await store.drop(owner)
  for (const id of [typed, waiting]) expect(await store.settle(owner, id)).toBe('gone')
  expect(await store.look(owner)).toMatchObject({ result: 'gone' })
  for (const code of ['0042', '0043']) {
    expect(await store.guess(owner, code)).toMatchObject({ result: 'gone' })
  }
  await sendCode(owner, next, '0044')
  expect(await store.guess(owner, '0044')).toMatchObject({ result: 'passed', noticeId: next })
})

test('drop: with an id, only the code of that notice ends, also one that waits to be sent', async () => {
  const [owner, typed, waiting] = [newOwner(), newId(), newId()]
  await sendCode(owner, typed, '0042')
  await store.remember(owner, waiting, '0043')
  expect(await store.drop(owner, newId())).toBeUndefined()
  expect(await store.drop(owner, waiting)).toEqual({ noticeId: waiting })
  expect(await store.drop(owner, waiting)).toBeUndefined()
  expect(await store.settle(owner, waiting)).toBe('gone')
  expect(await store.guess(owner, '0042')).toMatchObject({ result: 'passed', noticeId: typed })
})

test('a guess without a code knows why: out of tries, used, ended, replaced or none', async () => {
  const reasonOf = async (owner: CodeOwner, noticeId = '') => {
    const [guessed, looked] = [
      await store.guess(owner, '9999', noticeId),
      await store.look(owner, noticeId),
    ]
    return [guessed, looked].map((answer) => ('reason' in answer ? answer.reason : answer.result))
  }
  const [tried, used, ended, replaced] = [newOwner(), newOwner(), newOwner(), newOwner()]
  const [first, second] = [newId(), newId()]
  for (const owner of [tried, used, ended]) await sendCode(owner, newId(), '0042')
  for (let n = 0; n < 3; n++) await store.guess(tried, '9999')
  await store.guess(used, '0042')
  await store.drop(ended)
  await sendCode(replaced, first, '0042')
  await sendCode(replaced, second, '0043')
  // Support also shows a code without tries.
  expect(await reasonOf(tried)).toEqual(['tries', 'live'])
  expect(await reasonOf(used)).toEqual(['used', 'used'])
  expect(await reasonOf(ended)).toEqual(['used', 'used'])
  expect(await reasonOf(replaced, first)).toEqual(['expired', 'expired'])
  expect(await reasonOf(newOwner())).toEqual(['expired', 'expired'])
})

test('drop: a guess that is taken back afterwards brings no code back', async () => {
  const proxy = await startTcpProxy(Number(new URL(redis.url).port))
  const { codes } = storeAt(proxy.through(redis.url))
  const [owner, other] = [newOwner(), newOwner()]
  await eventually(() => codes.settle(newOwner(), newId()).then(() => true))
  for (const each of [owner, other]) await sendCode(each, newId(), '0042')
  proxy.dropAnswers()
  const unheard = await Promise.allSettled([owner, other].map((each) => codes.guess(each, '0042')))
  expect(unheard.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  await store.drop(owner)
  proxy.reset()
  proxy.forward()
  // Taken back in this order: when the second is done, the first is done.
  await eventually(async () => expect(await store.look(other)).toMatchObject({ triesLeft: 3 }))
  expect(await store.guess(owner, '0042')).toMatchObject({ result: 'gone' })
})

test('forget: takes back the code of that notice and leaves a newer one', async () => {
  const [owner, first, second] = [newOwner(), newId(), newId()]
  await store.remember(owner, first, '0042')
  store.forget(owner, first)
  expect(await store.guess(owner, '0042')).toMatchObject({ result: 'gone' })
  await sendCode(owner, second, '0043')
  store.forget(owner, first)
  expect(await store.guess(owner, '0043')).toMatchObject({ result: 'passed' })
})

test('a digest is keyed by SECRET: codes made under another one do not pass, though all else is the same', async () => {
  const [owner, id] = [newOwner(), newId()]
  const own = createSecrets(oldSecret)
  // The key's name comes from the first secret, so only the digest differs.
  const foreign = openStore({ ...createSecrets(newSecret), subjectHashes: own.subjectHashes })
  await foreign.remember(owner, id, '0042')
  expect(await store.guess(owner, '0042')).toEqual({ result: 'mismatch', triesLeft: 2 })
  expect(await foreign.guess(owner, '0042')).toEqual({ result: 'passed', noticeId: id })
})

describe('SECRET_PREVIOUS', () => {
  const rotated = openStore(createSecrets(newSecret, oldSecret))
  // The first step of a rotation: the old secret makes codes, the new one is known.
  const prepared = openStore(createSecrets(oldSecret, newSecret), {}, 1)
  /** Codes of one millisecond are in the order of their ids. */
  const idsInOrder = () => [newId(1), newId(2)] as const

  test('a code made before the rotation is current and passes once after it', async () => {
    const [owner, id, code] = [newOwner(), newId(), drawCode(4)]
    await store.remember(owner, id, code)
    expect(await rotated.settle(owner, id)).toBe('current')
    expect(await rotated.guess(owner, otherCode(code))).toEqual({
      result: 'mismatch',
      triesLeft: 2,
    })
    expect(await rotated.guess(owner, code)).toEqual({ result: 'passed', noticeId: id })
    expect(await rotated.guess(owner, code)).toMatchObject({ result: 'gone' })
  })

  test('a resend after the rotation kills the code made before it (I6)', async () => {
    const [owner, first, second] = [newOwner(), ...idsInOrder()]
    await store.remember(owner, first, '0042')
    await rotated.remember(owner, second, '0043')
    expect(await rotated.guess(owner, '0041')).toEqual({ result: 'mismatch', triesLeft: 2 })
    expect(await rotated.settle(owner, second)).toBe('current')
    expect(await rotated.settle(owner, first)).toBe('gone')
    expect(await rotated.guess(owner, '0042')).toEqual({ result: 'mismatch', triesLeft: 2 })
    expect(await rotated.guess(owner, '0043')).toMatchObject({ result: 'passed', noticeId: second })
    expect(await rotated.guess(owner, '0042')).toMatchObject({ result: 'gone' })
  })

  test('while the two secrets are swapped, a code of either process is settled by the other, and its resend kills it (I6)', async () => {
    for (const [maker, other] of [
      [prepared, rotated],
      [rotated, prepared],
    ] as const) {
      const [owner, first, second] = [newOwner(), ...idsInOrder()]
      await other.remember(owner, first, '0042')
      expect(await other.settle(owner, first)).toBe('current')
      await maker.remember(owner, second, '0043')
      // A worker does this for a process that has died.
      expect(await other.settle(owner, second)).toBe('current')
      expect(await maker.settle(owner, first)).toBe('gone')
      expect(await other.guess(owner, '0042')).toEqual({ result: 'mismatch', triesLeft: 2 })
      expect(await other.guess(owner, '0043')).toMatchObject({ result: 'passed', noticeId: second })
      expect(await maker.guess(owner, '0043')).toMatchObject({ result: 'gone' })
    }
  })

  test.each([
    ['old', 'new'],
    ['new', 'old'],
  ])(
    'two sends settled at once, the first at the process with the %s secret: the second code alone passes (I6, I35)',
    async (maker) => {
      const [one, two] = maker === 'old' ? [prepared, rotated] : [rotated, prepared]
      const [owner, first, second] = [newOwner(), ...idsInOrder()]
      await one.remember(owner, first, '0042')
      await two.remember(owner, second, '0043')
      await Promise.all([one.settle(owner, first), two.settle(owner, second)])
      expect(await one.settle(owner, first)).toBe('gone')
      expect(await two.settle(owner, second)).toBe('current')
      expect(await one.guess(owner, '0042')).toMatchObject({ result: 'mismatch' })
      expect(await two.guess(owner, '0043')).toMatchObject({ result: 'passed', noticeId: second })
      expect(await one.guess(owner, '0042')).toMatchObject({ result: 'gone' })
    },
  )

  test('forget takes back a code of either secret', async () => {
    const [owner, id] = [newOwner(), newId()]
    await store.remember(owner, id, '0042')
    rotated.forget(owner, id)
    expect(await rotated.guess(owner, '0042')).toMatchObject({ result: 'gone' })
  })
})

test('a right code passes although Redis stands still for 400 ms: giving up sooner would use it up unheard', async () => {
  const server = await ownRedis()
  const { client, codes } = storeAt(server.url)
  const [owner, id] = [newOwner(), newId()]
  await eventually(() => codes.remember(owner, id, '1234').then(() => true))
  await client.call('CLIENT', 'PAUSE', '400', 'ALL')
  expect(await codes.guess(owner, '1234')).toEqual({ result: 'passed', noticeId: id })
})

test('a guess whose answer is lost is taken back when Redis answers: the right code passes, a wrong one cost no try (I23)', async () => {
  const proxy = await startTcpProxy(Number(new URL(redis.url).port))
  const { codes } = storeAt(proxy.through(redis.url))
  const owners = Array.from({ length: 20 }, newOwner)
  await eventually(() => codes.settle(newOwner(), newId()).then(() => true))
  await Promise.all(owners.map((owner) => codes.remember(owner, newId(), '0042')))
  proxy.dropAnswers()
  const unheard = await Promise.allSettled(
    owners.flatMap((owner) => [codes.guess(owner, '0041'), codes.guess(owner, '0042')]),
  )
  expect(unheard.filter(({ status }) => status === 'rejected')).toHaveLength(40)
  proxy.reset()
  proxy.forward()
  await eventually(async () => {
    for (const owner of owners) {
      const [key] = createSecrets(oldSecret).subjectHashes([owner.app, owner.channel, owner.to])
      const [code] = JSON.parse((await redis.client.get(`${redis.prefix}code:${key}`)) ?? '[]')
      expect(code).toMatchObject({ tries: 3, state: 'current', takers: ',' })
    }
  })
  const results = await Promise.all(owners.map((owner) => store.guess(owner, '0042')))
  expect(new Set(results.map(({ result }) => result))).toEqual(new Set(['passed']))
})

test('in a cluster, a node that is away fails only the codes that it has', async () => {
  const secrets = createSecrets(oldSecret)
  const away = newOwner()
  // More than are under way at a time, so that some wait.
  const others = Array.from({ length: 300 }, newOwner)
  const [hash = ''] = secrets.subjectHashes([away.app, away.channel, away.to])
  const cluster = {
    isCluster: true,
    async evalsha(_: string, __: number, key: string) {
      if (key.endsWith(hash)) throw new Error('Connection is closed.')
      return [-1]
    },
  } as unknown as Parameters<typeof createCodeStore>[0]
  const { look, close } = createCodeStore(cluster, secrets, {
    keyPrefix: 'p:',
    ttlMs: 1_000,
    triesPerCode: 3,
  })
  releaseLater(close)
  const looks = await Promise.allSettled([away, ...others].map((owner) => look(owner)))
  const [first, ...rest] = looks.map(({ status }) => status)
  expect([first, new Set(rest)]).toEqual(['rejected', new Set(['fulfilled'])])
})
