import { expect, test } from 'vitest'
import { isSameSecret } from '../../src/crypto/same-secret.ts'

test('isSameSecret: the whole is compared, and another length is another secret', () => {
  expect(isSameSecret('a secret', 'a secret')).toBe(true)
  expect(isSameSecret('密钥', '密钥')).toBe(true)
  for (const given of ['', 'a', 'a secre', 'a secrer', 'A secret', 'a secret ', 'b secret']) {
    expect(isSameSecret(given, 'a secret')).toBe(false)
  }
  // The same number of characters, and more bytes.
  expect(isSameSecret('é', 'e')).toBe(false)
  expect(isSameSecret('', '')).toBe(true)
})
