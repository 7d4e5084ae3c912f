import { type Challenge, verifySolution } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import { beforeEach, expect, test } from 'vitest'
import { createAltcha } from '../../src/captcha/altcha.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { payloadOf, solveChallenge } from '../tools/solve-challenge.ts'

const secret = 'the first secret, of thirty-two bytes or more'
const secrets = createSecrets(secret)
const asked = { app: 'shop', keyId: 'key', origins: ['https://shop.example'] }

let atMs = Date.now()
beforeEach(() => {
  atMs = Date.now()
})
const altcha = createAltcha({ secrets, tries: 5, nowMs: () => atMs })

async function offered(by = altcha, of = asked, factor = 1): Promise<Challenge> {
  const offer = await by.offer(of, factor)
  return offer.kind === 'altcha' ? offer.challenge : expect.unreachable()
}
async function solved(challenge?: Challenge) {
  const answer = await solveChallenge(challenge ?? (await offered()))
  return JSON.parse(Buffer.from(answer, 'base64').toString())
}

test('the answer is right, and only for its challenge', async () => {
  const [first, second] = [await offered(), await offered()]
  const readings = await Promise.all(
    [first, first, second].map(async (one) => altcha.read(asked, await solveChallenge(one))),
  )
  expect(readings.map(({ kind }) => kind)).toEqual(['right', 'right', 'right'])
  const ids = readings.map((reading) => 'id' in reading && reading.id)
  expect(ids[0]).toBe(ids[1])
  expect(ids[0]).not.toBe(ids[2])
})

test('a challenge shows neither app nor key, and is good for five minutes by the clock it was given', async () => {
  atMs = Date.UTC(2031, 0)
  const challenge = await offered()
  expect(JSON.stringify(challenge)).not.toMatch(/shop|"key"/)
  expect(challenge.parameters.expiresAt).toBe(atMs / 1_000 + 300)
  const answer = await solveChallenge(challenge)
  atMs += 299_999
  expect(altcha.read(asked, answer)).toMatchObject({ kind: 'right', aliveMs: 30_001 })
  atMs += 1
  expect(altcha.read(asked, answer)).toEqual({ kind: 'expired' })
})

test.each([
  ['app', { app: 'bank', keyId: 'key' }],
  ['key', { app: 'shop', keyId: 'other' }],
  ['app and key, spelled alike together', { app: 'shopkey', keyId: '' }],
])('of another %s: wrong', async (_, other) => {
  expect(altcha.read({ ...asked, ...other }, payloadOf(await solved()))).toEqual({ kind: 'wrong' })
})

test('made under the previous secret: right while that is set, wrong after', async () => {
  const answer = payloadOf(await solved())
  const nowMs = () => atMs
  const next = 'the second secret, of thirty-two bytes or more'
  const rotating = createAltcha({ secrets: createSecrets(next, secret), tries: 5, nowMs })
  expect(rotating.read(asked, answer)).toMatchObject({ kind: 'right' })
  const rotated = createAltcha({ secrets: createSecrets(next), tries: 5, nowMs })
  expect(rotated.read(asked, answer)).toEqual({ kind: 'wrong' })
})

test.each([
  ['not base64', '{"challenge":1}'],
  ['base64 of nothing', '===='],
  ['no JSON', Buffer.from('challenge').toString('base64')],
  ['null', payloadOf(null)],
  ['a list', payloadOf([])],
  ['no solution', payloadOf({ challenge: { parameters: {}, signature: 'a'.repeat(64) } })],
  ['a counter that is a text', payloadOf({ challenge: {}, solution: { counter: '1' } })],
  ['very deep', payloadOf(JSON.parse('['.repeat(1_000) + ']'.repeat(1_000)))],
])('%s: malformed', (_, answer) => {
  expect(altcha.read(asked, answer)).toEqual({ kind: 'malformed' })
})

type Answer = Awaited<ReturnType<typeof solved>>

/** Changes that an attacker may make to a right answer, and the result that each must have. */
const alterations: [string, (answer: Answer, other: Answer) => unknown][] = [
  ['a later expiry', ({ challenge }) => (challenge.parameters.expiresAt += 600)],
  ['a lower cost', ({ challenge }) => (challenge.parameters.cost = 1)],
  ['a shorter prefix', ({ challenge }) => (challenge.parameters.keyPrefix = '')],
  ['one parameter more', ({ challenge }) => (challenge.parameters.data = 'x')],
  ['one parameter less', ({ challenge }) => delete challenge.parameters.keySignature],
  [
    'parameters spliced into the salt',
    ({ challenge }) => (challenge.parameters.salt += '&expires=9'),
  ],
  [
    'the salt of another one',
    (one, other) => (one.challenge.parameters.salt = other.challenge.parameters.salt),
  ],
  [
    'the key signature of another one',
    (one, other) =>
      (one.challenge.parameters.keySignature = other.challenge.parameters.keySignature),
  ],
  [
    'the signature of another one',
    (one, other) => (one.challenge.signature = other.challenge.signature),
  ],
  ['the solution of another one', (one, other) => (one.solution = other.solution)],
  ['the challenge of another one', (one, other) => (one.challenge = other.challenge)],
  ['no key derived', ({ solution }) => (solution.derivedKey = '0'.repeat(64))],
  [
    'the prefix for the key',
    ({ solution, challenge }) =>
      (solution.derivedKey = challenge.parameters.keyPrefix.padEnd(64, '0')),
  ],
]

test.each(alterations)('%s: wrong, as altcha-lib itself finds', async (_, alter) => {
  const [answer, other] = [await solved(), await solved()]
  alter(answer, other)
  expect(altcha.read(asked, payloadOf(answer))).toEqual({ kind: 'wrong' })
  const [ofChallenge = '', ofAnswer = ''] = ['challenge', 'answer'].map(
    (use) => secrets.challengeKeys([use, asked.app, asked.keyId])[0],
  )
  const theirs = await verifySolution({
    ...answer,
    deriveKey,
    hmacSignatureSecret: ofChallenge,
    hmacKeySignatureSecret: ofAnswer,
  })
  expect(theirs.verified).toBe(false)
})

test('an answer that altcha-lib accepts is right here: the same keys, in any order of members', async () => {
  const answer = await solved()
  const entries = Object.entries(answer.challenge.parameters).reverse()
  answer.challenge.parameters = Object.fromEntries(entries)
  expect(altcha.read(asked, payloadOf(answer))).toMatchObject({ kind: 'right' })
  const theirs = await verifySolution({
    ...answer,
    deriveKey,
    hmacSignatureSecret: secrets.challengeKeys(['challenge', 'shop', 'key'])[0] ?? '',
    hmacKeySignatureSecret: secrets.challengeKeys(['answer', 'shop', 'key'])[0] ?? '',
  })
  expect(theirs.verified).toBe(true)
})

test('the work is even over twice its mean, and as many times that as is asked for', async () => {
  const countersOf = async (factor: number) => {
    const offers = await Promise.all(
      Array.from({ length: 60 }, () => offered(altcha, asked, factor)),
    )
    const answers = await Promise.all(offers.map((one) => solved(one)))
    return answers.map(({ solution }) => solution.counter as number)
  }
  const [once, eight] = [await countersOf(1), await countersOf(8)]
  expect(Math.min(...once)).toBeGreaterThanOrEqual(1)
  expect(Math.max(...once)).toBeLessThanOrEqual(10)
  expect(Math.max(...once)).toBeGreaterThan(7)
  expect(Math.max(...eight)).toBeLessThanOrEqual(80)
  expect(Math.max(...eight)).toBeGreaterThan(40)
})
