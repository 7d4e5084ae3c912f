import { expect, test } from 'vitest'
import {
  isSignedWebhook,
  isUsableSecret,
  mayBeSignedWebhook,
  signWebhook,
} from '../../src/crypto/standard-webhooks.ts'

// The example of the specification.
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek'
const atMs = 1_614_265_330_000
const body = '{"test": 2432232314}'
const signature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='

const minutes = 60_000
const signed = signWebhook(secret, id, atMs, body)

test('signWebhook: the example of the Standard Webhooks specification', () => {
  expect(signed).toEqual({
    'webhook-id': id,
    'webhook-timestamp': '1614265330',
    'webhook-signature': signature,
  })
  expect(signWebhook(secret, id, atMs + 999, Buffer.from(body))).toEqual(signed)
})

test('isSignedWebhook: as it was signed, within five minutes either way, and no longer', () => {
  for (const offMs of [0, 5 * minutes, -5 * minutes]) {
    expect(isSignedWebhook(secret, { ...signed }, body, atMs + offMs)).toBe(true)
  }
  for (const offMs of [5 * minutes + 1, -5 * minutes - 1]) {
    expect(isSignedWebhook(secret, { ...signed }, body, atMs + offMs)).toBe(false)
  }
})

test('isSignedWebhook: another body, id, moment or secret is refused', () => {
  const refused = (headers: Record<string, unknown>, ofBody = body, withSecret = secret) =>
    isSignedWebhook(withSecret, { ...signed, ...headers }, ofBody, atMs)
  expect(refused({}, '{"test": 2432232315}')).toBe(false)
  expect(refused({}, '')).toBe(false)
  expect(refused({ 'webhook-id': 'msg_other' })).toBe(false)
  expect(refused({ 'webhook-timestamp': '1614265331' })).toBe(false)
  expect(refused({}, body, `${secret}BBBB`)).toBe(false)
  expect(refused({ 'webhook-signature': signature.replace('v1,', 'v2,') })).toBe(false)
  expect(refused({ 'webhook-signature': signature.replace('v1,', '') })).toBe(false)
  expect(refused({ 'webhook-signature': signature.slice(0, -1) })).toBe(false)
  expect(refused({ 'webhook-signature': '' })).toBe(false)
})

test('isSignedWebhook: a header that is missing, doubled or no number is refused', () => {
  for (const name of Object.keys(signed)) {
    expect(isSignedWebhook(secret, { ...signed, [name]: undefined }, body, atMs)).toBe(false)
    expect(isSignedWebhook(secret, { ...signed, [name]: [id, id] }, body, atMs)).toBe(false)
  }
  for (const timestamp of [
    '',
    'now',
    '1614265330.0',
    '-1614265330',
    '1e9',
    ' 1614265330',
    '1614265330 ',
    ['1614265330'],
  ]) {
    expect(mayBeSignedWebhook({ ...signed, 'webhook-timestamp': timestamp }, atMs)).toBe(false)
  }
})

test('isSignedWebhook: one of up to ten signatures is enough while the provider changes its secret', () => {
  const others = Array.from({ length: 10 }, () => 'v1,AAAA')
  const passes = (signatures: string[]) =>
    isSignedWebhook(secret, { ...signed, 'webhook-signature': signatures.join(' ') }, body, atMs)
  expect(passes(['v1,AAAA', signature])).toBe(true)
  expect(passes([...others.slice(0, 9), signature])).toBe(true)
  expect(passes([...others, signature])).toBe(false)
  expect(passes(others)).toBe(false)
})

test('a secret without the prefix is taken as it is written', () => {
  const plain = 'plain secret of some length'
  const ofPlain = signWebhook(plain, id, atMs, body)
  expect(isSignedWebhook(plain, { ...ofPlain }, body, atMs)).toBe(true)
  expect(ofPlain['webhook-signature']).not.toBe(
    signWebhook(`${plain}r`, id, atMs, body)['webhook-signature'],
  )
})

test('isUsableSecret: sixteen bytes or more, and what follows the prefix is base64', () => {
  const base64 = (bytes: number) => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`
  for (const usable of [secret, 'x'.repeat(16), base64(16), base64(17)]) {
    expect(isUsableSecret(usable)).toBe(true)
  }
  const unusable = ['', 'x'.repeat(15), base64(15), 'whsec_', `whsec_${'!'.repeat(40)}`]
  for (const wrong of [
    ...unusable,
    `${secret} `,
    secret.replace('_', '_ '),
    'whsec_'.padEnd(40, '='),
  ]) {
    expect(isUsableSecret(wrong)).toBe(false)
  }
})

test('mayBeSignedWebhook: decided from the headers only, and never false for a signed request', () => {
  for (const offMs of [0, 5 * minutes, -5 * minutes]) {
    expect(mayBeSignedWebhook({ ...signed }, atMs + offMs)).toBe(true)
    expect(mayBeSignedWebhook({ ...signed, 'webhook-signature': 'v1,x' }, atMs + offMs)).toBe(true)
  }
  expect(mayBeSignedWebhook({ ...signed }, atMs + 5 * minutes + 1)).toBe(false)
  for (const name of Object.keys(signed)) {
    expect(mayBeSignedWebhook({ ...signed, [name]: undefined }, atMs)).toBe(false)
  }
})
