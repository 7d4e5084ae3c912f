import { createDecipheriv, createHmac, hkdfSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { canonical } from '../../src/base/canonical.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'

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

test('seal: no nonce is used twice, because a second use reveals both texts', () => {
  const nonces = Array.from({ length: 1_000 }, () =>
    secrets.seal('', 'id').subarray(0, 12).toString('hex'),
  )
  expect(new Set(nonces).size).toBe(nonces.length)
})

test('unseal: one altered bit anywhere, another context, or a cut is refused', () => {
  const sealed = secrets.seal('{"code":"0042"}', 'id')
  for (let byte = 0; byte < sealed.length; byte += 1) {
    const altered = Buffer.from(sealed)
    altered[byte] = (altered[byte] as number) ^ 1
    expect(() => secrets.unseal(altered, 'id')).toThrow(Error)
  }
  expect(() => secrets.unseal(sealed, 'other id')).toThrow()
  for (const length of [0, 11, 12, 20, 27, 28, sealed.length - 1]) {
    expect(() => secrets.unseal(sealed.subarray(0, length), 'id')).toThrow()
  }
  // With nothing sealed, only the tag is left to cut.
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
  const seeds = [...createSecrets(second).passSeeds, ...secrets.passSeeds]
  expect(rotated.passSeeds.map((seed) => seed(7))).toEqual(seeds.map((seed) => seed(7)))
})

test('every use has a separate key: the same text gives unrelated outputs', () => {
  const parts = ['sms', '+8613800138000']
  const outputs = [
    secrets.codeDigests(parts)[0],
    secrets.subjectHashes(parts)[0],
    secrets.challengeKeys(parts)[0],
    secrets.passSubjects('', 'sms', '+8613800138000')[0],
    secrets.passSeeds[0]?.(1).toString('base64url'),
    secrets.passSeeds[0]?.(2).toString('base64url'),
    secrets.knownSeeds[0]?.(1).toString('base64url'),
    secrets.recipientHashes('sms', '+8613800138000')[0]?.toString('base64url'),
    secrets.limiterKey.toString('base64url'),
  ].map((output) => output?.slice(0, 20))
  expect(new Set(outputs).size).toBe(outputs.length)
})

test('dedupeHash: HMAC-MD5 over the canonical parts, in hex (S2)', () => {
  const parts = ['+8613800138000', 'welcome', '{"name":"李雷"}']
  const key = Buffer.from(hkdfSync('sha256', first, 'postern', 'duplicate rule', 32))
  const expected = createHmac('md5', key).update(canonical(parts)).digest('hex')
  expect(secrets.dedupeHash(parts)).toBe(expected)
  expect(secrets.dedupeHash(['+86', '13800138000welcome', ''])).not.toBe(
    secrets.dedupeHash(['+8613800138000', 'welcome', '']),
  )
})

test('every output depends on the secret: without it nothing can be tried out', () => {
  const other = createSecrets(second)
  const parts = ['sms', '+8613800138000']
  expect(other.codeDigests(parts)).not.toEqual(secrets.codeDigests(parts))
  expect(other.subjectHashes(parts)).not.toEqual(secrets.subjectHashes(parts))
  expect(other.dedupeHash(parts)).not.toBe(secrets.dedupeHash(parts))
  expect(other.recipientHashes('sms', '+1')).not.toEqual(secrets.recipientHashes('sms', '+1'))
  expect(other.limiterKey.equals(secrets.limiterKey)).toBe(false)
})

test('every output depends on every part, and on where a part ends', () => {
  const lists = [['a', 'b'], ['a', 'c'], ['c', 'b'], ['b', 'a'], ['ab', ''], ['', 'ab'], ['ab']]
  for (const output of ['codeDigests', 'subjectHashes', 'challengeKeys', 'dedupeHash'] as const) {
    expect(new Set(lists.map((parts) => String(secrets[output](parts)))).size).toBe(lists.length)
  }
  const subjects = [
    secrets.passSubjects('shop', 'sms', '+1'),
    secrets.passSubjects('bank', 'sms', '+1'),
    secrets.passSubjects('shop', 'email', '+1'),
    secrets.passSubjects('shop', 'sms', '+2'),
  ]
  expect(new Set(subjects.map(String)).size).toBe(subjects.length)
  const recipients = [
    ['sms', '+1'],
    ['email', '+1'],
    ['sms', '+12'],
    ['sms+', '1'],
  ] as const
  const hashes = recipients.map(([channel, to]) => secrets.recipientHashes(channel, to))
  expect(new Set(hashes.map((hash) => hash[0]?.toString('hex'))).size).toBe(recipients.length)
})

const derived = (use: string, secret = first) =>
  Buffer.from(hkdfSync('sha256', secret, 'postern', use, 32))

test('codeDigests: HMAC-SHA256 of the whole, by a key that only SECRET gives', () => {
  const parts = ['app', 'scene', 'sms', '+8613800138000', '0042']
  const hmac = (secret: string) =>
    createHmac('sha256', derived('code digest', secret))
      .update(canonical(parts))
      .digest('base64url')
  expect(secrets.codeDigests(parts)).toEqual([hmac(first)])
  expect(rotated.codeDigests(parts)).toEqual([hmac(second), hmac(first)])
})

test('names: 126 bits, of a subject as text and of a recipient as bytes', () => {
  expect(secrets.subjectHashes(['a'])[0]).toMatch(/^[\w-]{21}$/)
  expect(secrets.recipientHashes('sms', '+1')[0]).toHaveLength(15)
  expect(secrets.limiterKey.equals(derived('limiter subject'))).toBe(true)
  expect(rotated.limiterKey.equals(derived('limiter subject', second))).toBe(true)
})

test('dedupeHash: by the current secret alone, so that both processes of a rotation agree', () => {
  expect(rotated.dedupeHash(['a'])).toBe(createSecrets(second).dedupeHash(['a']))
})

test('seal: AES-256-GCM, 12 bytes of IV, 16 of tag, by a separate key', () => {
  const sealed = secrets.seal('plain', 'id')
  expect(sealed).toHaveLength(12 + 16 + 'plain'.length)
  const decipher = createDecipheriv('aes-256-gcm', derived('notice seal'), sealed.subarray(0, 12))
  decipher.setAAD(Buffer.from('id'))
  decipher.setAuthTag(sealed.subarray(12, 28))
  expect(decipher.update(sealed.subarray(28), undefined, 'utf8') + decipher.final('utf8')).toBe(
    'plain',
  )
})

test('seal: no IV comes twice in 5,000, and one that was given stays as it was', () => {
  const sealed = Array.from({ length: 5_000 }, () => secrets.seal('', 'id'))
  expect(new Set(sealed.map((one) => one.subarray(0, 12).toString('hex'))).size).toBe(5_000)
})

test('sealText: opens with its context and secret only, in one spelling', () => {
  const sealed = secrets.sealText('2026 at +8613800138000', 'notices')
  expect(secrets.unsealText(sealed, 'notices')).toBe('2026 at +8613800138000')
  expect(rotated.unsealText(sealed, 'notices')).toBe('2026 at +8613800138000')
  expect(sealed).toMatch(/^[\w-]+$/)
  expect(secrets.unsealText(sealed, 'events')).toBe(undefined)
  expect(createSecrets(second).unsealText(sealed, 'notices')).toBe(undefined)
  expect(secrets.unsealText(`${sealed}.`, 'notices')).toBe(undefined)
})

test.each(['', 'x', '%00', '9'.repeat(100_000)])('sealText: %j opens nothing', (made) => {
  expect(secrets.unsealText(made, 'notices')).toBe(undefined)
})
