import { setImmediate } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { Unavailable } from '../../src/base/unavailable.ts'
import { createAltcha } from '../../src/captcha/altcha.ts'
import type { ChallengeKind } from '../../src/captcha/challenge-kind.ts'
import { createChallenges } from '../../src/captcha/challenges.ts'
import { createSiteverify } from '../../src/captcha/siteverify.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import type { Limited } from '../../src/rules/refused.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { testMetrics } from '../tools/metrics.ts'
import { ownRedis } from '../tools/own-servers.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater } from '../tools/release.ts'
import { startSiteverify } from '../tools/siteverify.ts'
import { solveChallenge } from '../tools/solve-challenge.ts'
import { eventually } from '../tools/wait.ts'

const server = await testRedis()
const secrets = createSecrets('the first secret, of thirty-two bytes or more')
const asked = { app: 'shop', keyId: 'key', origins: ['https://shop.example'] }
const altcha = createAltcha({ secrets, tries: 5, nowMs: Date.now })

/**
 * A turn is granted within 300 ms, or the request is refused. A busy machine may need that long for the steps of a
 * test.
 */
async function withoutTimers(
  steps: (until: (is: () => boolean | Promise<boolean>) => Promise<void>) => Promise<void>,
): Promise<void> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    await steps(async (is) => {
      while (!(await is())) await setImmediate()
    })
  } finally {
    vi.useRealTimers()
  }
}

let roomCount = 0
async function openRoom(kind: ChallengeKind = altcha, redis = server.connect()) {
  roomCount += 1
  const metrics = testMetrics()
  const keyPrefix = `${server.prefix}${roomCount}:`
  const challenges = closeLater(createChallenges({ kind, redis: await redis, keyPrefix, metrics }))
  return {
    ...challenges,
    /** The request of a page. */
    async take(by: typeof asked, answer: string, ip = '203.0.113.1'): Promise<Taken> {
      const entry = await challenges.enter({ ...by, ip, isPage: true }, answer)
      if (!('outcome' in entry)) return { kind: 'taken', giveBack: entry.giveBack }
      return { kind: entry.outcome === 'invalid_request' ? 'malformed' : 'refused' }
    },
    keyPrefix,
    async answer() {
      const offer = await challenges.offer({ ...asked, ip: '203.0.113.1', isPage: true })
      return offer.kind === 'altcha' ? solveChallenge(offer.challenge) : expect.unreachable()
    },
    results: async () =>
      Object.fromEntries(
        (await metrics.challenges.get()).values
          .filter(({ value }) => value > 0)
          .map(({ labels, value }) => [labels.result, value]),
      ),
  }
}

type Taken = { kind: 'taken'; giveBack(): void } | { kind: 'malformed' | 'refused' }

function taken(one: Taken) {
  return one.kind === 'taken' ? one : expect.unreachable()
}

test('an answer opens one request: of 1,000 at once one has it, and none after', async () => {
  const room = await openRoom()
  const answer = await room.answer()
  const all = await Promise.all(Array.from({ length: 1_000 }, () => room.take(asked, answer)))
  expect(all.filter(({ kind }) => kind === 'taken')).toHaveLength(1)
  expect(await room.take(asked, answer)).toEqual({ kind: 'refused' })
  // A refused caller gets another challenge.
  expect(await room.results()).toEqual({ offered: 1_001, solved: 1, used: 1_000 })
})

test('for another app or key it opens nothing, and its owner can still use it', async () => {
  const room = await openRoom()
  const answer = await room.answer()
  for (const other of [
    { ...asked, app: 'bank' },
    { ...asked, keyId: 'other' },
  ]) {
    expect(await room.take(other, answer)).toEqual({ kind: 'refused' })
  }
  expect(await room.take(asked, answer)).toMatchObject({ kind: 'taken' })
  expect(await room.results()).toMatchObject({ wrong: 2, solved: 1 })
})

/** A given-back answer is free as soon as Redis has done it. */
const takenSoon = (take: () => Promise<Taken>) => eventually(async () => taken(await take()))

test('given back: it opens one request more, and not two', async () => {
  const room = await openRoom()
  const answer = await room.answer()
  const first = taken(await room.take(asked, answer))
  first.giveBack()
  const second = await takenSoon(() => room.take(asked, answer))
  // The repeated give-back of the first request takes nothing from the second.
  first.giveBack()
  expect(await room.take(asked, answer)).toEqual({ kind: 'refused' })
  second.giveBack()
  await takenSoon(() => room.take(asked, answer))
})

test('Redis remembers an answer for as long as it could be given again, and nothing that names the caller', async () => {
  const room = await openRoom()
  await room.take(asked, await room.answer())
  const keys = await server.client.keys(`${room.keyPrefix}*`)
  expect(keys).toHaveLength(1)
  const [key = ''] = keys
  const ttlMs = await server.client.pttl(key)
  expect(ttlMs).toBeGreaterThan(300_000)
  expect(ttlMs).toBeLessThanOrEqual(330_000)
  expect(`${key} ${await server.client.get(key)}`).not.toContain('shop')
})

test('Redis away: unavailable, and the answer is still good when it is back', async () => {
  const own = await ownRedis()
  const redis = closeLater(
    connectRedis(own.url, 'command', () => {}),
    'disconnect',
  )
  await eventually(() => redis.status === 'ready')
  const room = await openRoom(altcha, Promise.resolve(redis))
  const answer = await room.answer()
  own.freeze()
  await expect(room.take(asked, answer)).rejects.toBeInstanceOf(Unavailable)
  own.thaw()
  await eventually(async () => {
    const again = await room.take(asked, answer).catch(() => undefined)
    expect(again?.kind).toBe('taken')
  })
})

async function openVendorRoom() {
  const far = await startSiteverify('secret')
  const settings = { kind: 'turnstile', siteKey: 's', secret: 'secret', url: far.url } as const
  return { far, room: await openRoom(createSiteverify(settings)) }
}

test('a vendor is asked once for a token: not for those beside it, nor when it was given back', async () => {
  const { far, room } = await openVendorRoom()
  const all = await Promise.all(Array.from({ length: 50 }, () => room.take(asked, 'good-1')))
  const [first] = all.filter(({ kind }) => kind === 'taken')
  expect(far.forms).toHaveLength(1)
  taken(first ?? { kind: 'refused' }).giveBack()
  // The vendor would report a duplicate now. Postern knows that the token was right.
  const second = await takenSoon(() => room.take(asked, 'good-1'))
  second.giveBack()
  await takenSoon(() => room.take(asked, 'good-1'))
  expect(far.forms).toHaveLength(1)
  expect(await room.take({ ...asked, keyId: 'other' }, 'good-1')).toEqual({ kind: 'refused' })
})

test('the vendor is away: unavailable, nothing is taken; a wrong token leaves nothing in Redis', async () => {
  const { far, room } = await openVendorRoom()
  far.behave = { status: 503, body: '' }
  await expect(room.take(asked, 'good-1')).rejects.toMatchObject({ part: 'challenge' })
  far.behave = undefined
  await takenSoon(() => room.take(asked, 'good-1'))
  expect(await room.take(asked, 'bad-1')).toEqual({ kind: 'refused' })
  expect(far.forms).toHaveLength(3)
  await eventually(async () =>
    expect(await server.client.keys(`${room.keyPrefix}*`)).toHaveLength(1),
  )
  expect(await room.results()).toMatchObject({ unavailable: 1, solved: 1, wrong: 1 })
})

test('a flood of made-up tokens: 32 of them are with the vendor at a time, 64 of an app wait shortly, the others are 503', async () => {
  const { promise: isOver, resolve: end } = Promise.withResolvers<boolean>()
  let proving = 0
  const room = await openRoom({
    offer: async () => ({ kind: 'turnstile', siteKey: 's' }),
    read: (_, answer) => ({ kind: 'unproven', id: answer, aliveMs: 60_000 }),
    prove() {
      proving += 1
      return isOver
    },
    close() {},
  })
  const settled = (app: string, count: number) =>
    Array.from({ length: count }, (_, at) =>
      room.take({ ...asked, app }, `${app}-${at}`).then(
        ({ kind }) => kind,
        ({ part }) => part,
      ),
    )
  const flood = settled('flood', 120)
  await eventually(() => proving === 32)
  expect(await Promise.race(flood)).toBe('challenge')
  await withoutTimers(async (until) => {
    const shop = Promise.all(settled('shop', 3))
    const taken = () => server.client.keys(`${room.keyPrefix}*shop-*`)
    await until(async () => (await taken()).length === 3)
    end(false)
    expect(await shop).toEqual(Array(3).fill('refused'))
  })
  const outcomes = await Promise.all(flood)
  expect(outcomes.filter((outcome) => outcome === 'challenge').length).toBeGreaterThanOrEqual(24)
  expect(await room.results()).toMatchObject({ wrong: proving })
  await eventually(async () => expect(await server.client.keys(`${room.keyPrefix}*`)).toEqual([]))
})

test('a flood of made-up tokens from one address: another visitor of the same page gets the next turn', async () => {
  const waiting: (() => void)[] = []
  const proving: string[] = []
  const redis = await server.connect()
  const kind: ChallengeKind = {
    offer: async () => ({ kind: 'turnstile', siteKey: 's' }),
    read: (_, answer) => ({ kind: 'unproven', id: answer, aliveMs: 60_000 }),
    prove(_, answer) {
      proving.push(answer)
      return new Promise((resolve) => waiting.push(() => resolve(false)))
    },
    close() {},
  }
  const room = await openRoom(kind, Promise.resolve(redis))
  const take = (answer: string, ip: string) => room.take(asked, answer, ip).catch(() => undefined)
  await withoutTimers(async (until) => {
    const flood = Array.from({ length: 120 }, (_, at) => take(`flood-${at}`, '203.0.113.1'))
    await until(() => proving.length === 32)
    const visitor = take('visitor', '203.0.113.2')
    const taken = () => server.client.keys(`${room.keyPrefix}*visitor`)
    await until(async () => (await taken()).length === 1)
    // The visitor is in line when the answer of its script has been read. That answer comes before this one.
    await redis.ping()
    await setImmediate()
    // One turn for the flood, which waits already. The next turn is the visitor's.
    for (const end of waiting.splice(0, 2)) end()
    await until(() => proving.length === 34)
    expect(proving.slice(32)).toContain('visitor')
    const endAll = setInterval(() => {
      for (const end of waiting.splice(0)) end()
    }, 5)
    expect(await visitor).toEqual({ kind: 'refused' })
    await Promise.all(flood)
    clearInterval(endAll)
  })
})

test('enter: pages need an answer, servers need none; a malformed one is wrong input, a bad one gets a new challenge', async () => {
  const room = await openRoom()
  const page = { ...asked, ip: '203.0.113.1', isPage: true }
  expect(await room.enter(page, undefined)).toMatchObject({ isHuman: false })
  expect(await room.enter({ ...page, isPage: false }, undefined)).toMatchObject({ isHuman: true })
  expect(await room.enter(page, await room.answer())).toMatchObject({ isHuman: true })
  const errors = [{ path: 'challenge', word: 'noAnswer' }]
  expect(await room.enter(page, '{}')).toEqual({ outcome: 'invalid_request', errors })
  const challenge = { kind: 'altcha', challenge: expect.anything() }
  const other = { ...page, keyId: 'other' }
  expect(await room.enter(other, await room.answer())).toEqual({
    outcome: 'challenge_required',
    challenge,
  })
})

test('refuse: a rule that a challenge opens asks a page for one; servers, and other rules, are refused', async () => {
  const room = await openRoom()
  const page = { ...asked, ip: '203.0.113.1', isPage: true }
  const plain = { policy: 'captcha', rule: 'ip' } as Limited
  const limited: Limited = { ...plain, rule: 'unverified', challenge: true }
  expect(await room.refuse(page, limited)).toEqual({
    outcome: 'challenge_required',
    policy: 'captcha',
    rule: 'unverified',
    challenge: { kind: 'altcha', challenge: expect.anything() },
  })
  const server = { ...page, isPage: false }
  expect(await room.refuse(server, limited)).toBe(limited)
  expect(await room.refuse(page, plain)).toBe(plain)
})
