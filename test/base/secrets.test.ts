import { createHmac, hkdfSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { canonical } from '../../src/base/canonical.ts'
import { createSecrets } from '../../src/base/secrets.ts'

const first = 'the first secret, of thirty-two bytes or more'
const second = 'the second secret, of thirty-two bytes or more'
const secrets = createSecrets(first)
const rotated = createSecrets(second, first)

test('seal: what was sealed opens again, and equal texts are sealed differently', () => {
  const [one, other] = [
    secrets.seal('{"code":"0042"}', 'id'),
    secrets.seal('{"code":"0042"}', 'id'),
  ]
  expect(secrets.unseal(one, 'id')).toBe('{"code":"0042"}')
  expect(one.equals(other)).toBe(false)
  expect(one.includes('0042')).toBe(false)
  expect(secrets.unseal(secrets.seal('', 'id'), 'id')).toBe('')
  expect(secrets.unseal(secrets.seal('验证码 🔑', 'id'), 'id')).toBe('验证码 🔑')
})

test('unseal: one altered bit anywhere, another context, or a cut is refused', () => {
  const sealed = secrets.seal('{"code":"0042"}', 'id')
  for (let byte = 0; byte < sealed.length; byte += 1) {
    const altered = Buffer.from(sealed)
    altered[byte] = (altered[byte] as number) ^ 1
    expect(() => secrets.unseal(altered, 'id')).toThrow()
  }
  expect(() => secrets.unseal(sealed, 'other id')).toThrow()
  for (const length of [0, 11, 12, 20, 27, 28, sealed.length - 1]) {
    expect(() => secrets.unseal(sealed.subarray(0, length), 'id')).toThrow()
  }
  // With nothing sealed, all that is left to cut is the tag itself.
  const empty = secrets.seal('', 'id')
  for (let length = 0; length < empty.length; length += 1) {
    expect(() => secrets.unseal(empty.subarray(0, length), 'id')).toThrow()
  }
})

test('SECRET_PREVIOUS: what the old secret sealed opens, new seals need the new secret', () => {
  expect(rotated.unseal(secrets.seal('kept', 'id'), 'id')).toBe('kept')
  expect(createSecrets(second).unseal(rotated.seal('new', 'id'), 'id')).toBe('new')
  expect(() => secrets.unseal(rotated.seal('new', 'id'), 'id')).toThrow()
  expect(() => createSecrets(second).unseal(secrets.seal('kept', 'id'), 'id')).toThrow()
})

test('SECRET_PREVIOUS: digests and hashes of both secrets, the current one first', () => {
  const code = ['app', 'scene', 'sms', '+8613800138000', '0042']
  expect(rotated.codeDigests(code)).toEqual([
    ...createSecrets(second).codeDigests(code),
    ...secrets.codeDigests(code),
  ])
  expect(rotated.subjectHashes(code)).toEqual([
    ...createSecrets(second).subjectHashes(code),
    ...secrets.subjectHashes(code),
  ])
  expect(rotated.recipientHashes('sms', '+1')).toEqual([
    ...createSecrets(second).recipientHashes('sms', '+1'),
    ...secrets.recipientHashes('sms', '+1'),
  ])
})

test('every use has a key of its own: the same text gives unrelated outputs', () => {
  const parts = ['sms', '+8613800138000']
  const outputs = [
    secrets.codeDigests(parts)[0],
    secrets.subjectHashes(parts)[0],
    secrets.cursorMarks(parts)[0],
    secrets.recipientHashes('sms', '+8613800138000')[0]?.toString('base64url'),
    secrets.limiterKey.toString('base64url'),
  ].map((output) => output?.slice(0, 20))
  expect(new Set(outputs).size).toBe(outputs.length)
})

test('dedupeHash: HMAC-MD5 over the canonical parts, in hex (S2)', () => {
  const parts = ['+8613800138000', 'welcome', '{"name":"Ada"}']
  const key = Buffer.from(hkdfSync('sha256', first, 'postern', 'duplicate rule', 32))
  const expected = createHmac('md5', key).update(canonical(parts)).digest('hex')
  expect(secrets.dedupeHash(parts)).toBe(expected)
  expect(secrets.dedupeHash(['+86', '13800138000welcome', ''])).not.toBe(
    secrets.dedupeHash(['+8613800138000', 'welcome', '']),
  )
})
