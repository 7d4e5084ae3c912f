import { crc32 } from 'node:zlib'
import { expect, test } from 'vitest'
import { createKeyToken, keyKindOf } from '../../src/access/key-token.ts'

test.each([
  ['secret', 'psk_'],
  ['publishable', 'ppk_'],
  ['operator', 'pok_'],
] as const)('a %s key begins with %s and is known for what it is', (kind, prefix) => {
  for (let count = 0; count < 1_000; count++) {
    const token = createKeyToken(kind)
    expect(token).toMatch(/^[a-z]{3}_[\w-]{49}$/)
    expect(token.startsWith(prefix)).toBe(true)
    expect(keyKindOf(token)).toBe(kind)
  }
})

test('a key with any one character changed, cut, or longer is invalid', () => {
  const token = createKeyToken('secret')
  for (let at = 0; at < token.length; at++) {
    const other = token[at] === 'k' ? 's' : 'k'
    expect(keyKindOf(token.slice(0, at) + other + token.slice(at + 1)), `at ${at}`).toBe(undefined)
    expect(keyKindOf(token.slice(0, at))).toBe(undefined)
  }
  expect(keyKindOf(`${token}A`)).toBe(undefined)
  expect(keyKindOf(` ${token}`)).toBe(undefined)
  expect(keyKindOf(`${token}\n`)).toBe(undefined)
})

test('a key with only its prefix changed is invalid', () => {
  const token = createKeyToken('publishable')
  expect(keyKindOf(`psk_${token.slice(4)}`)).toBe(undefined)
})

test('of 10,000 made-up keys of the right shape none passes', () => {
  const random = () => createKeyToken('secret')
  let passed = 0
  for (let count = 0; count < 10_000; count++) {
    // The body of one key with the checksum of another key.
    if (keyKindOf(random().slice(0, -6) + random().slice(-6))) passed += 1
  }
  expect(passed).toBe(0)
})

test('a checksum is not enough: shape, length and prefix are checked too', () => {
  const withChecksum = (body: string) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(crc32(body))
    return body + bytes.toString('base64url')
  }
  const random = createKeyToken('secret').slice(4, -6)
  expect(keyKindOf(withChecksum(`psk_${random}`))).toBe('secret')
  for (const body of [
    `psk_${random.slice(1)}`,
    `psk_${random}A`,
    `xyz_${random}`,
    `psk-${random}`,
    '',
  ]) {
    expect(keyKindOf(withChecksum(body))).toBe(undefined)
  }
})

test('every character between prefix and checksum is drawn', () => {
  const keys = Array.from({ length: 200 }, () => createKeyToken('secret').slice(4, -6))
  expect(new Set(keys).size).toBe(200)
  for (let at = 0; at < 43; at++) {
    // The last character has four bits: sixteen possible characters.
    expect(new Set(keys.map((key) => key[at])).size, `at ${at}`).toBeGreaterThan(8)
  }
})
