/** A right check with an id may be repeated, because its answer may be lost. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { type CodeOwner, createCodeStore } from '../../src/captcha/code-store.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { newPhone, otherThan } from '../tools/people.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'

const captcha = [{ name: 'day', key: '{to}', sliding: '2 per 1d', refund: 'passed' }]
const check = [{ name: 'guesses', key: '{to}', sliding: '3 per 1h' }]
const postern = await startPostern({ policyFile: { policies: { ...noLimits, captcha, check } } })

async function sendOne() {
  const asked = { channel: 'sms', to: newPhone() }
  const { body } = await postern.post('/v1/captchas', asked)
  return { ...asked, id: body.id as string, code: await postern.codeFor(body.id) }
}
const checkOf = (one: object) => postern.post('/v1/captchas/check', one)

test('the same check again → the same pass, which verifies once; it counts no guess, and refunds no send', async () => {
  const one = await sendOne()
  const first = await checkOf(one)
  expect(first.status).toBe(200)
  for (let again = 0; again < 6; again++) {
    const { status, body } = await checkOf(one)
    expect({ status, body }).toEqual({ status: 200, body: first.body })
  }
  const verify = () => postern.post('/v1/passes/verify', { pass: first.body.pass })
  expect(await verify()).toMatchObject({ body: { valid: true } })
  expect(await verify()).toMatchObject({ body: { valid: false, reason: 'used' } })
  const send = () => postern.post('/v1/captchas', { channel: 'sms', to: one.to })
  const second = await send()
  const code = otherThan(await postern.codeFor(second.body.id))
  const guesses = []
  for (let guess = 0; guess < 3; guess++)
    guesses.push((await checkOf({ ...one, id: undefined, code })).status)
  // Of three checks in an hour, the first check took one; of two sends in a day, the first one was given back.
  expect(guesses).toEqual([422, 422, 429])
  expect([(await send()).status, (await send()).status]).toEqual([202, 429])
})

test.each([
  ['another code', (one: { code: string }) => ({ code: otherThan(one.code) })],
  ['no id', () => ({ id: undefined })],
  ['another id', () => ({ id: '019aa000-0000-7000-8000-000000000000' })],
  ['another scene', () => ({ scene: 'other' })],
  ['another recipient', () => ({ to: newPhone() })],
])('a repeat with %s → 410', async (_, change) => {
  const one = await sendOne()
  expect((await checkOf(one)).status).toBe(200)
  expect(await checkOf({ ...one, ...change(one) })).toMatchObject({ status: 410 })
})

test('one wrong code ends it: then the right one is 410 too', async () => {
  const one = await sendOne()
  await checkOf(one)
  expect((await checkOf({ ...one, code: otherThan(one.code) })).status).toBe(410)
  expect((await checkOf(one)).status).toBe(410)
})

test('a check without an id, and a resend, are not repeatable', async () => {
  const one = await sendOne()
  expect((await checkOf({ ...one, id: undefined })).status).toBe(200)
  expect((await checkOf(one)).status).toBe(410)
})

const owner = (): CodeOwner => ({ app: 'shop', scene: 'login', channel: 'sms', to: newPhone() })
const secrets = createSecrets('a secret of at least thirty-two bytes')
const options = { keyPrefix: 'repeats:', ttlMs: 300_000, triesPerCode: 3 }
const store = closeLater(createCodeStore(await postern.redis.connect('code'), secrets, options))
const keyId = randomUUID()

test('I4: 1,000 right checks at once with one id by one key → one passes, and all get its proof', async () => {
  const [one, id] = [owner(), randomUUID()]
  await store.remember(one, id, '0042')
  const guesses = Array.from({ length: 1_000 }, (_, at) =>
    store.guess(one, '0042', id, { keyId, proof: `proof ${at}` }),
  )
  const results = await Promise.all(guesses)
  expect(results.filter(({ result }) => result === 'passed')).toHaveLength(1)
  const proofs = results.flatMap((each) => (each.result === 'repeated' ? [each.proof] : []))
  expect(proofs).toHaveLength(999)
  expect(new Set(proofs).size).toBe(1)
  expect(await store.again(one, '0042', id, randomUUID())).toBeUndefined()
  expect(await store.again(one, '0042', id, keyId)).toMatchObject({ proof: proofs[0] })
})

test('more than a minute later: no proof', async () => {
  const [one, id] = [owner(), randomUUID()]
  await store.remember(one, id, '0042')
  await store.guess(one, '0042', id, { keyId, proof: 'proof' })
  const [hash] = secrets.subjectHashes([one.app, one.channel, one.to])
  const key = `repeats:code:${hash}`
  const [code] = JSON.parse((await postern.redis.client.get(key)) ?? '')
  const setBack = async (ms: number) => {
    const proof = { ...code.proof, at: code.proof.at - ms }
    await postern.redis.client.set(key, JSON.stringify([{ ...code, proof }]), 'KEEPTTL')
  }
  await setBack(50_000)
  expect(await store.again(one, '0042', id, keyId)).toBeDefined()
  await setBack(60_000)
  expect(await store.again(one, '0042', id, keyId)).toBeUndefined()
})

test('the answer of the right check is lost, and its repeat comes before the take-back: the code stays used, and its effects come once', async () => {
  const proxy = await startTcpProxy(Number(new URL(postern.redis.url).port))
  const client = connectRedis(proxy.through(postern.redis.url), 'code', () => {})
  releaseLater(() => client.disconnect())
  const lossy = closeLater(createCodeStore(client, secrets, options))
  const [one, id] = [owner(), randomUUID()]
  await eventually(() => lossy.look(one).then(() => true))
  await store.remember(one, id, '0042', 'refund')
  const kept: object[] = []
  proxy.dropAnswers()
  const guess = lossy.guess(one, '0042', id, { keyId, proof: 'first' }, (ended) => kept.push(ended))
  const failed = expect(guess).rejects.toThrow()
  await eventually(async () =>
    expect(await store.look(one, id)).toMatchObject({ result: 'gone', reason: 'used' }),
  )
  expect(await store.again(one, '0042', id, keyId)).toMatchObject({ proof: 'first' })
  await failed
  proxy.reset()
  proxy.forward()
  await eventually(async () => expect(kept).toEqual([{ noticeId: id, onPass: 'refund' }]))
  expect(await store.look(one, id)).toMatchObject({ result: 'gone', reason: 'used' })
  expect(await store.again(one, '0042', id, keyId)).toMatchObject({ proof: 'first' })
})
